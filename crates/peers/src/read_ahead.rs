//! Read-ahead: fewer and longer requests for an object that is read from its start to its end in short ranges.
//!
//! The stripes of a target lie in its object one after the other. A fold for rows reads them one by one, and a request
//! takes as long as some hundred KiB.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_runtime::{Part, PartRange, RunError};

/// Bytes of one read.
pub(crate) const AHEAD_BYTES: u64 = 1 << 20;

/// A part of a file, read ahead.
pub(crate) struct ReadAhead {
    part: Arc<dyn Part>,
    /// Bytes of the object.
    length: u64,
    buffer: Mutex<ReadBuffer>,
}

/// Bytes of the object from an offset on.
#[derive(Default)]
struct ReadBuffer {
    offset: u64,
    bytes: Vec<u8>,
}

impl ReadBuffer {
    /// The bytes of a range, if the buffer has all of them.
    fn range(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }
}

impl ReadAhead {
    /// Adds read-ahead to a part. `length` is the number of bytes of its object.
    pub fn new(part: Arc<dyn Part>, length: u64) -> ReadAhead {
        ReadAhead { part, length, buffer: Mutex::default() }
    }
}

impl Part for ReadAhead {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        // Other threads that read the same object wait here: the read gives the bytes that they need next.
        let mut ahead = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = ahead.range(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(());
        }
        let remaining = self.length.saturating_sub(offset).min(AHEAD_BYTES);
        let remaining = usize::try_from(remaining).unwrap_or_default();
        // A long read gains nothing, and the buffer is for one object only.
        if object.is_some() || buffer.len() >= remaining {
            drop(ahead);
            return self.part.read(object, offset, buffer);
        }
        ahead.bytes.resize(remaining, 0);
        ahead.offset = offset;
        let read = self.part.read(None, offset, &mut ahead.bytes);
        if read.is_err() {
            ahead.bytes.clear();
        }
        read?;
        if let Some(bytes) = ahead.range(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn read_many(&self, wants: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
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

    /// A part that notes each read.
    struct CountedPart {
        bytes: Vec<u8>,
        reads: Mutex<Vec<(u64, usize)>>,
    }

    impl Part for CountedPart {
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
    fn short_reads_become_few_long_ones_and_no_byte_is_read_twice() {
        let length = 2 * AHEAD_BYTES as usize + 1000;
        let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let counted = Arc::new(CountedPart { bytes: bytes.clone(), reads: Mutex::default() });
        let part = ReadAhead::new(counted.clone(), length as u64);
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
    fn long_reads_bypass_the_buffer_and_failed_reads_leave_it_empty() {
        let counted = Arc::new(CountedPart { bytes: vec![5; 100], reads: Mutex::default() });
        // The object is shorter than the part believes.
        let part = ReadAhead::new(counted.clone(), 200);
        let mut buffer = [0; 10];
        assert!(part.read(None, 0, &mut buffer).is_err());
        assert!(part.read(None, 50, &mut buffer).is_err());
        let part = ReadAhead::new(counted.clone(), 100);
        let mut whole = [0; 100];
        part.read(None, 0, &mut whole).unwrap();
        assert_eq!(whole, [5; 100]);
        assert!(part.buffer.lock().unwrap().bytes.is_empty());
    }
}
