//! An object that is read from its start to its end in short stretches, with fewer and longer requests.
//!
//! The stripes of a target lie in its object one behind the other. Whoever folds its rows reads them one by one, and each
//! request takes as long as some hundred KiB.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_runtime::{Part, RunError, Want};

/// Bytes that are read at once.
pub(crate) const AHEAD_BYTES: u64 = 1 << 20;

/// A part of a file, read ahead.
pub(crate) struct ReadAhead {
    part: Arc<dyn Part>,
    /// Bytes of the object.
    length: u64,
    last: Mutex<Stretch>,
}

/// Bytes of the object from an offset on.
#[derive(Default)]
struct Stretch {
    offset: u64,
    bytes: Vec<u8>,
}

impl Stretch {
    /// The bytes of a range, if all of them are here.
    fn range(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }
}

impl ReadAhead {
    /// Reads this part, whose object has so many bytes, ahead.
    pub fn of(part: Arc<dyn Part>, length: u64) -> ReadAhead {
        ReadAhead { part, length, last: Mutex::default() }
    }
}

impl Part for ReadAhead {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        // Others that want bytes of the same object wait here for those that they want next.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = last.range(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(());
        }
        let left = self.length.saturating_sub(offset).min(AHEAD_BYTES);
        let left = usize::try_from(left).unwrap_or_default();
        // What is long by itself gains nothing, and the name of another object is none of ours.
        if object.is_some() || buffer.len() >= left {
            drop(last);
            return self.part.read(object, offset, buffer);
        }
        last.bytes.resize(left, 0);
        last.offset = offset;
        let read = self.part.read(None, offset, &mut last.bytes);
        if read.is_err() {
            last.bytes.clear();
        }
        read?;
        if let Some(bytes) = last.range(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn read_many(&self, wants: &[Want<'_>], out: &mut [u8]) -> Result<(), RunError> {
        self.part.read_many(wants, out)
    }

    fn unchanged(&self) -> Result<(), RunError> {
        self.part.unchanged()
    }

    fn version(&self) -> u64 {
        self.part.version()
    }

    fn describe(&self) -> String {
        self.part.describe()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Bytes that count the reads of them.
    struct Counted {
        bytes: Vec<u8>,
        reads: Mutex<Vec<(u64, usize)>>,
    }

    impl Part for Counted {
        fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
            self.reads.lock().unwrap().push((offset, buffer.len()));
            let at = offset as usize;
            match self.bytes.get(at..at + buffer.len()) {
                Some(bytes) => buffer.copy_from_slice(bytes),
                None => return Err(RunError::Panicked),
            }
            Ok(())
        }

        fn unchanged(&self) -> Result<(), RunError> {
            Ok(())
        }

        fn version(&self) -> u64 {
            7
        }

        fn describe(&self) -> String {
            "counted".into()
        }
    }

    #[test]
    fn short_reads_are_few_and_right_and_nothing_is_read_twice() {
        let length = 2 * AHEAD_BYTES as usize + 1000;
        let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let counted = Arc::new(Counted { bytes: bytes.clone(), reads: Mutex::default() });
        let part = ReadAhead::of(counted.clone(), length as u64);
        let mut at = 0;
        while at < length {
            let mut buffer = vec![0; (64 << 10).min(length - at)];
            part.read(None, at as u64, &mut buffer).unwrap();
            assert_eq!(buffer, bytes[at..at + buffer.len()]);
            at += buffer.len();
        }
        let ahead = AHEAD_BYTES as usize;
        let expected = [(0, ahead), (AHEAD_BYTES, ahead), (2 * AHEAD_BYTES, 1000)];
        assert_eq!(*counted.reads.lock().unwrap(), expected);
        assert_eq!(part.version(), 7);
    }

    #[test]
    fn long_reads_go_by_and_failures_leave_nothing() {
        let counted = Arc::new(Counted { bytes: vec![5; 100], reads: Mutex::default() });
        // An object that says that it is longer than it is.
        let part = ReadAhead::of(counted.clone(), 200);
        let mut buffer = [0; 10];
        assert!(part.read(None, 0, &mut buffer).is_err());
        assert!(part.read(None, 50, &mut buffer).is_err());
        let part = ReadAhead::of(counted.clone(), 100);
        let mut whole = [0; 100];
        part.read(None, 0, &mut whole).unwrap();
        assert_eq!(whole, [5; 100]);
        assert!(part.last.lock().unwrap().bytes.is_empty());
    }
}
