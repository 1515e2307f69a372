//! Bytes of a file from the parts that hold them, and the count of what that took.

use std::ops::Range;

use gristmill_layout::TargetIndex;

use crate::{FileParts, RunError};

/// What reading cost, and whose records were folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Bytes read by each target of its own part.
    pub read: Vec<u64>,
    /// Records folded by each target.
    pub records: Vec<u64>,
    /// Bytes that one target pulled from another.
    pub moved: u64,
    /// Messages between targets that this took.
    pub messages: u64,
}

impl Tally {
    pub fn new(targets: usize) -> Tally {
        Tally { read: vec![0; targets], records: vec![0; targets], moved: 0, messages: 0 }
    }

    pub fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.read.iter_mut().zip(&other.read) {
            *mine += theirs;
        }
        for (mine, theirs) in self.records.iter_mut().zip(&other.records) {
            *mine += theirs;
        }
        self.moved += other.moved;
        self.messages += other.messages;
    }
}

/// Fills `buffer`, which has the range's length, from whoever holds its bytes.
pub(crate) fn read_range(file: &FileParts, range: Range<u64>, buffer: &mut [u8]) -> Result<(), RunError> {
    read_as(file, None, range, buffer, &mut Tally::default())
}

/// The same, on behalf of a target: what others hold counts as moved.
pub(crate) fn read_as(
    file: &FileParts,
    owner: Option<TargetIndex>,
    range: Range<u64>,
    buffer: &mut [u8],
    tally: &mut Tally,
) -> Result<(), RunError> {
    let mut done = range.start;
    for extent in file.layout.extents(range.clone()) {
        let at = (extent.file.start - range.start) as usize;
        let len = extent.file.end - extent.file.start;
        let part = &mut buffer[at..at + len as usize];
        file.part(extent.target)?.read(extent.object, extent.object_offset, part)?;
        if let Some(read) = tally.read.get_mut(extent.target as usize) {
            *read += len;
        }
        if owner.is_some_and(|owner| owner != extent.target) {
            tally.moved += len;
            tally.messages += 1;
        }
        done = extent.file.end;
    }
    if done < range.end {
        return Err(RunError::Truncated { name: file.name.clone(), offset: done, length: file.length });
    }
    Ok(())
}
