//! Cutting a pass into units of work that lanes take one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_layout::{FixedRecords, TargetIndex};

use crate::FileParts;
use crate::chunks::Owned;
use crate::pulls::Batch;
use crate::selection::Domain;

/// A piece of work: the records of `select` that begin in these bytes of one target.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Whose records.
    pub target: TargetIndex,
    /// File bytes of the window; for virtual records and chunks their positions.
    pub window: Range<u64>,
    /// Records that are wanted at all.
    pub select: Range<u64>,
    /// What the target pulls from others, for this unit and those near it.
    pub batch: Arc<Batch>,
}

/// The rule by which records belong to targets: *atoms* of `grain` records each, owned by their first byte.
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
        // The last atom may be cut short by the end of the file; only first bytes matter here, so it is left
        // out if it cannot be represented whole, and added in `starting_in`.
        let atoms = FixedRecords::new(records.header(), size, records.count() / grain)?;
        Ok(Ownership { atoms, grain })
    }

    /// Records of `select` whose atom begins in `file`.
    pub fn starting_in(&self, file: Range<u64>, select: &Range<u64>) -> Range<u64> {
        let atoms = self.atoms.starting_in(file.clone());
        let mut range = atoms.start.saturating_mul(self.grain)..atoms.end.saturating_mul(self.grain);
        let last_atom = self.atoms.end();
        if self.grain > 1 && file.contains(&last_atom) {
            // The cut atom.
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

/// How a pass is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Each target's bytes of a window together: large reads.
    ByTarget,
    /// Each contiguous extent alone, in file order: rows come out in order.
    ByExtent,
}

/// Stripes of one target in a unit: an ordered kernel has a piece for each until the gaps between them close.
const MAX_STRIPES: u64 = 1024;

/// All units of a pass, or those of some targets only, in the order in which they are to be taken.
pub(crate) fn units<'a>(
    file: &'a FileParts,
    domain: &'a Domain,
    ownership: Option<Ownership>,
    gaps: Vec<Range<u64>>,
    cut: Cut,
    unit_bytes: u64,
    only: Option<&'a [TargetIndex]>,
) -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
    let unit_bytes = unit_bytes.max(1);
    let wanted = move |target: &TargetIndex| only.is_none_or(|only| only.contains(target));
    let Some(ownership) = ownership.filter(|_| domain.records.is_some()) else {
        // Virtual records lie nowhere; the first target has them all.
        return Box::new(gaps.into_iter().filter(move |_| wanted(&0)).flat_map(move |gap| {
            windows(gap.clone(), unit_bytes).map(move |window| Unit {
                target: 0,
                batch: Batch::new(window.clone()),
                window,
                select: gap.clone(),
            })
        }));
    };
    let targets = file.layout.targets();
    let width = match (&file.layout, cut) {
        (gristmill_layout::Layout::Striped(striped), Cut::ByTarget) if striped.unit() < unit_bytes => {
            let row = striped.unit() * u64::from(targets);
            (unit_bytes.saturating_mul(u64::from(targets)) / row).clamp(1, MAX_STRIPES) * row
        }
        _ => unit_bytes,
    };
    Box::new(gaps.into_iter().flat_map(move |gap| {
        // Bytes in which the atoms of the gap begin.
        let bytes = ownership.first_byte(gap.start)..ownership.first_byte(gap.end - 1) + 1;
        windows(bytes, width).flat_map(move |window| -> Box<dyn Iterator<Item = Unit> + Send + 'a> {
            let gap = gap.clone();
            match cut {
                Cut::ByTarget => Box::new((0..targets).filter(wanted).map(move |target| Unit {
                    target,
                    window: window.clone(),
                    select: gap.clone(),
                    batch: Batch::new(window.clone()),
                })),
                Cut::ByExtent => {
                    let extents = file.layout.extents(window.clone());
                    let mut batches: BTreeMap<TargetIndex, Arc<Batch>> = BTreeMap::new();
                    Box::new(extents.filter(move |extent| wanted(&extent.target)).map(move |extent| {
                        let batch =
                            batches.entry(extent.target).or_insert_with(|| Batch::new(window.clone()));
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

/// The same of chunks: windows are of their positions, and whoever reads a unit takes what its target owns.
pub(crate) fn chunk_units<'a>(
    file: &'a FileParts,
    owned: &Owned,
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
                batch: Batch::new(0..0),
                window: window.clone(),
                select: gap.clone(),
            })
        })
    }))
}

/// Cuts at multiples of `width`.
fn windows(range: Range<u64>, width: u64) -> impl Iterator<Item = Range<u64>> + Send {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let from = at;
        at = (from / width + 1).saturating_mul(width).min(range.end);
        (from < range.end).then_some(from..at)
    })
}
