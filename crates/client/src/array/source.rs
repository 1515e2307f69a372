//! A file of this machine or of a cluster as a source for parsers of formats.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::{FormatError, Source};
use gristmill_runtime::FileParts;

/// Bytes that are read at once if each read is a request over the network.
const BLOCK: u64 = 64 << 10;

/// Blocks that are kept.
const MAX_BLOCKS: usize = 512;

/// A file as a source for a parser. A file on storage nodes is read in blocks, which are kept, because parsers read a
/// few bytes at a time and return to the same places.
pub(crate) struct PartsSource {
    file: FileParts,
    blocks: Option<Mutex<Blocks>>,
}

#[derive(Default)]
struct Blocks {
    known: HashMap<u64, Arc<[u8]>>,
    /// Numbers of the blocks, the oldest first.
    order: VecDeque<u64>,
}

impl PartsSource {
    /// Makes a source of a file.
    pub fn new(file: FileParts) -> PartsSource {
        let blocks = file.place.remote.then(Mutex::default);
        PartsSource { file, blocks }
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError> {
        let end = offset + into.len() as u64;
        let read = self.file.read(offset..end, into);
        read.map_err(|error| FormatError::Io {
            what: format!("bytes {offset} to {end}"),
            source: std::io::Error::other(error),
        })
    }

    fn block(&self, blocks: &Mutex<Blocks>, number: u64) -> Result<Arc<[u8]>, FormatError> {
        let lock = || blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().known.get(&number) {
            return Ok(known.clone());
        }
        let start = number * BLOCK;
        let mut bytes = vec![0; BLOCK.min(self.file.length.saturating_sub(start)) as usize];
        self.read(start, &mut bytes)?;
        let bytes: Arc<[u8]> = bytes.into();
        let mut blocks = lock();
        if blocks.known.insert(number, bytes.clone()).is_none() {
            blocks.order.push_back(number);
        }
        if blocks.order.len() > MAX_BLOCKS
            && let Some(oldest) = blocks.order.pop_front()
        {
            blocks.known.remove(&oldest);
        }
        Ok(bytes)
    }
}

impl Source for PartsSource {
    fn len(&self) -> u64 {
        self.file.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError> {
        let end = offset.saturating_add(into.len() as u64);
        if end > self.file.length {
            let error = format!("{} has {} bytes", self.file.name, self.file.length);
            return Err(FormatError::Io {
                what: format!("{} bytes at {offset}", into.len()),
                source: std::io::Error::other(error),
            });
        }
        let Some(blocks) = self.blocks.as_ref().filter(|_| (into.len() as u64) < BLOCK) else {
            return self.read(offset, into);
        };
        let mut at = offset;
        while at < end {
            let block = self.block(blocks, at / BLOCK)?;
            let from = (at % BLOCK) as usize;
            let (to, len) = ((at - offset) as usize, ((end - at) as usize).min(block.len() - from));
            into[to..to + len].copy_from_slice(&block[from..from + len]);
            at += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_runtime::Placement;

    use super::*;

    #[test]
    fn a_file_reads_the_same_through_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let bytes: Vec<u8> = (0..300_000u32).flat_map(|n| n.to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = FileParts::plain(&path).unwrap();
        let remote = FileParts { place: Placement { remote: true, ..file.place }, ..file };
        let source = PartsSource::new(remote);
        let mut n = 7usize;
        for _ in 0..2000 {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let len = (n >> 33) % 90_000;
            let at = (n >> 11) % (bytes.len() - len);
            let mut read = vec![0; len];
            source.read_at(at as u64, &mut read).unwrap();
            assert_eq!(read, bytes[at..at + len]);
        }
        let len = bytes.len() as u64;
        source.read_at(len - 3, &mut [0; 3]).unwrap();
        assert!(source.read_at(len - 3, &mut [0; 4]).is_err());
    }
}
