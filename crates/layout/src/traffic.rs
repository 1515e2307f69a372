//! How much the owners of a selection pull from each other, without listing it.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::batches::window_of;
use crate::coverage::Coverage;
use crate::holders::Holders;
use crate::{BATCH_WINDOW, FixedRecords, Layout, MAX_FILE_BYTES, MAX_TRAFFIC_STEPS, TargetIndex, modular};

/// What it costs to bring the records of a selection, and their halo, to their owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// Bytes that owners pull from other targets. A byte that two owners pull counts twice.
    pub moved_bytes: u64,
    /// Messages: triples of owner, holder and window with at least one byte.
    pub messages: u64,
    /// Bytes that owners read on their own target.
    pub own_bytes: u64,
    /// Whether the figures were scaled up from a part of the file, or reached the largest `u64`. If not, they
    /// are exact.
    pub estimated: bool,
}

/// The sum of all [`batches`](crate::batches()) of all owners for the records `select`, with `halo` records on
/// each side as far as the selection goes.
///
/// Stripes and records together repeat after the least common multiple of `unit * targets`, record size and
/// window, so a long file is counted by its start, one period and its end. If that takes more than
/// [`MAX_TRAFFIC_STEPS`], a stretch from the middle is scaled up and the answer says `estimated`.
pub fn traffic(layout: &Layout, records: &FixedRecords, select: Range<u64>, halo: u64) -> Traffic {
    let window = NonZeroU64::MIN.saturating_add(BATCH_WINDOW - 1);
    traffic_in_windows(layout, records, select.clone(), halo, select, window)
}

/// [`traffic`] with the halo cut at the ends of `within` (records; widened to at least `select`), and with
/// another length of window, in bytes.
pub fn traffic_in_windows(
    layout: &Layout,
    records: &FixedRecords,
    select: Range<u64>,
    halo: u64,
    within: Range<u64>,
    window: NonZeroU64,
) -> Traffic {
    let select = records.cut(select);
    let within = within.start.min(select.start)..within.end.max(select.end);
    let count = Count { layout, records: *records, select, halo, within, window };
    let mut steps = Steps(MAX_TRAFFIC_STEPS);
    match count.exact(&mut steps) {
        Some(sums) => sums.traffic(false),
        None => count.estimate().traffic(true),
    }
}

/// What may still be spent.
struct Steps(u64);

impl Steps {
    fn take(&mut self, steps: u64) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// Wide enough for every target to pull the longest file.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    moved: u128,
    messages: u128,
    own: u128,
}

impl Sums {
    fn plus(self, other: Self) -> Self {
        Self {
            moved: self.moved + other.moved,
            messages: self.messages + other.messages,
            own: self.own + other.own,
        }
    }

    fn times(self, n: u64) -> Self {
        let n = u128::from(n);
        Self { moved: self.moved * n, messages: self.messages * n, own: self.own * n }
    }

    /// `part` bytes gave these sums; what `whole` bytes would give.
    fn scaled(self, part: u64, whole: u64) -> Self {
        let (part, whole) = (u128::from(part.max(1)), u128::from(whole));
        // In two terms, for a sum times the longest file may not fit.
        let scale = |sum: u128| sum / part * whole + sum % part * whole / part;
        Self { moved: scale(self.moved), messages: scale(self.messages), own: scale(self.own) }
    }

    fn traffic(self, estimated: bool) -> Traffic {
        let narrow = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        let wide = [self.moved, self.messages, self.own].iter().any(|sum| *sum > u128::from(u64::MAX));
        Traffic {
            moved_bytes: narrow(self.moved),
            messages: narrow(self.messages),
            own_bytes: narrow(self.own),
            estimated: estimated || wide,
        }
    }
}

struct Count<'a> {
    layout: &'a Layout,
    records: FixedRecords,
    select: Range<u64>,
    halo: u64,
    within: Range<u64>,
    window: NonZeroU64,
}

impl Count<'_> {
    fn exact(&self, steps: &mut Steps) -> Option<Sums> {
        let all = self.all();
        let inner = self.inner();
        let turns = match self.period() {
            Some(period) => inner.end.saturating_sub(inner.start) / period,
            None => 0,
        };
        let Some(period) = self.period().filter(|_| turns >= 2) else { return self.sums(all, steps) };
        let head = self.sums(all.start..inner.start, steps)?;
        let one = self.sums(inner.start..inner.start + period, steps)?;
        let tail = self.sums(inner.start + period * turns..all.end, steps)?;
        Some(head.plus(one.times(turns)).plus(tail))
    }

    /// Windows from the middle, more and more of them until the steps are spent.
    fn estimate(&self) -> Sums {
        let all = self.all();
        let inner = self.inner();
        let start = if inner.start < inner.end { inner.start } else { all.start };
        let (mut sampled, mut end) = self.sample(start, window_of(start, self.window).end.min(all.end));
        let mut steps = Steps(MAX_TRAFFIC_STEPS);
        while end < all.end {
            let next = end.saturating_add(end - start).next_multiple_of(self.window.get()).min(all.end);
            let Some(more) = self.sums(end..next, &mut steps) else { break };
            sampled = sampled.plus(more);
            end = next;
        }
        sampled.scaled(end - start, all.end - all.start)
    }

    /// The sums of one window, or of its start where the window is too much, and where that ends.
    fn sample(&self, start: u64, end: u64) -> (Sums, u64) {
        let mut bytes = end - start;
        while bytes > 1 {
            if let Some(sums) = self.sums(start..start + bytes, &mut Steps(MAX_TRAFFIC_STEPS)) {
                return (sums, start + bytes);
            }
            bytes /= 16;
        }
        // One byte: at most a few steps for each target.
        let end = end.min(start + 1);
        (self.sums(start..end, &mut Steps(u64::MAX)).unwrap_or_default(), end)
    }

    /// Bytes that any owner needs.
    fn all(&self) -> Range<u64> {
        let halo = self.halo;
        self.records.bytes(crate::needs::with_halo(
            &self.records,
            self.select.clone(),
            halo,
            self.within.clone(),
        ))
    }

    /// Bytes, from a window boundary on, that no end of the selection has a part in: all records that need
    /// them are selected, and no halo is cut there.
    fn inner(&self) -> Range<u64> {
        let select = self.records.bytes(self.select.clone());
        let reach = self.halo.saturating_add(1).saturating_mul(self.records.size());
        let start = (select.start.checked_add(reach))
            .and_then(|start| start.checked_next_multiple_of(self.window.get()))
            .unwrap_or(MAX_FILE_BYTES);
        start..select.end.saturating_sub(reach).max(start)
    }

    /// Bytes after which stripes, records and windows lie as before.
    fn period(&self) -> Option<u64> {
        let Layout::Striped(striped) = self.layout else { return None };
        let stripes_and_records = modular::lcm(striped.cycle()?, self.records.size())?;
        modular::lcm(stripes_and_records, self.window.get())
    }

    /// The part of the traffic that lies in these bytes, which start and end at windows or at the ends.
    fn sums(&self, bytes: Range<u64>, steps: &mut Steps) -> Option<Sums> {
        let mut sums = Sums::default();
        let reaching = self.reaching(&bytes);
        let Some(last) = reaching.end.checked_sub(1).filter(|last| *last >= reaching.start) else {
            return Some(sums);
        };
        let mut owners = Holders::default();
        let starts = self.records.start_of(reaching.start)..self.records.start_of(last) + 1;
        steps.take(self.layout.add_holders(starts, &mut owners))?;
        for owner in owners.into_targets() {
            steps.take(1)?;
            sums = sums.plus(self.pulled_by(owner, &reaching, &bytes, steps)?);
        }
        Some(sums)
    }

    /// Selected records that need any of these bytes.
    fn reaching(&self, bytes: &Range<u64>) -> Range<u64> {
        if bytes.is_empty() {
            return 0..0;
        }
        let record = |at: u64| at.saturating_sub(self.records.header()) / self.records.size();
        let start = record(bytes.start).saturating_sub(self.halo).max(self.select.start);
        let end = record(bytes.end - 1).saturating_add(self.halo).saturating_add(1).min(self.select.end);
        start..end.max(start)
    }

    fn pulled_by(
        &self,
        owner: TargetIndex,
        reaching: &Range<u64>,
        bytes: &Range<u64>,
        steps: &mut Steps,
    ) -> Option<Sums> {
        let mut sums = Sums::default();
        let mut holders = Holders::default();
        let mut window = 0..0;
        let (select, within) = (reaching.clone(), self.within.clone());
        for needed in Coverage::new(self.layout, &self.records, select, owner, self.halo, within) {
            steps.take(1)?;
            let mut left = needed.start.max(bytes.start)..needed.end.min(bytes.end);
            if left.start >= left.end {
                continue;
            }
            let own = match self.layout.is_in_place() {
                true => left.end - left.start,
                false => self.layout.bytes_on(owner, left.clone()),
            };
            let lacking = left.end - left.start - own;
            sums.own += u128::from(own);
            sums.moved += u128::from(lacking);
            if lacking == 0 {
                continue;
            }
            while left.start < left.end {
                if let Some(end) = self.own_past_window(owner, &left) {
                    steps.take(1)?;
                    left.start = end;
                    continue;
                }
                if left.start >= window.end {
                    sums.messages += u128::from(holders.count_except(owner));
                    holders.clear();
                    window = window_of(left.start, self.window);
                }
                let part = left.start..left.end.min(window.end);
                left.start = part.end;
                steps.take(self.layout.add_holders(part, &mut holders))?;
            }
        }
        sums.messages += u128::from(holders.count_except(owner));
        Some(sums)
    }

    /// Where the owner's own bytes at the start of this range end, if that is not in the same window: one piece
    /// per target may be very many windows long.
    fn own_past_window(&self, owner: TargetIndex, left: &Range<u64>) -> Option<u64> {
        let window = window_of(left.start, self.window);
        if left.end <= window.end {
            return None;
        }
        let run = self.layout.runs(owner, left.clone()).next()?;
        (run.file.start == left.start && run.file.end >= window.end).then_some(run.file.end)
    }
}
