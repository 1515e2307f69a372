//! Which records a target owns.

use std::ops::Range;

use crate::{FixedRecords, Layout, MAX_FILE_BYTES, Run, TargetIndex};

/// Records that start in one run of their owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owned<'a> {
    /// Where the owner has them: from the first byte of the first record, as far as the owner's bytes go on
    /// without a break or to the end of the last record. What lacks is in [`needs`](crate::needs).
    pub run: Run<'a>,
    /// The records; at least one.
    pub records: Range<u64>,
}

/// What `target` owns of the records `select`: runs in which at least one of them starts, in file order. Over
/// all targets every record of the selection appears exactly once.
///
/// Runs in which no record starts (records longer than a stripe) are stepped over: O(log file) work an item.
pub fn owned<'a>(
    layout: &'a Layout,
    records: &FixedRecords,
    select: Range<u64>,
    target: TargetIndex,
) -> OwnedRuns<'a> {
    OwnedRuns { layout, records: *records, left: records.cut(select), target }
}

/// See [`owned`].
#[derive(Debug, Clone)]
pub struct OwnedRuns<'a> {
    layout: &'a Layout,
    records: FixedRecords,
    left: Range<u64>,
    target: TargetIndex,
}

impl OwnedRuns<'_> {
    /// Go on with record `from`.
    pub(crate) fn skip_to(&mut self, from: u64) {
        self.left.start = self.left.start.max(from);
    }

    /// The last owned record before `end`, of those not yet handed out.
    pub(crate) fn last_before(&self, end: u64) -> Option<u64> {
        let among = self.left.start..self.left.end.min(end);
        self.layout.last_owned(&self.records, self.target, among)
    }
}

impl<'a> Iterator for OwnedRuns<'a> {
    type Item = Owned<'a>;

    fn next(&mut self) -> Option<Owned<'a>> {
        let first = self.layout.first_owned(&self.records, self.target, self.left.clone())?;
        let start = self.records.start_of(first);
        let mut run = self.layout.runs(self.target, start..MAX_FILE_BYTES).next()?;
        let end = self.records.starting_in(run.file.clone()).end.min(self.left.end);
        run.file.end = run.file.end.min(self.records.start_of(end));
        self.left.start = end;
        Some(Owned { run, records: first..end })
    }
}
