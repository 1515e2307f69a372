//! Variables that are read together with the chunks of a lead: where their chunks are, and which of them overlap a chunk of
//! the lead.
//!
//! The record of a chunk is its elements, and behind them the elements of each other variable over the same box, in the shape
//! in which the chunk is held. If both variables have the same chunks, that is one chunk of each. Otherwise a box is assembled
//! from all chunks that overlap it. Elements outside the array mean nothing.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{Array, ChunkLocation, ChunkTable, Extent, FileRef, FoundChunk, MAX_CHUNK_BYTES};

use crate::RunError;
use crate::assembly::MAX_CACHED_BYTES;
use crate::chunks::StoredBytes;

/// Most pairs of overlapping chunks of the lead and of other variables in a request. With more pairs each chunk would be read
/// again and again.
pub(crate) const MAX_OVERLAPS: u64 = 16 << 20;

/// Most times that a chunk of another variable may have to be read. More reads are more work than to move the chunk.
pub(crate) const MAX_READS: u64 = 8;

/// The chunks of a variable in the file that is read. This file has the bytes of several files one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct LocatedTable {
    pub table: Arc<ChunkTable>,
    /// Offset of each file of the table in the file that is read, in bytes.
    pub starts: Arc<[u64]>,
    /// Index of the table's first file among all files.
    pub first: usize,
}

impl LocatedTable {
    /// The chunk with this number, located in the file that is read.
    pub fn find(&self, number: u64) -> Option<FoundChunk<'_>> {
        Some(match self.table.find(number)? {
            FoundChunk::At(place) => {
                let start = self.starts.get(place.file as usize).copied()?;
                FoundChunk::At(ChunkLocation { offset: place.offset.saturating_add(start), ..place })
            }
            found => found,
        })
    }

    pub fn stored(&self, number: u64) -> Option<StoredBytes<'_>> {
        Some(match self.find(number)? {
            FoundChunk::At(place) => {
                StoredBytes::At(place.offset..place.offset.saturating_add(place.bytes), place.mask)
            }
            FoundChunk::Inline(bytes) => StoredBytes::Inline(bytes),
            FoundChunk::Missing => StoredBytes::Missing,
        })
    }

    /// Checks the table against the lengths of all files.
    pub fn check(&self, lengths: &[u64]) -> Result<(), RunError> {
        let own = lengths.get(self.first..self.first + self.table.files.len()).unwrap_or(&[]);
        Ok(self.table.check(own)?)
    }
}

/// Lays the files of several tables one behind the other. Tables over the same files share them. `None`: there are more bytes
/// than 64 bits can count.
pub(crate) fn locate_tables(tables: Vec<Arc<ChunkTable>>) -> Option<(Vec<LocatedTable>, Vec<FileRef>)> {
    let (mut files, mut next) = (Vec::<FileRef>::new(), 0u64);
    let mut all: Vec<LocatedTable> = Vec::new();
    for table in tables {
        if let Some(same) = all.iter().find(|one| one.table.files == table.files) {
            let (starts, first) = (same.starts.clone(), same.first);
            all.push(LocatedTable { table, starts, first });
            continue;
        }
        let mut starts = Vec::with_capacity(table.files.len());
        for file in &table.files {
            starts.push(next);
            next = next.checked_add(file.length)?;
        }
        let first = files.len();
        files.extend(table.files.iter().cloned());
        all.push(LocatedTable { table, starts: starts.into(), first });
    }
    Some((all, files))
}

/// A variable that is read together with the lead.
#[derive(Clone, Debug)]
pub(crate) struct OtherVariable {
    pub located: LocatedTable,
    /// Whether its chunks are the boxes of the lead, held in the same shapes.
    pub same_chunks: bool,
}

impl OtherVariable {
    /// Checks that a variable can be read together with the lead.
    pub fn new(lead: &Array, located: LocatedTable) -> Result<OtherVariable, RunError> {
        let array = &located.table.array;
        if array.shape != lead.shape {
            let why = format!(
                "their shapes are {:?} and {:?}; give variables of the same shape",
                lead.shape, array.shape
            );
            return Err(RunError::SideBySide { why });
        }
        if array.chunk.len() != lead.shape.len() || array.chunk.contains(&0) {
            return Err(RunError::SideBySide { why: "the chunks of a variable do not form a grid".into() });
        }
        let same_chunks = array.chunk == lead.chunk && array.edges == lead.edges;
        Ok(OtherVariable { located, same_chunks })
    }

    /// The chunks that overlap a chunk of the lead, along each axis.
    fn spans(&self, lead: &Extent) -> Vec<Range<u64>> {
        let axes = lead.origin.iter().zip(&lead.clipped).zip(&self.located.table.array.chunk);
        let span = |((origin, length), chunk): ((&u64, &u64), &u64)| {
            origin / chunk..origin.saturating_add(*length).div_ceil(*chunk)
        };
        axes.map(span).collect()
    }

    /// Number of chunks that overlap a chunk of the lead.
    pub fn overlap_count(&self, lead: &Extent) -> u64 {
        let spans = self.spans(lead);
        spans.iter().fold(1u64, |all, span| all.saturating_mul(span.end.saturating_sub(span.start)))
    }

    /// Numbers of the chunks that overlap a chunk of the lead, ascending. [`check_bounds`] bounds them by [`MAX_OVERLAPS`].
    pub fn overlapping(&self, lead: &Extent) -> Vec<u64> {
        let grid = self.located.table.array.grid();
        let mut numbers = vec![0u64];
        for (span, count) in self.spans(lead).into_iter().zip(grid) {
            let further = |number: &u64| {
                let first = number * count;
                span.clone().map(move |at| first + at)
            };
            numbers = numbers.iter().flat_map(further).collect();
        }
        numbers
    }
}

/// Checks that the records of these chunks are no larger than a chunk may be, that no chunk is read more than [`MAX_READS`]
/// times, and that there are at most [`MAX_OVERLAPS`] overlaps.
pub(crate) fn check_bounds(lead: &Array, others: &[OtherVariable], numbers: &[u64]) -> Result<(), RunError> {
    if others.is_empty() {
        return Ok(());
    }
    let bytes = record_bytes(lead, others);
    if bytes > MAX_CHUNK_BYTES {
        let why = format!(
            "a chunk of all variables has {bytes} bytes, and at most {MAX_CHUNK_BYTES} bytes can be read; use fewer variables"
        );
        return Err(RunError::SideBySide { why });
    }
    let mut all = 0u64;
    let part = spanned_lengths(lead, numbers);
    for other in others.iter().filter(|other| !other.same_chunks) {
        let reads = reads_per_chunk(lead, &other.located.table.array, &part);
        if reads > MAX_READS {
            let why = format!(
                "their chunks differ so much that a chunk would be read {reads} times, and the limit is {MAX_READS}; \
                 select less, or store one variable in the chunks of the other"
            );
            return Err(RunError::SideBySide { why });
        }
        for number in numbers {
            all = all.saturating_add(lead.extent(*number).map_or(0, |extent| other.overlap_count(&extent)));
            if all > MAX_OVERLAPS {
                let why = format!(
                    "their chunks overlap more than {MAX_OVERLAPS} times; store them in chunks of one shape"
                );
                return Err(RunError::SideBySide { why });
            }
        }
    }
    Ok(())
}

/// Elements along each axis from the first to the last chunk with these numbers.
fn spanned_lengths(lead: &Array, numbers: &[u64]) -> Vec<u64> {
    let mut ends: Vec<(u64, u64)> = vec![(u64::MAX, 0); lead.shape.len()];
    for extent in numbers.iter().filter_map(|number| lead.extent(*number)) {
        for (end, (origin, length)) in ends.iter_mut().zip(extent.origin.iter().zip(&extent.clipped)) {
            *end = (end.0.min(*origin), end.1.max(origin + length));
        }
    }
    ends.into_iter().map(|(first, end)| end.saturating_sub(first)).collect()
}

/// Estimates how often a chunk of another variable is read for the records of a lead. `part` is the number of elements along
/// each axis that the records span.
///
/// Records come in C order. So between two records that overlap a chunk along some axis lie all records along the inner axes.
/// The chunks that these overlap stay in the cache if the cache of a lane has room for them.
pub fn reads_per_chunk(lead: &Array, other: &Array, part: &[u64]) -> u64 {
    let along = |array: &Array, axis: usize| array.chunk[axis].min(part[axis]).max(1);
    let axes = lead.chunk.len().min(other.chunk.len()).min(part.len());
    let mut reads = 1u64;
    for axis in 0..axes {
        let (step, length) = (along(lead, axis), along(other, axis));
        let overlaps = match (length % step, step % length) {
            (0, _) => length / step,
            (_, 0) => 1,
            _ => (length - 1) / step + 2,
        };
        let overlaps = overlaps.min(part[axis].div_ceil(step));
        if overlaps <= 1 {
            continue;
        }
        let outer = (0..axis).map(|axis| along(lead, axis).max(along(other, axis)));
        let inner = part.get(axis + 1..axes).unwrap_or(&[]).iter().copied();
        let between = outer.chain([length]).chain(inner);
        let bytes = between.fold(other.dtype.size() as u64, u64::saturating_mul);
        if bytes > MAX_CACHED_BYTES as u64 {
            reads = reads.saturating_mul(overlaps);
        }
    }
    reads
}

/// Bytes of the record of a chunk that has its whole length along each axis.
pub(crate) fn record_bytes(lead: &Array, others: &[OtherVariable]) -> u64 {
    let elements = lead.chunk_bytes() / lead.dtype.size() as u64;
    let other_bytes = others.iter().map(|other| other.located.table.array.dtype.size() as u64).sum::<u64>();
    lead.chunk_bytes().saturating_add(elements.saturating_mul(other_bytes))
}
