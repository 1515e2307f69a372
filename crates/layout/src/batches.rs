//! What an owner must pull, put together into few messages.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use crate::coverage::Coverage;
use crate::{BATCH_WINDOW, Extents, FixedRecords, Layout, MAX_FILE_BYTES, Need, TargetIndex};

/// Everything one owner pulls from one window of the file: one message to each holder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The target that pulls.
    pub owner: TargetIndex,
    /// The window of the file; starts at a multiple of its length.
    pub window: Range<u64>,
    /// Each holder once, sorted, with the bytes it is to send: file ranges within the window, sorted, apart
    /// from each other. Never the owner itself. At most one range for each byte of the window in all.
    pub from: Vec<(TargetIndex, Vec<Range<u64>>)>,
}

/// What `owner` must pull to process the records it owns among `select`, with `halo` records on each side as
/// far as `within` (records; widen it to at least `select`) goes: one batch for each [`BATCH_WINDOW`] of file
/// that has any of it, in file order. Each byte appears once, even where the halos of two runs overlap.
///
/// A record may begin in one window and end in a later one, so an owner keeps what it pulled until the last
/// record that needs it is done. One batch at a time is in memory.
pub fn batches<'a>(
    layout: &'a Layout,
    records: &FixedRecords,
    owner: TargetIndex,
    select: Range<u64>,
    halo: u64,
    within: Range<u64>,
) -> Batches<'a> {
    let window = NonZeroU64::MIN.saturating_add(BATCH_WINDOW - 1);
    batches_in_windows(layout, records, owner, select, halo, within, window)
}

/// [`batches`] with another length of window, in bytes.
pub fn batches_in_windows<'a>(
    layout: &'a Layout,
    records: &FixedRecords,
    owner: TargetIndex,
    select: Range<u64>,
    halo: u64,
    within: Range<u64>,
    window: NonZeroU64,
) -> Batches<'a> {
    let coverage = Coverage::new(layout, records, select, owner, halo, within);
    Batches { layout, owner, coverage, extents: None, held: None, window }
}

/// See [`batches`].
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    layout: &'a Layout,
    owner: TargetIndex,
    coverage: Coverage<'a>,
    extents: Option<Extents<'a>>,
    /// What was already found but lies past the window.
    held: Option<Need>,
    window: NonZeroU64,
}

impl Batches<'_> {
    fn next_need(&mut self) -> Option<Need> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        loop {
            let owner = self.owner;
            if let Some(extents) = &mut self.extents {
                if let Some(found) = extents.find(|extent| extent.target != owner) {
                    return Some(Need { target: found.target, file: found.file });
                }
                self.extents = None;
            }
            self.extents = Some(self.layout.extents_for(owner, self.coverage.next()?));
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let mut need = self.next_need()?;
        let window = window_of(need.file.start, self.window);
        let mut from: BTreeMap<TargetIndex, Vec<Range<u64>>> = BTreeMap::new();
        loop {
            if need.file.start >= window.end {
                self.held = Some(need);
                break;
            }
            let end = need.file.end.min(window.end);
            let ranges = from.entry(need.target).or_default();
            match ranges.last_mut() {
                Some(last) if last.end == need.file.start => last.end = end,
                _ => ranges.push(need.file.start..end),
            }
            if end < need.file.end {
                self.held = Some(Need { target: need.target, file: end..need.file.end });
                break;
            }
            let Some(next) = self.next_need() else { break };
            need = next;
        }
        Some(Batch { owner: self.owner, window, from: from.into_iter().collect() })
    }
}

/// The window that holds this byte, cut at the longest file.
pub(crate) fn window_of(file_offset: u64, window: NonZeroU64) -> Range<u64> {
    let start = file_offset - file_offset % window;
    start..start.saturating_add(window.get()).min(MAX_FILE_BYTES)
}
