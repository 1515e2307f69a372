//! Announces the bytes of the next units to parts that can fetch them meanwhile.

use std::collections::VecDeque;

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

/// Announces the bytes of a unit that its own target has.
fn announce(job: &Prepared, unit: &Unit) {
    let Ok(part) = job.file.part(unit.target) else { return };
    // Storage that folds the unit reads it itself.
    if job.in_storage.is_some() && part.folds_now() {
        return;
    }
    let ranges = match &job.chunks {
        Some(owned) => {
            let statistics = job.statistics.as_deref();
            // A chunk with statistics is probably not read.
            owned.stored_in(unit.target, unit.window.clone(), &|number| {
                statistics.is_some_and(|statistics| statistics.known(number).is_some())
            })
        }
        None => {
            let Some(records) = &job.domain.records else { return };
            // The window ends with the first byte of the last record.
            let end = records.bytes(unit.select.clone()).end;
            let is_last = end.saturating_sub(unit.window.end) < records.size();
            let bytes = unit.window.start..if is_last { end } else { unit.window.end };
            vec![bytes]
        }
    };
    let extents = ranges.into_iter().flat_map(|range| job.file.layout.extents_for(unit.target, range));
    let own = extents.filter(|extent| extent.target == unit.target);
    let ranges: Vec<PartRange<'_>> = own
        .map(|extent| PartRange {
            object: extent.object,
            offset: extent.object_offset,
            len: (extent.file.end - extent.file.start) as usize,
        })
        .collect();
    part.expect(&ranges);
}
