//! Records that are the chunks of an array: where each lies, which target owns it, and its elements.
//!
//! A chunk belongs to the target that holds most of its stored bytes. If several targets hold as many, it belongs to the one
//! that comes first in the file. Chunks that are not stored belong to targets by their numbers. The owner reads the bytes that
//! it has, pulls the rest, and decodes the chunk. Only chunks that are asked for are read; positions number them in ascending
//! order.

mod numbered;
mod owned;

use std::sync::Arc;

use gristmill_format::{ChunkLocation, ChunkTable, FileRef, FormatError, FoundChunk, MAX_CHUNKS, wire};
use gristmill_layout::{Layout, TargetIndex};

pub(crate) use self::numbered::NumberedKernel;
use self::owned::holder;
pub(crate) use self::owned::{ChunkRead, OwnedChunks, StoredBytes};
use crate::RunError;
use crate::other_variables::{LocatedTable, OtherVariable, check_bounds, locate_tables};

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
