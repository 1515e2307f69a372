//! The records that a fold gets at once.

use crate::Spec;

/// Aligned records for a fold: whole records only. Elements are little-endian in any byte order of the file.
///
/// Halo and records lie in one slice, so a block can be cut between any two records.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    first: u64,
    count: u64,
    bytes: &'a [u8],
    before: usize,
    after: usize,
    second: &'a [u8],
    summary: Summary<'a>,
}

/// Information about the only record of a block, in addition to its bytes. A summary is the result of an earlier
/// [`Fold::summary`](crate::Fold::summary) for the record. Only kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summary<'a> {
    /// No summary is given or requested.
    #[default]
    None,
    /// The summary replaces the record, which was not read, because
    /// [`Kernel::summary_suffices`](crate::Kernel::summary_suffices) said so.
    Substitute(&'a [u8]),
    /// A summary of the record is requested.
    Requested {
        /// The summary of the record that is known already, if there is one.
        known: Option<&'a [u8]>,
        /// Whether the record was so slow to read that a thorough summary is worth its time.
        thorough: bool,
    },
}

/// Longest summary of a record.
pub const MAX_SUMMARY_BYTES: usize = 512;

impl<'a> Block<'a> {
    /// A block of `count` positions from `first` on, without halo. A position is a record, or a byte for lines. `data`
    /// is empty for virtual records.
    pub const fn new(first: u64, count: u64, data: &'a [u8]) -> Block<'a> {
        Block { first, count, bytes: data, before: 0, after: 0, second: &[], summary: Summary::None }
    }

    /// Sets the summary of a block of one record.
    pub const fn with_summary(mut self, summary: Summary<'a>) -> Block<'a> {
        self.summary = summary;
        self
    }

    /// Declares the first `before` and the last `after` bytes of the block as halo, not records. If they are longer
    /// than the bytes together, `after` is cut first, then `before`.
    pub fn with_halo(mut self, before: usize, after: usize) -> Block<'a> {
        self.before = before.min(self.bytes.len());
        self.after = after.min(self.bytes.len() - self.before);
        self
    }

    /// Adds the same records of the second input.
    pub const fn with_second(mut self, second: &'a [u8]) -> Block<'a> {
        self.second = second;
        self
    }

    /// Position of the first record: its number, or its byte offset for lines.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Positions in the block: records, or bytes for lines.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Position after the last record.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The records.
    pub fn data(&self) -> &'a [u8] {
        &self.bytes[self.before..self.bytes.len() - self.after]
    }

    /// The `halo` records before the first; fewer at the start of the file.
    pub fn before(&self) -> &'a [u8] {
        &self.bytes[..self.before]
    }

    /// The `halo` records after the last; fewer at the end of the file.
    pub fn after(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - self.after..]
    }

    /// The same records of the second input; empty if there is none.
    pub const fn second(&self) -> &'a [u8] {
        self.second
    }

    /// The summary of its only record.
    pub const fn summary(&self) -> Summary<'a> {
        self.summary
    }

    /// The halo before the records, the records, and the halo after them.
    pub const fn bytes_with_halo(&self) -> &'a [u8] {
        self.bytes
    }

    /// The part from `from` to `to` (positions counted from the first) for a kernel that declared `spec`. Its halo on
    /// both sides comes from this block.
    pub fn part(&self, spec: &Spec, from: u64, to: u64) -> Block<'a> {
        let to = to.min(self.count);
        let from = from.min(to);
        let unit = spec.record.bytes() as usize;
        let halo = spec.halo as usize * unit;
        let records = self.bytes.len() - self.before - self.after;
        let start = self.before + (from as usize * unit).min(records);
        let end = self.before + (to as usize * unit).min(records);
        let low = start.saturating_sub(halo);
        let high = (end + halo).min(self.bytes.len());
        let second = spec.second.unwrap_or(0) as usize;
        let second = self.second.get(from as usize * second..to as usize * second).unwrap_or(&[]);
        Block {
            first: self.first + from,
            count: to - from,
            bytes: &self.bytes[low..high],
            before: start - low,
            after: high - end,
            second,
            summary: if to - from == self.count { self.summary } else { Summary::None },
        }
    }
}
