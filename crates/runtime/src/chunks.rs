//! Records that are the chunks of an array: where each lies, which target owns it, and its elements.
//!
//! A chunk belongs to the target that holds most of its stored bytes. If several targets hold as many, it belongs to the one
//! that comes first in the file. Chunks that are not stored belong to targets by their numbers. The owner reads the bytes that
//! it has, pulls the rest, and decodes the chunk. Only chunks that are asked for are read; positions number them in ascending
//! order.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::{ChunkLocation, ChunkTable, FileRef, FormatError, FoundChunk, MAX_CHUNKS, wire};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step};
use gristmill_layout::{Layout, TargetIndex};

use crate::other_variables::{LocatedTable, OtherVariable, check_bounds, locate_tables, record_bytes};
use crate::{FileParts, RunError};

/// The chunks of an array that are folded. Record `i` of the request is chunk `numbers[i]` of the table. The kernel gets
/// blocks of one chunk each, at that number. If other variables are read too, their elements in the box of the chunk follow
/// the elements of the chunk.
#[derive(Clone, Debug)]
pub struct Chunks {
    lead: LocatedTable,
    others: Arc<[OtherVariable]>,
    numbers: Arc<[u64]>,
    /// The files of all tables.
    files: Arc<[FileRef]>,
}

/// The share of a target in the chunks that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkShare {
    /// Chunks that belong to the target.
    pub chunks: u64,
    /// Stored bytes that are read for these chunks, including those of other variables.
    pub bytes: u64,
    /// Bytes among these that lie on other targets.
    pub pulled: u64,
    /// Extents of bytes that lie on other targets.
    pub pulls: u64,
}

impl Chunks {
    /// Selects chunks of the table by their numbers, in ascending order. The files of the table lie one behind the other in the
    /// file that is read, in the table's order and without gaps.
    ///
    /// # Errors
    /// Returns an error if there are more than [`MAX_CHUNKS`] numbers, if they do not ascend, or if one is past the last chunk.
    pub fn new(table: Arc<ChunkTable>, numbers: Vec<u64>) -> Result<Chunks, RunError> {
        Chunks::with_others(table, Vec::new(), numbers)
    }

    /// Selects chunks as [`new`](Chunks::new) does, and reads other variables of the same shape together with them. `others` are
    /// the tables of these variables. All files lie one behind the other: those of the first table, then those of each other
    /// table that are not there yet ([`files`](Chunks::files)).
    ///
    /// # Errors
    /// It fails as [`new`](Chunks::new) does. The error is [`RunError::SideBySide`] if shapes differ, if the chunks are too
    /// large together, or if they overlap too often.
    pub fn with_others(
        table: Arc<ChunkTable>,
        others: Vec<Arc<ChunkTable>>,
        numbers: Vec<u64>,
    ) -> Result<Chunks, RunError> {
        let refuse = |why: String| Err(FormatError::Table { why }.into());
        if numbers.len() > MAX_CHUNKS {
            let what = "chunks that are asked for".to_owned();
            return Err(
                FormatError::Limit { what, found: numbers.len() as u64, max: MAX_CHUNKS as u64 }.into()
            );
        }
        let ascending = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || numbers.last().is_some_and(|last| *last >= table.array.chunks()) {
            return refuse(
                "the chunks that are asked for do not ascend, or one is past the last chunk".into(),
            );
        }
        let Some((all, files)) = locate_tables([table].into_iter().chain(others).collect()) else {
            return refuse("its files have more bytes than 64 bits can count".into());
        };
        let mut all = all.into_iter();
        let Some(lead) = all.next() else { return refuse("there is no table".into()) };
        let array = &lead.table.array;
        let others = all
            .map(|located| OtherVariable::new(array, located))
            .collect::<Result<Vec<OtherVariable>, _>>()?;
        check_bounds(array, &others, &numbers)?;
        Ok(Chunks { lead, others: others.into(), numbers: numbers.into(), files: files.into() })
    }

    /// Number of chunks.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The table of the lead.
    pub fn table(&self) -> &Arc<ChunkTable> {
        &self.lead.table
    }

    /// The tables of the other variables.
    pub fn other_tables(&self) -> impl Iterator<Item = &Arc<ChunkTable>> {
        self.others.iter().map(|other| &other.located.table)
    }

    /// The files with the chunks, in the order in which they are read as one file.
    pub fn files(&self) -> &[FileRef] {
        &self.files
    }

    pub(crate) fn others(&self) -> &[OtherVariable] {
        &self.others
    }

    /// The chunks of other variables that overlap a chunk: the index of the variable, the number of the chunk, and its stored
    /// bytes.
    pub(crate) fn overlapping(&self, number: u64) -> impl Iterator<Item = ((usize, u64), StoredBytes<'_>)> {
        let extent = if self.others.is_empty() { None } else { self.table().array.extent(number) };
        self.others.iter().enumerate().flat_map(move |(variable, other)| {
            let overlaps = extent.as_ref().map(|extent| other.overlapping(extent)).unwrap_or_default();
            let found = move |overlap| Some(((variable, overlap), other.located.stored(overlap)?));
            overlaps.into_iter().filter_map(found)
        })
    }

    /// The array, as bytes. The decoded elements of all chunks depend on it and on the stored bytes only.
    pub fn array_identity(&self) -> Vec<u8> {
        wire::array(&self.table().array)
    }

    /// The number of a chunk and the place of its stored bytes, as bytes; `None` if the table has no such chunk. For the same
    /// array and the same file that is read, the decoded elements depend on nothing else. A table with a wrong place gives
    /// the identity of other bytes, never of these bytes.
    pub fn identity(&self, number: u64) -> Option<Vec<u8>> {
        let mut out = number.to_le_bytes().to_vec();
        match self.lead.find(number)? {
            FoundChunk::Missing => {}
            FoundChunk::At(ChunkLocation { chunk: _, file: _, offset, bytes, mask }) => {
                out.push(1);
                out.extend(offset.to_le_bytes());
                out.extend(bytes.to_le_bytes());
                out.extend(mask.to_le_bytes());
            }
            FoundChunk::Inline(bytes) => {
                out.push(2);
                out.extend_from_slice(bytes);
            }
        }
        Some(out)
    }

    pub(crate) fn number(&self, position: u64) -> Option<u64> {
        self.numbers.get(usize::try_from(position).ok()?).copied()
    }

    /// The number and the place of the chunk at a position.
    fn find(&self, position: u64) -> Result<(u64, FoundChunk<'_>), RunError> {
        let none = || RunError::from(FormatError::Table { why: format!("there is no chunk at {position}") });
        let number = self.number(position).ok_or_else(none)?;
        Ok((number, self.lead.find(number).ok_or_else(none)?))
    }

    /// The owner of the chunk at a position, and its share in this chunk.
    fn owner(&self, position: u64, layout: &Layout) -> Result<(TargetIndex, ChunkShare), RunError> {
        let (number, found) = self.find(position)?;
        let lead = match found {
            FoundChunk::At(place) => Some(place.offset..place.offset.saturating_add(place.bytes)),
            _ => None,
        };
        let others = self.overlapping(number).filter_map(|(_, stored)| match stored {
            StoredBytes::At(range, _) => Some(range),
            _ => None,
        });
        let stored = lead.into_iter().chain(others).filter(|range| !range.is_empty());
        Ok(holder(layout, stored).unwrap_or_else(|| {
            let targets = u64::from(layout.targets().max(1));
            ((number % targets) as TargetIndex, ChunkShare { chunks: 1, ..ChunkShare::default() })
        }))
    }

    /// The share of each target of a file with this layout; `length` is the length of the file in bytes.
    ///
    /// # Errors
    /// Returns an error if a table does not fit the file.
    pub fn shares(&self, layout: &Layout, length: u64) -> Result<Vec<ChunkShare>, RunError> {
        self.check(length)?;
        let mut shares = vec![ChunkShare::default(); layout.targets() as usize];
        for position in 0..self.len() {
            let (owner, share) = self.owner(position, layout)?;
            if let Some(all) = shares.get_mut(owner as usize) {
                all.chunks += share.chunks;
                all.bytes += share.bytes;
                all.pulled += share.pulled;
                all.pulls += share.pulls;
            }
        }
        Ok(shares)
    }

    /// Checks the tables against the length of the file that is read.
    fn check(&self, length: u64) -> Result<(), RunError> {
        let mut lengths: Vec<u64> = self.files.iter().map(|file| file.length).collect();
        // The table has the lengths that files had; for the last, or the only one, its present length counts.
        if let Some((last, before)) = lengths.split_last_mut() {
            *last = length.saturating_sub(before.iter().sum());
        }
        self.lead.check(&lengths)?;
        self.others.iter().try_for_each(|other| other.located.check(&lengths))
    }
}

/// Chunks with their owners in one file.
#[derive(Clone, Debug)]
pub(crate) struct OwnedChunks {
    pub chunks: Chunks,
    owners: Arc<[TargetIndex]>,
    /// Bytes of the record of a chunk that has its whole length along each axis.
    pub bytes: u64,
}

impl OwnedChunks {
    /// Checks the tables against the file and finds the owners.
    pub fn new(chunks: Chunks, file: &FileParts) -> Result<OwnedChunks, RunError> {
        chunks.check(file.length)?;
        let mut owners = Vec::with_capacity(chunks.numbers.len());
        for position in 0..chunks.len() {
            owners.push(chunks.owner(position, &file.layout)?.0);
        }
        let bytes = record_bytes(&chunks.table().array, chunks.others());
        Ok(OwnedChunks { chunks, owners: owners.into(), bytes })
    }

    fn owner(&self, position: u64) -> Option<TargetIndex> {
        self.owners.get(usize::try_from(position).ok()?).copied()
    }
}

/// The target that holds most of these bytes, and its share in one chunk. If several targets hold as many, it is the one that
/// comes first. `None` if there are no bytes.
fn holder(layout: &Layout, ranges: impl Iterator<Item = Range<u64>>) -> Option<(TargetIndex, ChunkShare)> {
    let mut bytes = 0u64;
    // Bytes and extents of each target.
    let mut held: Vec<(TargetIndex, u64, u64)> = Vec::new();
    let extents = ranges.flat_map(|range| {
        bytes = bytes.saturating_add(range.end - range.start);
        layout.extents(range)
    });
    for extent in extents {
        let bytes = extent.file.end - extent.file.start;
        match held.iter_mut().find(|(target, ..)| *target == extent.target) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + bytes, *count + 1),
            None => held.push((extent.target, bytes, 1)),
        }
    }
    let most = held.iter().map(|(_, bytes, _)| *bytes).max()?;
    let owner = held.iter().find(|(_, bytes, _)| *bytes == most).map_or(0, |(target, ..)| *target);
    let others = held.iter().filter(|(target, ..)| *target != owner);
    let pulls = others.map(|(_, _, count)| count).sum();
    Some((owner, ChunkShare { chunks: 1, bytes, pulled: bytes - most, pulls }))
}

/// A chunk that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRead<'a> {
    pub position: u64,
    pub number: u64,
    pub bytes: StoredBytes<'a>,
}

/// Place of the stored bytes of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredBytes<'a> {
    /// The bytes are in this range of the file. The mask has a bit for each filter that was not applied.
    At(Range<u64>, u32),
    /// The bytes are in the table.
    Inline(&'a [u8]),
    /// The chunk is not stored; it reads as the fill value.
    Missing,
    /// The bytes are not needed, because this summary suffices.
    Settled(Vec<u8>),
}

impl ChunkRead<'_> {
    /// Range of the file that must be read; empty if nothing must be read.
    pub fn range(&self) -> Range<u64> {
        match &self.bytes {
            StoredBytes::At(range, _) => range.clone(),
            _ => 0..0,
        }
    }
}

impl OwnedChunks {
    /// Takes chunks of a target from the start of `positions`: as many as have at most `most` stored bytes together, and at
    /// least one. `settled` gives the summary that suffices instead of a chunk, by position and number. `other_bytes` gives the
    /// number of bytes of other variables that are read with a chunk.
    pub fn take(
        &self,
        target: TargetIndex,
        positions: &mut Range<u64>,
        most: u64,
        settled: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
        other_bytes: &dyn Fn(u64) -> u64,
    ) -> Result<Vec<ChunkRead<'_>>, RunError> {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while let Some(position) = positions.clone().next() {
            if self.owner(position) == Some(target) {
                let (number, found) = self.chunks.find(position)?;
                let bytes = match found {
                    _ if let Some(summary) = settled(position, number) => StoredBytes::Settled(summary),
                    FoundChunk::At(place) => {
                        StoredBytes::At(place.offset..place.offset + place.bytes, place.mask)
                    }
                    FoundChunk::Inline(bytes) => StoredBytes::Inline(bytes),
                    FoundChunk::Missing => StoredBytes::Missing,
                };
                let read = ChunkRead { position, number, bytes };
                sum += read.range().end - read.range().start + other_bytes(number);
                if sum > most && !taken.is_empty() {
                    break;
                }
                taken.push(read);
            }
            positions.start += 1;
        }
        Ok(taken)
    }
}

/// A kernel whose records are the chunks that are asked for, by position. It gives the chunks to a kernel over all chunks, by
/// number.
pub(crate) struct NumberedKernel {
    pub kernel: Arc<dyn Kernel>,
    pub numbers: Arc<[u64]>,
}

struct NumberedFold {
    fold: Box<dyn Fold>,
    numbers: Arc<[u64]>,
}

impl NumberedKernel {
    pub fn new(kernel: Arc<dyn Kernel>, chunks: &Chunks) -> NumberedKernel {
        NumberedKernel { kernel, numbers: chunks.numbers.clone() }
    }

    fn fold(&self, fold: Box<dyn Fold>) -> Box<dyn Fold> {
        Box::new(NumberedFold { fold, numbers: self.numbers.clone() })
    }
}

impl Kernel for NumberedKernel {
    fn spec(&self) -> Spec {
        self.kernel.spec()
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.begin(ctx)?))
    }
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.restore(ctx, state)?))
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        self.kernel.advance(ctx, whole)
    }
    fn summary_suffices(&self, position: u64, summary: &[u8]) -> bool {
        let number = usize::try_from(position).ok().and_then(|position| self.numbers.get(position));
        number.is_some_and(|number| self.kernel.summary_suffices(*number, summary))
    }
    fn summary_key(&self) -> Option<Vec<u8>> {
        self.kernel.summary_key()
    }
}

impl Fold for NumberedFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        // A block of another count is skipped: after a stop between two chunks a block has no records.
        let number = usize::try_from(block.first()).ok().and_then(|position| self.numbers.get(position));
        match number {
            Some(number) if block.count() == 1 => {
                let block = Block::new(*number, 1, block.data()).with_summary(block.summary());
                self.fold.update(&block, sink)
            }
            _ => Ok(Step::Took(block.count())),
        }
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.fold.save(out);
    }
    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError> {
        self.fold.merge(later, sink)
    }
    fn summary(&mut self) -> Option<Vec<u8>> {
        self.fold.summary()
    }
}
