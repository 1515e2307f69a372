//! Announces the bytes of the next units to parts that can fetch them meanwhile.

use std::collections::VecDeque;

use gristmill_layout::Extent;

use crate::parts::PartRange;
use crate::prepare::Prepared;
use crate::units::Unit;

/// Bytes of units that are announced before lanes take the units.
pub const AHEAD_BYTES: u64 = 32 << 20;

/// The units of a pass. The bytes of each are announced some units before a lane takes it.
pub(crate) struct AnnouncedUnits<'a> {
    job: &'a Prepared,
    units: Box<dyn Iterator<Item = Unit> + Send + 'a>,
    announced: VecDeque<Unit>,
    most: usize,
}

/// The same units, which have at most `unit_bytes`, announced if a part of the file fetches bytes ahead.
pub(crate) fn announced<'a>(
    job: &'a Prepared,
    units: Box<dyn Iterator<Item = Unit> + Send + 'a>,
    unit_bytes: u64,
) -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
    if !job.file.parts.iter().any(|part| part.fetches_ahead()) {
        return units;
    }
    let most = (AHEAD_BYTES / unit_bytes.max(1)).max(1) as usize;
    Box::new(AnnouncedUnits { job, units, announced: VecDeque::new(), most })
}

impl Iterator for AnnouncedUnits<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        while self.announced.len() < self.most {
            let Some(unit) = self.units.next() else { break };
            announce(self.job, &unit);
            self.announced.push_back(unit);
        }
        self.announced.pop_front()
    }
}

/// Announces the bytes of a unit that its own target has. If the file is in place, a target can read all bytes, but only those of its own
/// stripes are announced: what nobody takes would hold the room for others.
fn announce(job: &Prepared, unit: &Unit) {
    let Ok(part) = job.file.part(unit.target) else { return };
    // Storage that folds the unit reads it itself.
    if job.in_storage.is_some() && part.folds_now() {
        return;
    }
    let layout = &job.file.layout;
    let extents: Vec<Extent<'_>> = match &job.chunks {
        Some(owned) => {
            let statistics = job.statistics.as_deref();
            // A chunk with statistics is probably not read.
            let stored = owned.stored_in(unit.target, unit.window.clone(), &|number| {
                statistics.is_some_and(|statistics| statistics.known(number).is_some())
            });
            // The owner of a chunk reads all of it.
            stored.into_iter().flat_map(|range| layout.extents_for(unit.target, range)).collect()
        }
        None => {
            let Some(records) = &job.domain.records else { return };
            // The window ends with the first byte of the last record.
            let end = records.bytes(unit.select.clone()).end;
            let is_last = end.saturating_sub(unit.window.end) < records.size();
            layout.extents(unit.window.start..if is_last { end } else { unit.window.end }).collect()
        }
    };
    let ranges: Vec<PartRange<'_>> = extents
        .iter()
        .filter(|extent| extent.target == unit.target)
        .map(|extent| PartRange {
            object: extent.object,
            offset: extent.object_offset,
            len: (extent.file.end - extent.file.start) as usize,
        })
        .collect();
    part.expect(&ranges);
}
