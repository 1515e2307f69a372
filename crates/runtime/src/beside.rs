//! Further variables beside the chunks of an array: where their chunks are, and which of them meet a chunk of the lead.
//!
//! The record of a chunk is its elements, and behind them those of each further variable over the same box, in the shape in
//! which the chunk is held. Where both variables are cut alike that is one chunk of each; elsewhere a box is put together from
//! all chunks that meet it. Elements outside the array mean nothing.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{Array, ChunkLocation, ChunkTable, Extent, FileRef, FoundChunk, MAX_CHUNK_BYTES};

use crate::RunError;
use crate::assembly::MAX_KEPT;
use crate::chunks::Stored;

/// Most meetings of a chunk of the lead with one of another variable in a request: beyond it the two are cut so differently
/// that each chunk would be read over and over.
pub(crate) const MAX_MEETINGS: u64 = 16 << 20;

/// Most times that a chunk of another variable may have to be read: more is more work than to move it.
pub(crate) const MAX_READS: u64 = 8;

/// The chunks of a variable in the file that is read, which has the bytes of several files one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub table: Arc<ChunkTable>,
    /// Where the files of the table begin.
    pub starts: Arc<[u64]>,
    /// Which of all files is the table's first.
    pub first: usize,
}

impl Located {
    /// What is known of a chunk; its place is one in the file that is read.
    pub fn find(&self, number: u64) -> Option<FoundChunk<'_>> {
        Some(match self.table.find(number)? {
            FoundChunk::At(place) => {
                let start = self.starts.get(place.file as usize).copied()?;
                FoundChunk::At(ChunkLocation { offset: place.offset.saturating_add(start), ..place })
            }
            found => found,
        })
    }

    pub fn stored(&self, number: u64) -> Option<Stored<'_>> {
        Some(match self.find(number)? {
            FoundChunk::At(place) => {
                Stored::At(place.offset..place.offset.saturating_add(place.bytes), place.mask)
            }
            FoundChunk::Inline(bytes) => Stored::Inline(bytes),
            FoundChunk::Missing => Stored::Missing,
        })
    }

    /// Checks the table against the lengths of all files.
    pub fn check(&self, lengths: &[u64]) -> Result<(), RunError> {
        let own = lengths.get(self.first..self.first + self.table.files.len()).unwrap_or(&[]);
        Ok(self.table.check(own)?)
    }
}

/// Lays the files of several tables one behind the other. Tables over the same files have them in common.
pub(crate) fn located(tables: Vec<Arc<ChunkTable>>) -> Option<(Vec<Located>, Vec<FileRef>)> {
    let (mut files, mut next) = (Vec::<FileRef>::new(), 0u64);
    let mut all: Vec<Located> = Vec::new();
    for table in tables {
        if let Some(same) = all.iter().find(|one| one.table.files == table.files) {
            let (starts, first) = (same.starts.clone(), same.first);
            all.push(Located { table, starts, first });
            continue;
        }
        let mut starts = Vec::with_capacity(table.files.len());
        for file in &table.files {
            starts.push(next);
            next = next.checked_add(file.length)?;
        }
        let first = files.len();
        files.extend(table.files.iter().cloned());
        all.push(Located { table, starts: starts.into(), first });
    }
    Some((all, files))
}

/// A further variable.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub located: Located,
    /// Whether its chunks are the lead's boxes, held in the same shapes.
    pub alike: bool,
}

impl Other {
    /// Checks that a variable can be read beside the lead.
    pub fn new(lead: &Array, located: Located) -> Result<Other, RunError> {
        let array = &located.table.array;
        if array.shape != lead.shape {
            let why = format!("their shapes are {:?} and {:?}; they must be one", lead.shape, array.shape);
            return Err(RunError::Beside { why });
        }
        if array.chunk.len() != lead.shape.len() || array.chunk.contains(&0) {
            return Err(RunError::Beside { why: "its chunks make no grid".into() });
        }
        let alike = array.chunk == lead.chunk && array.edges == lead.edges;
        Ok(Other { located, alike })
    }

    /// The chunks that meet one of the lead, along each axis.
    fn spans(&self, lead: &Extent) -> Vec<Range<u64>> {
        let axes = lead.origin.iter().zip(&lead.clipped).zip(&self.located.table.array.chunk);
        let span = |((origin, length), chunk): ((&u64, &u64), &u64)| {
            origin / chunk..origin.saturating_add(*length).div_ceil(*chunk)
        };
        axes.map(span).collect()
    }

    /// How many chunks meet one of the lead.
    pub fn meetings(&self, lead: &Extent) -> u64 {
        let spans = self.spans(lead);
        spans.iter().fold(1u64, |all, span| all.saturating_mul(span.end.saturating_sub(span.start)))
    }

    /// Their numbers, ascending. What was checked is bounded by [`MAX_MEETINGS`].
    pub fn meets(&self, lead: &Extent) -> Vec<u64> {
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

/// Checks that the records of these chunks are no larger than a chunk may be, and that no chunk is met too often.
pub(crate) fn bounded(lead: &Array, others: &[Other], numbers: &[u64]) -> Result<(), RunError> {
    if others.is_empty() {
        return Ok(());
    }
    let bytes = record_bytes(lead, others);
    if bytes > MAX_CHUNK_BYTES {
        let why = format!(
            "a chunk and what lies beside it have {bytes} bytes, and at most {MAX_CHUNK_BYTES} can be used"
        );
        return Err(RunError::Beside { why });
    }
    let mut all = 0u64;
    let part = part(lead, numbers);
    for other in others.iter().filter(|other| !other.alike) {
        let reads = reads(lead, &other.located.table.array, &part);
        if reads > MAX_READS {
            let why = format!(
                "so differently are they cut that a chunk would be read {reads} times, and at most {MAX_READS} is worth it; \
                 take less, or store one in the chunks of the other"
            );
            return Err(RunError::Beside { why });
        }
        for number in numbers {
            all = all.saturating_add(lead.extent(*number).map_or(0, |extent| other.meetings(&extent)));
            if all > MAX_MEETINGS {
                let why =
                    format!("their chunks meet more than {MAX_MEETINGS} times, so differently are they cut");
                return Err(RunError::Beside { why });
            }
        }
    }
    Ok(())
}

/// How much of each axis chunks with these numbers span.
fn part(lead: &Array, numbers: &[u64]) -> Vec<u64> {
    let mut ends: Vec<(u64, u64)> = vec![(u64::MAX, 0); lead.shape.len()];
    for extent in numbers.iter().filter_map(|number| lead.extent(*number)) {
        for (end, (origin, length)) in ends.iter_mut().zip(extent.origin.iter().zip(&extent.clipped)) {
            *end = (end.0.min(*origin), end.1.max(origin + length));
        }
    }
    ends.into_iter().map(|(first, end)| end.saturating_sub(first)).collect()
}

/// How often a chunk of another variable is read for the records of a lead, about. `part` is how much of each axis they span.
///
/// Records come in C order, so between two that meet a chunk along some axis lie all those along the axes inside it. What these
/// meet is kept if a lane has room for it.
pub fn reads(lead: &Array, other: &Array, part: &[u64]) -> u64 {
    let along = |array: &Array, axis: usize| array.chunk[axis].min(part[axis]).max(1);
    let axes = lead.chunk.len().min(other.chunk.len()).min(part.len());
    let mut reads = 1u64;
    for axis in 0..axes {
        let (step, length) = (along(lead, axis), along(other, axis));
        let meets = match (length % step, step % length) {
            (0, _) => length / step,
            (_, 0) => 1,
            _ => (length - 1) / step + 2,
        };
        let meets = meets.min(part[axis].div_ceil(step));
        if meets <= 1 {
            continue;
        }
        let outer = (0..axis).map(|axis| along(lead, axis).max(along(other, axis)));
        let inner = part.get(axis + 1..axes).unwrap_or(&[]).iter().copied();
        let between = outer.chain([length]).chain(inner);
        let bytes = between.fold(other.dtype.size() as u64, u64::saturating_mul);
        if bytes > MAX_KEPT as u64 {
            reads = reads.saturating_mul(meets);
        }
    }
    reads
}

/// Bytes of a whole record.
pub(crate) fn record_bytes(lead: &Array, others: &[Other]) -> u64 {
    let elements = lead.chunk_bytes() / lead.dtype.size() as u64;
    let beside = others.iter().map(|other| other.located.table.array.dtype.size() as u64).sum::<u64>();
    lead.chunk_bytes().saturating_add(elements.saturating_mul(beside))
}
