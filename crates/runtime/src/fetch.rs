//! Bytes of a file from the parts that hold them, and the count of what that took.

use std::ops::Range;
use std::time::Duration;

use gristmill_layout::{Extent, TargetIndex};

use crate::parts::Want;
use crate::pulls::Pulled;
use crate::{FileParts, RunError};

/// What reading cost, and whose records were folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes read by each target of its own part.
    pub read: Vec<u64>,
    /// Records folded by each target.
    pub records: Vec<u64>,
    /// Chunks among the records that were not read, because their statistics settled them.
    pub settled: u64,
    /// Bytes that one target pulled from another.
    pub moved: u64,
    /// Messages between targets that this took.
    pub messages: u64,
    /// Bytes that storage sent to whoever asked; 0 where nothing crossed a network.
    pub sent: u64,
    /// Processor time that lanes of this process used.
    pub lanes: Duration,
}

impl Tally {
    /// Nothing yet, of a file on so many targets.
    pub fn new(targets: usize) -> Tally {
        Tally { read: vec![0; targets], records: vec![0; targets], ..Tally::default() }
    }

    /// Adds what somebody else counted of the same file.
    pub fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.read.iter_mut().zip(&other.read) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.records.iter_mut().zip(&other.records) {
            *mine = mine.saturating_add(*theirs);
        }
        // What other nodes counted may be anything.
        self.settled = self.settled.saturating_add(other.settled);
        self.moved = self.moved.saturating_add(other.moved);
        self.messages = self.messages.saturating_add(other.messages);
        self.sent = self.sent.saturating_add(other.sent);
        self.lanes = self.lanes.saturating_add(other.lanes);
    }

    /// Bytes that a target read of its own part.
    pub(crate) fn own(&mut self, target: TargetIndex, bytes: u64) {
        if let Some(read) = self.read.get_mut(target as usize) {
            *read += bytes;
        }
    }

    /// A message that another target sent.
    pub(crate) fn pulled(&mut self, holder: TargetIndex, bytes: u64) {
        self.moved += bytes;
        self.messages += 1;
        self.own(holder, bytes);
    }
}

/// Fills `buffer`, which has the range's length, from whoever holds its bytes.
pub(crate) fn read_range(file: &FileParts, range: Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
    each_extent(file, range, buffer, |extent, part| {
        file.part(extent.target)?.read(extent.object, extent.object_offset, part)
    })
}

/// Hands every extent of the range out with its part of `buffer`; an error if the file ends before.
pub(crate) fn each_extent(
    file: &FileParts,
    range: Range<u64>,
    buffer: &mut [u8],
    mut read: impl FnMut(&Extent<'_>, &mut [u8]) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut done = range.start;
    for extent in file.layout.extents(range.clone()) {
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

/// What one owner sees of the file: its own part, what was pulled from others, what a look for the end of a line
/// brought along, and at last the others themselves.
pub(crate) struct Sight<'s> {
    pub file: &'s FileParts,
    pub owner: TargetIndex,
    pub pulled: &'s Pulled,
    /// Where a look began, and its bytes.
    pub look: (u64, &'s [u8]),
    pub tally: &'s mut Tally,
}

impl Sight<'_> {
    /// Fills `buffer`, which has the range's length.
    pub fn read(&mut self, range: Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
        let file = self.file;
        each_extent(file, range, buffer, |extent, buffer| {
            if extent.target != self.owner {
                return self.others(extent, buffer);
            }
            file.part(extent.target)?.read(extent.object, extent.object_offset, buffer)?;
            self.tally.own(extent.target, buffer.len() as u64);
            Ok(())
        })
    }

    /// Fills `buffer` with an extent that another target holds.
    pub fn others(&mut self, extent: &Extent<'_>, buffer: &mut [u8]) -> Result<(), RunError> {
        let Range { start, end } = extent.file;
        let mut at = start;
        while at < end {
            let room = &mut buffer[(at - start) as usize..];
            let seen = match self.pulled.from(at) {
                [] => at.checked_sub(self.look.0).and_then(|n| self.look.1.get(n as usize..)).unwrap_or(&[]),
                pulled => pulled,
            };
            if !seen.is_empty() {
                let len = seen.len().min(room.len());
                room[..len].copy_from_slice(&seen[..len]);
                at += len as u64;
                continue;
            }
            let to = self.pulled.next(at).min(end);
            let room = &mut room[..(to - at) as usize];
            let wants = [Want {
                object: extent.object,
                offset: extent.object_offset + (at - start),
                len: room.len(),
            }];
            self.file.part(extent.target)?.read_many(&wants, room)?;
            self.tally.pulled(extent.target, to - at);
            at = to;
        }
        Ok(())
    }
}
