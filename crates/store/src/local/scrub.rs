//! Objects are read through and compared with their sums.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check::{Subject, is_sound};
use super::sums::{Unflushed, bytes_in_block, index_in_segment, segment_of};
use super::{LocalStore, wrong_length};
use crate::disk::read_full;
use crate::locks::{lock, read};
use crate::sums::{BLOCK_BYTES, BlockSum, SEGMENT_BLOCKS, Segment, sum};
use crate::{ObjectId, Result, Scrubbed, StoreError};

/// Blocks of one step: 4 MiB. Who writes to the object waits while it is read.
const STEP_BLOCKS: u64 = 64;

impl LocalStore {
    /// Scrubs some blocks, with the object's writers kept out: the sums of unknown blocks are learnt.
    pub(super) fn scrub_step(&self, id: &ObjectId, from: u64) -> Result<Scrubbed> {
        let object = self.object(id)?;
        let writer = lock(&object.writer);
        let shared = object.live(read(&object.shared))?;
        let Some((number, blocks)) = step(from, shared.length) else { return Ok(Scrubbed::default()) };
        let file = self.file(&object, &shared)?;
        let (found, segment) = self.with_subject(&object, &shared, &*file, true, |subject| {
            let mut segment = (subject.load)(number)?;
            Ok::<_, StoreError>((scan(subject, &mut segment, blocks)?, segment))
        })?;
        if found.learnt > 0 && writer.persisted {
            let sums = Unflushed { cut: None, segments: BTreeMap::from([(number, segment)]) };
            self.meta.put_sums(object.birth, &sums)?;
            self.checker.forget(object.birth, number);
        }
        Ok(found)
    }
}

/// The blocks of the step that begins at byte `from` of an object of `length` bytes, and their segment.
pub(super) fn step(from: u64, length: u64) -> Option<(u64, Range<u64>)> {
    let blocks = from.div_ceil(BLOCK_BYTES)..length.div_ceil(BLOCK_BYTES);
    let number = segment_of(blocks.start);
    let end = blocks.end.min((number + 1) * SEGMENT_BLOCKS).min(blocks.start + STEP_BLOCKS);
    (!blocks.is_empty()).then_some((number, blocks.start..end))
}

/// Reads `blocks`, which lie in `segment`, and compares them. The sums of unknown blocks go into the segment.
pub(super) fn scan(subject: &Subject<'_>, segment: &mut Segment, blocks: Range<u64>) -> Result<Scrubbed> {
    let first = blocks.start * BLOCK_BYTES;
    let end = (blocks.end * BLOCK_BYTES).min(subject.length);
    // So that the device is read and not what memory has of it. Bytes not yet written stay in memory.
    let _ = subject.file.drop_cache(first, end - first);
    let mut found = Scrubbed { next: (end < subject.length).then_some(end), ..Scrubbed::default() };
    let mut buffer = vec![0; BLOCK_BYTES as usize];
    for block in blocks {
        let index = index_in_segment(block);
        let expected = segment.get(index);
        if !(subject.holds)(block, expected) {
            continue;
        }
        let (start, len) = (block * BLOCK_BYTES, bytes_in_block(block, subject.length));
        let bytes = buffer.get_mut(..len as usize).unwrap_or_default();
        let read = read_full(subject.file, bytes, start);
        let read = read.map_err(|error| StoreError::io("read", &(subject.path)(), error))?;
        if read < bytes.len() {
            return Err(wrong_length(&(subject.path)(), start + read as u64, subject.length));
        }
        if expected == BlockSum::Unknown {
            segment.set(index, BlockSum::Crc(sum(bytes)));
            found.learnt += len;
        } else if is_sound(expected, bytes) {
            found.checked += len;
        } else {
            found.damaged.push(start..start + len);
        }
    }
    Ok(found)
}
