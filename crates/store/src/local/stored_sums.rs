//! How the writing process loads sums before a change, reads back what it cannot put together, and checks what it reads.

use std::collections::BTreeMap;
use std::ops::Range;

use super::LocalStore;
use super::check::Subject;
use super::object::{Object, Shared};
use super::sums::{Found, bytes_in_block, index_in_segment};
use crate::disk::{DataFile, read_full};
use crate::locks::read;
use crate::sums::{BLOCK_BYTES, SEGMENT_BLOCKS, sum};
use crate::{Result, StoreError};

/// Stored segments listed at a time.
const PAGE: usize = 1_024;

impl LocalStore {
    /// Loads the sums that a change of `bytes` touches.
    pub(super) fn prepare_sums(&self, object: &Object, shared: &mut Shared, bytes: Range<u64>) -> Result<()> {
        let (length, absent) = (shared.length, shared.sums.absent);
        shared.sums.prepare(bytes, length, |number| self.meta.segment(object.birth, number, absent))
    }

    /// Loads the sums that there are of the blocks of `bytes`, which are to become zeros.
    pub(super) fn prepare_punch(
        &self,
        object: &Object,
        shared: &mut Shared,
        bytes: Range<u64>,
    ) -> Result<()> {
        let segment_bytes = SEGMENT_BLOCKS * BLOCK_BYTES;
        for at in [bytes.start, bytes.end - 1] {
            self.prepare_sums(object, shared, at..at + 1)?;
        }
        let mut segments = bytes.start / segment_bytes..bytes.end.div_ceil(segment_bytes);
        loop {
            let page = self.meta.segments(object.birth, segments.clone(), PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            segments.start = last + 1;
            for number in page {
                let first = number * segment_bytes;
                self.prepare_sums(object, shared, first..(first + 1).min(shared.length))?;
            }
        }
    }

    /// The sums of the blocks of which a flush knows them only from the file.
    pub(super) fn read_back(&self, object: &Object) -> Result<BTreeMap<u64, u32>> {
        let shared = read(&object.shared);
        let blocks = shared.sums.to_read_back(shared.length);
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

    /// Gives `work` the object as a subject of checks. The sums of blocks that changed since the last flush do not hold.
    pub(super) fn with_subject<T>(
        &self,
        object: &Object,
        shared: &Shared,
        file: &dyn DataFile,
        always: bool,
        work: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        let absent = shared.sums.absent;
        work(&Subject {
            id: &object.id,
            path: &|| self.path(&object.id),
            birth: object.birth,
            version: shared.flushed,
            length: shared.length,
            file,
            always,
            now: self.clock.now(),
            holds: &|block, stored| match shared.sums.find(block) {
                Found::Open | Found::Absent => false,
                Found::Changed(segment) => segment.get(index_in_segment(block)) == stored,
                Found::Stored => true,
            },
            load: &|number| self.meta.segment(object.birth, number, absent),
        })
    }
}
