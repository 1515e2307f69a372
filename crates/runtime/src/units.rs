//! Cuts a pass into units of work. Lanes take the units one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_layout::{FixedRecords, TargetIndex};

use crate::FileParts;
use crate::chunks::OwnedChunks;
use crate::pulls::PullBatch;
use crate::selection::Domain;

/// A piece of work: the records of `select` that begin in these bytes of one target.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The target that owns the records.
    pub target: TargetIndex,
    /// Bytes of the file; for virtual records and chunks, positions.
    pub window: Range<u64>,
    /// Records that are folded, in all units.
    pub select: Range<u64>,
    /// Bytes that the target pulls from others, for this unit and the units near it.
    pub batch: Arc<PullBatch>,
}

/// The rule by which records belong to targets. An *atom* has `grain` records and belongs to the target of its first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership {
    atoms: FixedRecords,
    grain: u64,
}

impl Ownership {
    pub fn new(records: &FixedRecords, grain: u64) -> Result<Ownership, gristmill_layout::LayoutError> {
        let grain = grain.max(1);
        if grain == 1 {
            return Ok(Ownership { atoms: *records, grain });
        }
        let size = records.size().saturating_mul(grain);
        // The end of the file may cut the last atom short. Only first bytes matter here, so a cut atom is left out
        // here and added in `starting_in`.
        let atoms = FixedRecords::new(records.header(), size, records.count() / grain)?;
        Ok(Ownership { atoms, grain })
    }

    /// Records of `select` whose atom begins in `file`.
    pub fn starting_in(&self, file: Range<u64>, select: &Range<u64>) -> Range<u64> {
        let atoms = self.atoms.starting_in(file.clone());
        let mut range = atoms.start.saturating_mul(self.grain)..atoms.end.saturating_mul(self.grain);
        let last_atom = self.atoms.end();
        if self.grain > 1 && file.contains(&last_atom) {
            // This is the cut atom.
            if range.is_empty() {
                range.start = self.atoms.count() * self.grain;
            }
            range.end = u64::MAX;
        }
        range.start.max(select.start)..range.end.min(select.end)
    }

    /// First byte of the atom that holds this record.
    pub fn first_byte(&self, record: u64) -> u64 {
        self.atoms.header() + record / self.grain * self.atoms.size()
    }
}

/// The rule by which a pass is cut into units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutRule {
    /// A unit has all bytes of one target in a window, so reads are large.
    ByTarget,
    /// A unit has one contiguous extent, and units are in file order, so rows come out in order.
    ByExtent,
}

/// Most stripes of one target in a unit. An ordered kernel has a piece for each stripe until the gaps between them close.
const MAX_STRIPES: u64 = 1024;

/// All units of a pass, or those of some targets only, in the order in which lanes take them.
pub(crate) fn units<'a>(
    file: &'a FileParts,
    domain: &'a Domain,
    ownership: Option<Ownership>,
    gaps: Vec<Range<u64>>,
    cut: CutRule,
    unit_bytes: u64,
    only: Option<&'a [TargetIndex]>,
) -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
    let unit_bytes = unit_bytes.max(1);
    let wanted = move |target: &TargetIndex| only.is_none_or(|only| only.contains(target));
    let Some(ownership) = ownership.filter(|_| domain.records.is_some()) else {
        // Virtual records have no place. The first target owns them all.
        return Box::new(gaps.into_iter().filter(move |_| wanted(&0)).flat_map(move |gap| {
            windows(gap.clone(), unit_bytes).map(move |window| Unit {
                target: 0,
                batch: PullBatch::new(window.clone()),
                window,
                select: gap.clone(),
            })
        }));
    };
    let targets = file.layout.targets();
    let width = match (&file.layout, cut) {
        (gristmill_layout::Layout::Striped(striped), CutRule::ByTarget) if striped.unit() < unit_bytes => {
            let row = striped.unit() * u64::from(targets);
            (unit_bytes.saturating_mul(u64::from(targets)) / row).clamp(1, MAX_STRIPES) * row
        }
        _ => unit_bytes,
    };
    Box::new(gaps.into_iter().flat_map(move |gap| {
        // The atoms of the gap begin in these bytes.
        let bytes = ownership.first_byte(gap.start)..ownership.first_byte(gap.end - 1) + 1;
        windows(bytes, width).flat_map(move |window| -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
            let gap = gap.clone();
            match cut {
                CutRule::ByTarget => Box::new((0..targets).filter(wanted).map(move |target| Unit {
                    target,
                    window: window.clone(),
                    select: gap.clone(),
                    batch: PullBatch::new(window.clone()),
                })),
                CutRule::ByExtent => {
                    let extents = file.layout.extents(window.clone());
                    let mut batches: BTreeMap<TargetIndex, Arc<PullBatch>> = BTreeMap::new();
                    Box::new(extents.filter(move |extent| wanted(&extent.target)).map(move |extent| {
                        let batch =
                            batches.entry(extent.target).or_insert_with(|| PullBatch::new(window.clone()));
                        Unit {
                            target: extent.target,
                            batch: batch.clone(),
                            window: extent.file,
                            select: gap.clone(),
                        }
                    }))
                }
            }
        })
    }))
}

/// All units of a pass over chunks, as [`units`] gives them. Windows are ranges of positions. The reader of a unit takes the
/// chunks in the window that its target owns.
pub(crate) fn chunk_units<'a>(
    file: &'a FileParts,
    owned: &OwnedChunks,
    gaps: Vec<Range<u64>>,
    unit_bytes: u64,
    only: Option<&'a [TargetIndex]>,
) -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
    let targets = file.layout.targets();
    let width = (unit_bytes / owned.bytes.max(1)).max(1).saturating_mul(u64::from(targets));
    let wanted = move |target: &TargetIndex| only.is_none_or(|only| only.contains(target));
    Box::new(gaps.into_iter().flat_map(move |gap| {
        windows(gap.clone(), width).flat_map(move |window| {
            let gap = gap.clone();
            (0..targets).filter(wanted).map(move |target| Unit {
                target,
                batch: PullBatch::new(0..0),
                window: window.clone(),
                select: gap.clone(),
            })
        })
    }))
}

/// Cuts a range at multiples of `width`.
fn windows(range: Range<u64>, width: u64) -> impl Iterator<Item = Range<u64>> + Send {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let from = at;
        at = (from / width + 1).saturating_mul(width).min(range.end);
        (from < range.end).then_some(from..at)
    })
}
