//! Reads bytes of a file from the parts that hold them, and counts the cost.

use std::ops::Range;
use std::time::Duration;

use gristmill_layout::{Extent, Extents, TargetIndex};

use crate::parts::PartRange;
use crate::pulls::PulledBytes;
use crate::{FileParts, RunError};

/// The cost of reads, and the number of folded records of each target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes that each target read of its own part.
    pub read: Vec<u64>,
    /// Records that each target folded.
    pub records: Vec<u64>,
    /// Chunks that were not read because their statistics sufficed.
    pub settled: u64,
    /// Bytes that one target pulled from another.
    pub moved: u64,
    /// Messages between targets that this took.
    pub messages: u64,
    /// Bytes that storage sent to the client; 0 if no bytes crossed a network.
    pub sent: u64,
    /// Bytes that the storage of targets folded itself; they are among `read`.
    pub in_storage: u64,
    /// Processor time that lanes of this process used.
    pub lanes: Duration,
}

impl Tally {
    /// A tally of zeros for a file on this number of targets.
    pub fn new(targets: usize) -> Tally {
        Tally { read: vec![0; targets], records: vec![0; targets], ..Tally::default() }
    }

    /// Adds another tally of the same file.
    pub fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.read.iter_mut().zip(&other.read) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.records.iter_mut().zip(&other.records) {
            *mine = mine.saturating_add(*theirs);
        }
        // The counts of other nodes may be any numbers, so sums saturate.
        self.settled = self.settled.saturating_add(other.settled);
        self.moved = self.moved.saturating_add(other.moved);
        self.messages = self.messages.saturating_add(other.messages);
        self.sent = self.sent.saturating_add(other.sent);
        self.in_storage = self.in_storage.saturating_add(other.in_storage);
        self.lanes = self.lanes.saturating_add(other.lanes);
    }

    /// Counts bytes that a target read of its own part.
    pub(crate) fn count_own(&mut self, target: TargetIndex, bytes: u64) {
        if let Some(read) = self.read.get_mut(target as usize) {
            *read += bytes;
        }
    }

    /// Counts a message that another target sent.
    pub(crate) fn count_message(&mut self, holder: TargetIndex, bytes: u64) {
        self.moved += bytes;
        self.messages += 1;
        self.count_own(holder, bytes);
    }
}

/// Fills `buffer` with a range of the file, from the targets that hold the bytes. `buffer` has the length of the range.
pub(crate) fn read_range(file: &FileParts, range: Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
    each_extent(file, file.layout.extents(range.clone()), range, buffer, |extent, part| {
        file.part(extent.target)?.read(extent.object, extent.object_offset, part)
    })
}

/// Calls `read` with every extent of the range and its part of `buffer`. `extents` are those of the range. The error is
/// [`RunError::Truncated`] if the file ends before the range.
pub(crate) fn each_extent(
    file: &FileParts,
    extents: Extents<'_>,
    range: Range<u64>,
    buffer: &mut [u8],
    mut read: impl FnMut(&Extent<'_>, &mut [u8]) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut done = range.start;
    for extent in extents {
        let at = (extent.file.start - range.start) as usize;
        let len = (extent.file.end - extent.file.start) as usize;
        read(&extent, &mut buffer[at..at + len])?;
        done = extent.file.end;
    }
    if done < range.end {
        return Err(RunError::Truncated { name: file.name.clone(), offset: done, length: file.length });
    }
    Ok(())
}

/// The file as one owner reads it. It has its own part, the bytes that were pulled from others, and the bytes of a search
/// for the start of a line. Only other bytes are read from the other targets.
pub(crate) struct OwnerView<'s> {
    pub file: &'s FileParts,
    pub owner: TargetIndex,
    pub pulled: &'s PulledBytes,
    /// Offset in the file at which the search began, and its bytes.
    pub searched: (u64, &'s [u8]),
    pub tally: &'s mut Tally,
}

impl OwnerView<'_> {
    /// Fills `buffer` with a range of the file. `buffer` has the length of the range.
    pub fn read(&mut self, range: Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
        let file = self.file;
        let extents = file.layout.extents_for(self.owner, range.clone());
        each_extent(file, extents, range, buffer, |extent, buffer| {
            if extent.target != self.owner {
                return self.read_other(extent, buffer);
            }
            file.part(extent.target)?.read(extent.object, extent.object_offset, buffer)?;
            self.tally.count_own(extent.target, buffer.len() as u64);
            Ok(())
        })
    }

    /// Fills `buffer` with an extent that another target holds.
    pub fn read_other(&mut self, extent: &Extent<'_>, buffer: &mut [u8]) -> Result<(), RunError> {
        let Range { start, end } = extent.file;
        let mut at = start;
        while at < end {
            let room = &mut buffer[(at - start) as usize..];
            let known = match self.pulled.bytes_from(at) {
                [] => at
                    .checked_sub(self.searched.0)
                    .and_then(|n| self.searched.1.get(n as usize..))
                    .unwrap_or(&[]),
                pulled => pulled,
            };
            if !known.is_empty() {
                let len = known.len().min(room.len());
                room[..len].copy_from_slice(&known[..len]);
                at += len as u64;
                continue;
            }
            let to = self.pulled.next_start(at).min(end);
            let room = &mut room[..(to - at) as usize];
            let ranges = [PartRange {
                object: extent.object,
                offset: extent.object_offset + (at - start),
                len: room.len(),
            }];
            self.file.part(extent.target)?.read_many(&ranges, room)?;
            self.tally.count_message(extent.target, to - at);
            at = to;
        }
        Ok(())
    }
}
