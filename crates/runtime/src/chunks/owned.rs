//! The owner of each chunk, and the chunks that a target takes to read.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::FoundChunk;
use gristmill_layout::{Layout, TargetIndex};

use super::{ChunkShare, Chunks};
use crate::other_variables::record_bytes;
use crate::{FileParts, RunError};

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
pub(super) fn holder(
    layout: &Layout,
    ranges: impl Iterator<Item = Range<u64>>,
) -> Option<(TargetIndex, ChunkShare)> {
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
    if layout.is_in_place() {
        return Some((owner, ChunkShare { chunks: 1, bytes, pulled: 0, pulls: 0 }));
    }
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
    /// The stored bytes of the chunks of a target at these positions, without those that `left_out` names by their numbers.
    pub fn stored_in(
        &self,
        target: TargetIndex,
        positions: Range<u64>,
        left_out: &dyn Fn(u64) -> bool,
    ) -> Vec<Range<u64>> {
        let own = positions.filter(|position| self.owner(*position) == Some(target));
        let stored = own.filter_map(|position| match self.chunks.find(position).ok()? {
            (number, FoundChunk::At(place)) if !left_out(number) => {
                Some(place.offset..place.offset.saturating_add(place.bytes))
            }
            _ => None,
        });
        stored.collect()
    }

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
