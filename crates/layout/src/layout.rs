//! Either kind of layout, and what both can answer.

use std::ops::Range;

use crate::holders::Holders;
use crate::{
    Extent, Extents, FixedRecords, LayoutError, MAX_FILE_BYTES, Runs, Segments, Striped, TargetIndex, modular,
};

/// How the bytes of a file lie on its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Equal stripes dealt in turn. Does not know how long the file is.
    Striped(Striped),
    /// A table of pieces. Bytes past its end lie nowhere.
    Segments(Segments),
}

impl From<Striped> for Layout {
    fn from(striped: Striped) -> Self {
        Self::Striped(striped)
    }
}

impl From<Segments> for Layout {
    fn from(segments: Segments) -> Self {
        Self::Segments(segments)
    }
}

impl Layout {
    /// How many targets the file may lie on.
    pub fn targets(&self) -> u32 {
        match self {
            Self::Striped(striped) => striped.targets(),
            Self::Segments(segments) => segments.targets(),
        }
    }

    /// The target that holds this byte; none past the end of the table or of the longest file.
    pub fn target_of(&self, file_offset: u64) -> Option<TargetIndex> {
        match self {
            Self::Striped(striped) => (file_offset < MAX_FILE_BYTES).then(|| striped.target_of(file_offset)),
            Self::Segments(segments) => segments.piece_at(file_offset).map(|piece| piece.target),
        }
    }

    /// This range of the file in file order, cut where the target (or its object) changes. What continues on
    /// the same target is one extent: a file on one target is one extent. Constant work and memory an item.
    pub fn extents(&self, file: Range<u64>) -> Extents<'_> {
        Extents::new(self, file)
    }

    /// Whether each target reads the whole file where it lies. Then targets own records and need no bytes of others.
    pub fn is_in_place(&self) -> bool {
        match self {
            Self::Striped(striped) => striped.is_in_place(),
            Self::Segments(segments) => segments.is_in_place(),
        }
    }

    /// This range of the file as `owner` reads it: like [`extents`](Layout::extents), but if the file is in place, all
    /// bytes are the owner's.
    pub fn extents_for(&self, owner: TargetIndex, file: Range<u64>) -> Extents<'_> {
        let extents = Extents::new(self, file);
        if self.is_in_place() { extents.read_by(owner) } else { extents }
    }

    /// The pieces of this range that lie on `target`, in file order; nothing for a target that is not in the
    /// list. Constant work an item: the stripes of other targets are stepped over, not visited.
    pub fn runs(&self, target: TargetIndex, file: Range<u64>) -> Runs<'_> {
        Runs::new(self, target, file)
    }

    /// How many bytes of this range lie on `target`. No iteration over stripes.
    pub fn bytes_on(&self, target: TargetIndex, file: Range<u64>) -> u64 {
        let file = self.cut(file);
        match self {
            Self::Striped(s) => s.object_len(target, file.end) - s.object_len(target, file.start),
            Self::Segments(s) => s.bytes_before(target, file.end) - s.bytes_before(target, file.start),
        }
    }

    /// Whether all these records lie inside the file, where the layout knows its end. Worth calling once
    /// before anything else, for records past the end are owned by nobody.
    ///
    /// # Errors
    /// [`LayoutError::RecordsPastEnd`].
    pub fn check_records(&self, records: &FixedRecords) -> Result<(), LayoutError> {
        match self {
            Self::Segments(segments) if records.end() > segments.len() => {
                Err(LayoutError::RecordsPastEnd { end: records.end(), len: segments.len() })
            }
            _ => Ok(()),
        }
    }

    /// The range without what lies past the end; never reversed.
    pub(crate) fn cut(&self, file: Range<u64>) -> Range<u64> {
        let len = match self {
            Self::Striped(_) => MAX_FILE_BYTES,
            Self::Segments(segments) => segments.len(),
        };
        let end = file.end.min(len);
        file.start.min(end)..end
    }

    /// Add the targets that hold bytes of this range; gives the steps it took.
    pub(crate) fn add_holders(&self, file: Range<u64>, holders: &mut Holders) -> u64 {
        let file = self.cut(file);
        if file.is_empty() {
            return 0;
        }
        match self {
            Self::Striped(striped) => {
                let stripes = (file.end - 1) / striped.unit() - file.start / striped.unit() + 1;
                holders.add_around(striped.target_of(file.start), stripes, striped.targets());
                1
            }
            Self::Segments(_) => {
                let add = |n, extent: Extent<'_>| {
                    holders.add(extent.target..extent.target + 1);
                    n + 1
                };
                self.extents(file).fold(0, add)
            }
        }
    }

    /// The first of the records `among` whose first byte lies on `target`.
    pub(crate) fn first_owned(
        &self,
        records: &FixedRecords,
        target: TargetIndex,
        among: Range<u64>,
    ) -> Option<u64> {
        let mut at = among.start;
        // Striped: two turns at most. Segments: each turn passes a piece of the target.
        while at < among.end {
            let start = records.start_of(at);
            let run = self.runs(target, start..MAX_FILE_BYTES).next()?;
            at = records.first_from(run.file.start);
            if at < among.end && records.start_of(at) < run.file.end {
                return Some(at);
            }
            if let (Self::Striped(striped), true) = (self, at < among.end) {
                let cycle = striped.cycle()?;
                let wanted = striped.bytes_in_cycle(target)?;
                let from = records.start_of(at) % cycle;
                let ahead = modular::first_step_into(from, records.size() % cycle, cycle, wanted)?;
                return at.checked_add(ahead).filter(|record| *record < among.end);
            }
        }
        None
    }

    /// The last of the records `among` whose first byte lies on `target`.
    pub(crate) fn last_owned(
        &self,
        records: &FixedRecords,
        target: TargetIndex,
        among: Range<u64>,
    ) -> Option<u64> {
        let last = among.end.checked_sub(1).filter(|last| *last >= among.start)?;
        match self {
            Self::Striped(striped) => {
                let Some(cycle) = striped.cycle() else {
                    // No file is long enough for a second stripe on the same target.
                    let run = striped.run_from(target, 0)?;
                    let found = last.min(records.first_from(run.end).checked_sub(1)?);
                    return (found >= among.start && records.start_of(found) >= run.start).then_some(found);
                };
                let wanted = striped.bytes_in_cycle(target)?;
                let back = (cycle - records.size() % cycle) % cycle;
                let steps = modular::first_step_into(records.start_of(last) % cycle, back, cycle, wanted)?;
                last.checked_sub(steps).filter(|record| *record >= among.start)
            }
            Self::Segments(segments) => {
                let entries = segments.entries(target);
                let mut at = last;
                loop {
                    // The last piece that starts at or before the record's first byte.
                    let start = records.start_of(at);
                    let mut entry = segments.entry_from(entries.clone(), start);
                    let holds = entry < entries.end && segments.run(entry)?.file.start <= start;
                    if holds {
                        return (at >= among.start).then_some(at);
                    }
                    entry = entry.checked_sub(1).filter(|entry| entries.contains(entry))?;
                    let run = segments.run(entry)?.file;
                    at = records.first_from(run.end).checked_sub(1).filter(|at| *at >= among.start)?;
                    if records.start_of(at) >= run.start {
                        return Some(at);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    /// Against asking for the target of each record in turn.
    fn agrees(layout: Layout, records: FixedRecords) {
        let count = records.count();
        let owners: Vec<_> = (0..count).map(|r| layout.target_of(records.start_of(r))).collect();
        for target in 0..layout.targets() + 1 {
            for (start, end) in (0..=count).flat_map(|start| (0..=count).map(move |end| (start, end))) {
                let mut own = (start..end).filter(|r| owners[*r as usize] == Some(target));
                let found = layout.first_owned(&records, target, start..end);
                assert_eq!(found, own.clone().next(), "{layout:?} {records:?} {target} {start}..{end}");
                let found = layout.last_owned(&records, target, start..end);
                assert_eq!(found, own.next_back(), "{layout:?} {records:?} {target} {start}..{end}");
            }
        }
    }

    #[test]
    fn first_and_last_owned_in_small_files() {
        for (unit, targets) in [(1, 1), (1, 4), (3, 2), (5, 3), (8, 7), (100, 3)] {
            for (header, size) in [(0, 1), (2, 3), (9, 7), (0, 16), (30, 41)] {
                let records = FixedRecords::new(header, size, 14).unwrap();
                agrees(Striped::new(unit, targets, targets / 2).unwrap().into(), records);
            }
        }
        let lengths = [4, 1, 9, 2, 2, 30, 1, 7, 12];
        let mut table: Vec<Segment> = Vec::new();
        for (index, length) in (0..).zip(lengths) {
            let start = table.last().map_or(0, |last| last.file.end);
            let object = format!("piece-{index}");
            table.push(Segment { file: start..start + length, target: index % 3, object, object_offset: 0 });
        }
        for (header, size, count) in [(0, 1, 15), (3, 4, 16), (0, 17, 4), (67, 1, 1), (60, 3, 5)] {
            let segments = Segments::new(3, table.clone()).unwrap();
            agrees(segments.into(), FixedRecords::new(header, size, count).unwrap());
        }
    }

    #[test]
    fn first_and_last_owned_where_no_file_holds_two_cycles() {
        for (unit, targets) in [(1 << 62, 4), ((1 << 62) - 1, 3), (MAX_FILE_BYTES, 2), (MAX_FILE_BYTES, 1)] {
            for (header, size, count) in [(0, 1 << 59, 15), (77, (1 << 60) + 5, 7), (1 << 62, 1 << 58, 14)] {
                let records = FixedRecords::new(header, size, count).unwrap();
                agrees(Striped::new(unit, targets, targets - 1).unwrap().into(), records);
            }
        }
    }
}
