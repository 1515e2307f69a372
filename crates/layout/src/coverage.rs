//! All bytes that one owner needs for a selection, its own included.

use std::ops::Range;

use crate::needs::with_halo;
use crate::{FixedRecords, Layout, OwnedRuns, TargetIndex, owned};

/// Bytes of the records that `owner` owns among `select`, and of their halo: ranges in file order that do not
/// overlap; neighbours may touch.
#[derive(Debug, Clone)]
pub(crate) struct Coverage<'a> {
    owned: OwnedRuns<'a>,
    pending: Option<Range<u64>>,
    records: FixedRecords,
    halo: u64,
    within: Range<u64>,
    /// Everything needed before this byte was handed out.
    done: u64,
}

impl<'a> Coverage<'a> {
    pub(crate) fn new(
        layout: &'a Layout,
        records: &FixedRecords,
        select: Range<u64>,
        owner: TargetIndex,
        halo: u64,
        within: Range<u64>,
    ) -> Self {
        let owned = owned(layout, records, select, owner);
        Self { owned, pending: None, records: *records, halo, within, done: 0 }
    }

    fn next_owned(&mut self) -> Option<Range<u64>> {
        self.pending.take().or_else(|| self.owned.next().map(|owned| owned.records))
    }

    /// The records up to which everything is needed if `first` is: where the halos of two stretches meet, what
    /// lies between them is all needed, so a wide halo steps over many runs at once.
    fn meeting(&mut self, first: &Range<u64>) -> u64 {
        if self.halo == 0 {
            return first.end;
        }
        let Some(next) = self.next_owned() else { return first.end };
        let meets_before = first.end.saturating_add(self.halo).saturating_add(self.halo).saturating_add(1);
        if next.start >= meets_before {
            self.pending = Some(next);
            return first.end;
        }
        let last = self.owned.last_before(meets_before).map_or(next.end, |last| next.end.max(last + 1));
        self.owned.skip_to(last);
        last
    }
}

impl Iterator for Coverage<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            let first = self.next_owned()?;
            let end = self.meeting(&first);
            let needed = with_halo(&self.records, first.start..end, self.halo, self.within.clone());
            let bytes = self.records.bytes(needed);
            let start = bytes.start.max(self.done);
            self.done = self.done.max(bytes.end);
            if start < bytes.end {
                return Some(start..bytes.end);
            }
        }
    }
}
