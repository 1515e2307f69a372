//! The sums of one object in memory, and their changes.
//!
//! SQLite has the sums of the last flush. Later changes are here, under the lock of the object's bytes, so that readers
//! see bytes and sums of one state. A change has two steps. `prepare` loads the sums that may change, and may fail.
//! Then the bytes are written, and the update of their sums never fails.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Result;
use crate::sums::{BLOCK_BYTES, BlockSum, Gaps, Pieces, SEGMENT_BLOCKS, Segment, sum};

/// Most blocks of one object that are written only in part. If there are more, the first one is closed: its sum stays
/// known only if the sums of its parts give it.
const MAX_OPEN_BLOCKS: usize = 1_024;

/// Segments of one object that may have changed before the next write flushes them: 4 GiB of bytes in order.
pub(super) const MAX_CHANGED_SEGMENTS: usize = 128;

/// Most blocks that one flush reads because their sums cannot be joined from parts. The others are unknown until a
/// scrub.
const MAX_BLOCKS_READ_BACK: usize = 1_024;

pub(super) struct ObjectSums {
    /// The sum of blocks without a segment in SQLite: zeros, or unknown in an object of a store without sums.
    pub(super) default_sum: BlockSum,
    /// Segments that may have changed since the last flush.
    changed: BTreeMap<u64, Segment>,
    /// Blocks that were written in part since the last flush. Their entries in `changed` are not valid.
    open: BTreeMap<u64, Pieces>,
    /// Number of a segment. The bytes of it and of all later segments in SQLite were cut off since the last flush.
    cut: Option<u64>,
}

/// Changes of the sums that a flush stores.
#[derive(Default, Clone)]
pub(super) struct SumChanges {
    /// Segments from this one on are removed before `segments` are stored.
    pub(super) cut: Option<u64>,
    pub(super) segments: BTreeMap<u64, Segment>,
}

/// Source of the sum of a block.
pub(super) enum SumSource<'a> {
    /// No source: the block was written in part since the last flush.
    Open,
    Changed(&'a Segment),
    Stored,
    /// There is no segment.
    Absent,
}

pub(super) fn segment_of(block: u64) -> u64 {
    block / SEGMENT_BLOCKS
}

pub(super) fn index_in_segment(block: u64) -> usize {
    (block % SEGMENT_BLOCKS) as usize
}

/// The blocks that `bytes` overlap.
pub(super) fn blocks_of(bytes: &Range<u64>) -> Range<u64> {
    if bytes.is_empty() { 0..0 } else { bytes.start / BLOCK_BYTES..bytes.end.div_ceil(BLOCK_BYTES) }
}

/// Length of block `block` in an object of `length` bytes.
pub(super) fn bytes_in_block(block: u64, length: u64) -> u64 {
    length.saturating_sub(block * BLOCK_BYTES).min(BLOCK_BYTES)
}

impl ObjectSums {
    pub(super) fn new(default_sum: BlockSum) -> Self {
        Self { default_sum, changed: BTreeMap::new(), open: BTreeMap::new(), cut: None }
    }

    /// Whether so many segments changed that a flush is necessary.
    pub(super) fn is_full(&self) -> bool {
        self.changed.len() > MAX_CHANGED_SEGMENTS
    }

    pub(super) fn source(&self, block: u64) -> SumSource<'_> {
        let segment = segment_of(block);
        if self.open.contains_key(&block) {
            SumSource::Open
        } else if let Some(changed) = self.changed.get(&segment) {
            SumSource::Changed(changed)
        } else if self.is_cut(segment) {
            SumSource::Absent
        } else {
            SumSource::Stored
        }
    }

    fn is_cut(&self, segment: u64) -> bool {
        self.cut.is_some_and(|cut| segment >= cut)
    }

    /// Loads the segments that a change of `bytes` may change, in an object of `length` bytes. `load` reads a segment
    /// from SQLite.
    pub(super) fn prepare(
        &mut self,
        bytes: Range<u64>,
        length: u64,
        mut load: impl FnMut(u64) -> Result<Segment>,
    ) -> Result<()> {
        let touched = blocks_of(&bytes);
        let last = (bytes.end > length && length > 0).then(|| segment_of((length - 1) / BLOCK_BYTES));
        let segments = segment_of(touched.start)..touched.end.div_ceil(SEGMENT_BLOCKS);
        for segment in segments.chain(last) {
            self.load(segment, &mut load)?;
        }
        Ok(())
    }

    fn load(&mut self, segment: u64, load: &mut impl FnMut(u64) -> Result<Segment>) -> Result<()> {
        if !self.changed.contains_key(&segment) {
            let stored =
                if self.is_cut(segment) { Segment::filled_with(self.default_sum) } else { load(segment)? };
            self.changed.insert(segment, stored);
        }
        Ok(())
    }

    /// Notes that `data` was written at `offset` of an object that had `length` bytes before.
    pub(super) fn write(&mut self, offset: u64, data: &[u8], length: u64) {
        let end = offset + data.len() as u64;
        self.grow(length, end);
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let (block, start) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let (piece, tail) = rest.split_at((BLOCK_BYTES - start).min(rest.len() as u64) as usize);
            if piece.len() as u64 == BLOCK_BYTES {
                self.set_sum(block, BlockSum::Crc(sum(piece)));
            } else {
                let pieces = self.open_block(block, length);
                pieces.write(start, piece);
                if let Some(crc) = pieces.whole_sum() {
                    self.set_sum(block, BlockSum::Crc(crc));
                }
            }
            (at, rest) = (at + piece.len() as u64, tail);
        }
        while self.open.len() > MAX_OPEN_BLOCKS {
            let Some((block, pieces)) = self.open.pop_first() else { break };
            let known = pieces.sum(bytes_in_block(block, length.max(end)));
            self.set_sum(block, known.map_or(BlockSum::Unknown, BlockSum::Crc));
        }
    }

    /// Notes that a write of `bytes` failed, so they may have any values. The object has `length` bytes, as before.
    pub(super) fn mark_unknown(&mut self, bytes: Range<u64>, length: u64) {
        self.fill(blocks_of(&(bytes.start..bytes.end.min(length))), BlockSum::Unknown);
    }

    /// Notes that the bytes `start..end`, at least one, became zeros in an object of `length` bytes. All existing
    /// segments in this range must be loaded.
    pub(super) fn punch(&mut self, start: u64, end: u64, length: u64) {
        let whole = start.div_ceil(BLOCK_BYTES)..if end == length {
            end.div_ceil(BLOCK_BYTES)
        } else {
            end / BLOCK_BYTES
        };
        for at in [start, end - 1] {
            let first = at - at % BLOCK_BYTES;
            if !whole.contains(&(at / BLOCK_BYTES)) {
                let (from, to) = (start.max(first) - first, end.min(first + BLOCK_BYTES) - first);
                self.open_block(at / BLOCK_BYTES, length).zero(from, to);
            }
        }
        self.fill(whole, BlockSum::Zeros);
    }

    /// Sets the sums of all `blocks` in loaded segments to `sum`.
    fn fill(&mut self, blocks: Range<u64>, sum: BlockSum) {
        if blocks.is_empty() {
            return;
        }
        let gone: Vec<_> = self.open.range(blocks.clone()).map(|(&block, _)| block).collect();
        for block in gone {
            self.open.remove(&block);
        }
        let segments = segment_of(blocks.start)..=segment_of(blocks.end - 1);
        for (&number, segment) in self.changed.range_mut(segments) {
            let first = number * SEGMENT_BLOCKS;
            for block in blocks.start.max(first)..blocks.end.min(first + SEGMENT_BLOCKS) {
                segment.set(index_in_segment(block), sum);
            }
        }
    }

    /// Notes that the length of the object changed from `old` to `length`. A change of `length..` must be prepared.
    pub(super) fn resize(&mut self, old: u64, length: u64) {
        if length >= old {
            return self.grow(old, length);
        }
        let (last, at) = (length / BLOCK_BYTES, length % BLOCK_BYTES);
        if at > 0 {
            self.open_block(last, old).cut(at);
        }
        let gone = length.div_ceil(BLOCK_BYTES);
        self.open.split_off(&gone);
        let (segment, index) = (segment_of(gone), index_in_segment(gone));
        if index > 0
            && let Some(changed) = self.changed.get_mut(&segment)
        {
            changed.cut(index);
        }
        let cut = segment + u64::from(index > 0);
        self.changed.split_off(&cut);
        self.cut = Some(self.cut.map_or(cut, |before| before.min(cut)));
    }

    /// Opens the last block if the object grows, because zeros follow its bytes.
    fn grow(&mut self, old: u64, length: u64) {
        if length > old && !old.is_multiple_of(BLOCK_BYTES) {
            self.open_block(old / BLOCK_BYTES, old);
        }
    }

    /// Returns the pieces of a block that changes in part.
    fn open_block(&mut self, block: u64, length: u64) -> &mut Pieces {
        let bytes = bytes_in_block(block, length);
        let known = self.changed.get(&segment_of(block)).map(|segment| segment.get(index_in_segment(block)));
        self.open.entry(block).or_insert_with(|| match known.unwrap_or(BlockSum::Unknown) {
            _ if bytes == 0 => Pieces::with_gaps(Gaps::Zeros),
            BlockSum::Zeros => Pieces::with_gaps(Gaps::Zeros),
            BlockSum::Unknown => Pieces::with_gaps(Gaps::Unknown),
            BlockSum::Crc(crc) => Pieces::with_start(bytes, crc),
        })
    }

    fn set_sum(&mut self, block: u64, sum: BlockSum) {
        self.open.remove(&block);
        if let Some(segment) = self.changed.get_mut(&segment_of(block)) {
            segment.set(index_in_segment(block), sum);
        }
    }

    /// Blocks whose sums must be computed from the file, at most as many as one flush reads.
    pub(super) fn blocks_to_read_back(&self, length: u64) -> Vec<u64> {
        let lost =
            self.open.iter().filter(|&(&block, pieces)| pieces.sum(bytes_in_block(block, length)).is_none());
        lost.map(|(&block, _)| block).take(MAX_BLOCKS_READ_BACK).collect()
    }

    /// Closes the open blocks and returns the changes to store. `read_back`: the sums of blocks that were read.
    pub(super) fn close_blocks(&mut self, length: u64, read_back: &BTreeMap<u64, u32>) -> SumChanges {
        for (block, pieces) in std::mem::take(&mut self.open) {
            let known = pieces.sum(bytes_in_block(block, length)).or_else(|| read_back.get(&block).copied());
            self.set_sum(block, known.map_or(BlockSum::Unknown, BlockSum::Crc));
        }
        SumChanges { cut: self.cut, segments: self.changed.clone() }
    }

    /// Notes that the changes from [`close_blocks`](Self::close_blocks) are stored.
    pub(super) fn mark_flushed(&mut self) {
        (self.cut, self.changed) = (None, BTreeMap::new());
    }
}
