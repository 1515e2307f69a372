//! Comparison of whole objects with their sums.

use std::collections::BTreeMap;
use std::ops::Range;

use super::LocalStore;
use super::check::{VerifiedObject, is_sound};
use super::sums::{SumChanges, bytes_in_block, index_in_segment, segment_of};
use crate::disk::read_full;
use crate::locks::{lock, read};
use crate::sums::{BLOCK_BYTES, BlockSum, SEGMENT_BLOCKS, Segment, sum};
use crate::{ObjectId, Result, ScrubResult, StoreError};

/// Blocks of one step: 4 MiB. Writers of the object wait while a step is read.
const STEP_BLOCKS: u64 = 64;

impl LocalStore {
    /// Scrubs some blocks while no writer can change the object. Stores the sums of unknown blocks.
    pub(super) fn scrub_step(&self, id: &ObjectId, from: u64) -> Result<ScrubResult> {
        let object = self.object(id)?;
        let writer = lock(&object.writer);
        let shared = object.check_live(read(&object.shared))?;
        let Some((number, blocks)) = step_blocks(from, shared.length) else {
            return Ok(ScrubResult::default());
        };
        // A file that is open stays readable after its name was removed. So the scrub opens it again.
        let file = match self.open_file(&object, &shared) {
            Err(error) if is_unreadable(&error) => return Ok(rest_damaged(from, shared.length)),
            file => file?,
        };
        let (found, segment) = self.with_verified_object(&object, &shared, &*file, true, |subject| {
            let mut segment = (subject.load)(number)?;
            Ok::<_, StoreError>((scan(subject, &mut segment, blocks)?, segment))
        })?;
        if found.learnt > 0 && writer.persisted {
            let sums = SumChanges { cut: None, segments: BTreeMap::from([(number, segment)]) };
            self.meta.put_sums(object.birth, &sums)?;
            self.checker.forget(object.birth, number);
        }
        Ok(found)
    }
}

/// The segment and the blocks of the step that begins at byte `from` of an object of `length` bytes.
pub(super) fn step_blocks(from: u64, length: u64) -> Option<(u64, Range<u64>)> {
    let blocks = from.div_ceil(BLOCK_BYTES)..length.div_ceil(BLOCK_BYTES);
    let number = segment_of(blocks.start);
    let end = blocks.end.min((number + 1) * SEGMENT_BLOCKS).min(blocks.start + STEP_BLOCKS);
    (!blocks.is_empty()).then_some((number, blocks.start..end))
}

/// Whether an error from opening a file means that the bytes of an object are missing, cut off or unreadable.
pub(super) fn is_unreadable(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged { .. } => true,
        StoreError::Io { source, .. } => source.raw_os_error() == Some(libc::EIO),
        _ => false,
    }
}

/// The result for an object of `length` bytes whose file is missing, cannot be opened or has another length.
pub(super) fn rest_damaged(from: u64, length: u64) -> ScrubResult {
    let mut found = ScrubResult::default();
    found.damaged.push(from..length);
    found
}

/// Reads `blocks`, which lie in `segment`, and compares them. Adds the sums of unknown blocks to the segment.
pub(super) fn scan(
    subject: &VerifiedObject<'_>,
    segment: &mut Segment,
    blocks: Range<u64>,
) -> Result<ScrubResult> {
    let first = blocks.start * BLOCK_BYTES;
    let end = (blocks.end * BLOCK_BYTES).min(subject.length);
    // The bytes must come from the device, and not from the page cache. Unwritten bytes stay in the cache.
    let _ = subject.file.drop_cache(first, end - first);
    let mut found = ScrubResult { next: (end < subject.length).then_some(end), ..ScrubResult::default() };
    let mut buffer = vec![0; BLOCK_BYTES as usize];
    for block in blocks {
        let index = index_in_segment(block);
        let expected = segment.get(index);
        if !(subject.is_current)(block, expected) {
            continue;
        }
        let (start, len) = (block * BLOCK_BYTES, bytes_in_block(block, subject.length));
        let bytes = buffer.get_mut(..len as usize).unwrap_or_default();
        let sound = match read_full(subject.file, bytes, start) {
            Ok(read) => read == bytes.len() && (expected == BlockSum::Unknown || is_sound(expected, bytes)),
            // The device cannot read these bytes. The scrub finds all such blocks.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => false,
            Err(error) => return Err(StoreError::io("read", &(subject.path)(), error)),
        };
        if !sound {
            found.damaged.push(start..start + len);
        } else if expected == BlockSum::Unknown {
            segment.set(index, BlockSum::Crc(sum(bytes)));
            found.learnt += len;
        } else {
            found.checked += len;
        }
    }
    Ok(found)
}
