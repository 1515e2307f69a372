//! Access of the writing process to stored sums: before a change, for blocks that a flush reads back, and for checks.

use std::collections::BTreeMap;
use std::ops::Range;

use super::LocalStore;
use super::check::VerifiedObject;
use super::object::{Object, SharedState};
use super::sums::{SumSource, bytes_in_block, index_in_segment};
use crate::disk::{DataFile, read_full};
use crate::locks::read;
use crate::sums::{BLOCK_BYTES, SEGMENT_BLOCKS, sum};
use crate::{Result, StoreError};

/// Number of stored segments that are listed at once.
const SEGMENT_PAGE: usize = 1_024;

impl LocalStore {
    /// Loads the sums that a change of `bytes` may change.
    pub(super) fn prepare_sums(
        &self,
        object: &Object,
        shared: &mut SharedState,
        bytes: Range<u64>,
    ) -> Result<()> {
        let (length, default_sum) = (shared.length, shared.sums.default_sum);
        shared.sums.prepare(bytes, length, |number| self.meta.segment(object.birth, number, default_sum))
    }

    /// Loads the stored sums of the blocks of `bytes`, which will become zeros.
    pub(super) fn prepare_punch(
        &self,
        object: &Object,
        shared: &mut SharedState,
        bytes: Range<u64>,
    ) -> Result<()> {
        let segment_bytes = SEGMENT_BLOCKS * BLOCK_BYTES;
        for at in [bytes.start, bytes.end - 1] {
            self.prepare_sums(object, shared, at..at + 1)?;
        }
        let mut segments = bytes.start / segment_bytes..bytes.end.div_ceil(segment_bytes);
        loop {
            let page = self.meta.segments(object.birth, segments.clone(), SEGMENT_PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            segments.start = last + 1;
            for number in page {
                let first = number * segment_bytes;
                self.prepare_sums(object, shared, first..(first + 1).min(shared.length))?;
            }
        }
    }

    /// Computes the sums of blocks that must be read from the file for a flush.
    pub(super) fn read_back(&self, object: &Object) -> Result<BTreeMap<u64, u32>> {
        let shared = read(&object.shared);
        let blocks = shared.sums.blocks_to_read_back(shared.length);
        if blocks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let file = self.file(object, &shared)?;
        let mut buffer = vec![0; BLOCK_BYTES as usize];
        let mut sums = BTreeMap::new();
        for block in blocks {
            let len = bytes_in_block(block, shared.length) as usize;
            let bytes = buffer.get_mut(..len).unwrap_or_default();
            let found = read_full(&*file, bytes, block * BLOCK_BYTES)
                .map_err(|error| StoreError::io("read", &self.path(&object.id), error))?;
            if found == len {
                sums.insert(block, sum(bytes));
            }
        }
        Ok(sums)
    }

    /// Calls `work` with the object, for checks of its bytes. The sums of blocks that changed since the last flush are
    /// not current.
    pub(super) fn with_verified_object<T>(
        &self,
        object: &Object,
        shared: &SharedState,
        file: &dyn DataFile,
        recheck: bool,
        work: impl FnOnce(&VerifiedObject<'_>) -> T,
    ) -> T {
        let default_sum = shared.sums.default_sum;
        work(&VerifiedObject {
            id: &object.id,
            path: &|| self.path(&object.id),
            birth: object.birth,
            version: shared.flushed,
            length: shared.length,
            file,
            recheck,
            now: self.clock.now(),
            is_current: &|block, stored| match shared.sums.source(block) {
                SumSource::Open | SumSource::Absent => false,
                SumSource::Changed(segment) => segment.get(index_in_segment(block)) == stored,
                SumSource::Stored => true,
            },
            load: &|number| self.meta.segment(object.birth, number, default_sum),
        })
    }
}
