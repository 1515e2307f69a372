//! The use of each axis, and the tiles that hold the cells of an answer.
//!
//! A chunk touches few cells of a grid, so a *tile* of cells exists only once an element came to it. Along a kept axis
//! a tile has the cells of one chunk, along an axis of groups a fixed number of groups, along a reduced axis one cell.

use std::ops::Range as Span;
use std::sync::Arc;

use crate::error::ArrayError;
use crate::grid::Grid;
use crate::reduction::{Boundary, MAX_LABELS, Reduction};
use crate::selection::Selected;

/// Label of an element that belongs to no group.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Groups of a tile along one axis, where no axis, one axis or several axes have groups.
const GROUPS: [u64; 3] = [1024, 1024, 64];

/// The way in which an answer uses an axis of the array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AxisUse {
    /// The selection takes a single index.
    Dropped,
    Kept,
    Reduced,
    /// The group of each selected element.
    Mapped {
        labels: Arc<[u32]>,
        count: u64,
        tile: u64,
    },
}

/// The axes of a request.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    pub(crate) uses: Vec<AxisUse>,
    /// Tiles along each axis.
    tiles: Vec<u64>,
    /// The first chunk along each axis that the selection touches.
    first: Vec<u64>,
    /// Length of the answer along each axis of the array; 1 along a reduced axis.
    lengths: Vec<u64>,
}

impl Axes {
    pub(crate) fn new(grid: &Grid, selected: &Selected, reduction: &Reduction) -> Result<Axes, ArrayError> {
        let op = reduction.op.name();
        let wrong = |why: String| ArrayError::Reduction { op, why };
        // Axes of the selection, as axes of the array.
        let shown: Vec<usize> =
            (0..selected.axes.len()).filter(|axis| !selected.axes[*axis].dropped).collect();
        let find = |axis: i64| {
            let count = shown.len() as i64;
            let at = usize::try_from(if axis < 0 { axis + count } else { axis }).ok();
            at.and_then(|at| shown.get(at))
                .copied()
                .ok_or_else(|| wrong(format!("axis {axis} is out of range for a selection of {count} axes")))
        };
        let mapped = !reduction.groups.is_empty() || !reduction.windows.is_empty();
        let rest = if reduction.axes.is_none() && !mapped { AxisUse::Reduced } else { AxisUse::Kept };
        let mut uses: Vec<AxisUse> = selected
            .axes
            .iter()
            .map(|range| if range.dropped { AxisUse::Dropped } else { rest.clone() })
            .collect();
        let mut set = |axis: i64, to: AxisUse| {
            let at = find(axis)?;
            if uses[at] != rest || uses[at] == to {
                return Err(wrong(format!("axis {axis} is named twice")));
            }
            uses[at] = to;
            Ok(at)
        };
        for axis in reduction.axes.iter().flatten() {
            set(*axis, AxisUse::Reduced)?;
        }
        let several = reduction.groups.len() + reduction.windows.len();
        let tile = GROUPS[several.min(2)];
        let mut all = 0u64;
        let mut counted = |labels: u64| {
            all = all.saturating_add(labels);
            if all > MAX_LABELS {
                return Err(wrong(format!("it has more than {MAX_LABELS} labels")));
            }
            Ok(())
        };
        for groups in &reduction.groups {
            let length = selected.axes[find(groups.axis)?].count;
            if groups.labels.len() as u64 != length {
                let given = groups.labels.len();
                return Err(wrong(format!("{given} labels are given for an axis of {length} elements")));
            }
            if groups.count >= u64::from(NO_GROUP) {
                return Err(wrong(format!("{} groups are too many", groups.count)));
            }
            counted(length)?;
            let label = |label: &i64| match u64::try_from(*label) {
                Ok(label) if label < groups.count => Ok(label as u32),
                Err(_) if *label == -1 => Ok(NO_GROUP),
                _ => Err(wrong(format!(
                    "label {label} is not one of {} groups, nor -1 for none",
                    groups.count
                ))),
            };
            let labels = groups.labels.iter().map(label).collect::<Result<_, _>>()?;
            set(groups.axis, AxisUse::Mapped { labels, count: groups.count, tile })?;
        }
        for windows in &reduction.windows {
            let length = selected.axes[find(windows.axis)?].count;
            if windows.length == 0 {
                return Err(wrong("a window has at least 1 element".into()));
            }
            counted(length)?;
            let count = match windows.boundary {
                Boundary::Exact if !length.is_multiple_of(windows.length) => {
                    let why =
                        format!("{length} elements are not a whole number of windows of {}", windows.length);
                    return Err(wrong(why + "; trim or pad them"));
                }
                Boundary::Exact | Boundary::Trim => length / windows.length,
                Boundary::Pad => length.div_ceil(windows.length),
            };
            let label = |i| if i / windows.length < count { (i / windows.length) as u32 } else { NO_GROUP };
            let labels = (0..length).map(label).collect();
            set(windows.axis, AxisUse::Mapped { labels, count, tile })?;
        }
        let places = selected.places(grid).unwrap_or_else(|| vec![(0, 0); uses.len()]);
        let lengths: Vec<u64> = uses
            .iter()
            .zip(&selected.axes)
            .map(|(one, range)| match one {
                AxisUse::Dropped | AxisUse::Reduced => 1,
                AxisUse::Kept => range.count,
                AxisUse::Mapped { count, .. } => *count,
            })
            .collect();
        let tiles = uses
            .iter()
            .zip(&places)
            .map(|(one, (first, last))| match one {
                AxisUse::Dropped | AxisUse::Reduced => 1,
                AxisUse::Kept => last - first + 1,
                AxisUse::Mapped { count, tile, .. } => count.div_ceil(*tile).max(1),
            })
            .collect();
        Ok(Axes { uses, tiles, first: places.into_iter().map(|(first, _)| first).collect(), lengths })
    }

    /// Number of cells of the answer, or `None` beyond 64 bits.
    pub(crate) fn cells(&self) -> Option<u64> {
        self.lengths.iter().try_fold(1u64, |all, n| all.checked_mul(*n))
    }

    /// The shape of the answer, and for each of its axes the axis of the selection.
    pub(crate) fn shape(&self, keepdims: bool) -> (Vec<u64>, Vec<u64>) {
        let shown = self.uses.iter().zip(&self.lengths).filter(|(one, _)| **one != AxisUse::Dropped);
        let kept = (0u64..).zip(shown).filter(|(_, (one, _))| keepdims || **one != AxisUse::Reduced);
        kept.map(|(axis, (_, length))| (*length, axis)).unzip()
    }

    /// Number of tiles.
    pub(crate) fn tiles(&self) -> u64 {
        self.tiles.iter().fold(1, |all, n| all.saturating_mul(*n))
    }

    /// The number of the tile at a place along each axis.
    pub(crate) fn tile(&self, place: &[u64]) -> u64 {
        place.iter().zip(&self.tiles).fold(0, |number, (place, count)| number * count + place)
    }

    /// Returns the part of the answer that a tile holds, along each axis.
    pub(crate) fn spans(&self, grid: &Grid, selected: &Selected, tile: u64) -> Vec<Span<u64>> {
        let mut rest = tile;
        let mut spans = vec![0..1; self.uses.len()];
        for axis in (0..self.uses.len()).rev() {
            let place = rest % self.tiles[axis];
            rest /= self.tiles[axis];
            spans[axis] = match &self.uses[axis] {
                AxisUse::Dropped | AxisUse::Reduced => 0..1,
                AxisUse::Kept => {
                    let chunk = grid.chunk()[axis];
                    let origin = (self.first[axis] + place) * chunk;
                    let (skipped, _, count) = selected.axes[axis].within(origin, chunk);
                    skipped..skipped + count
                }
                AxisUse::Mapped { count, tile, .. } => {
                    (place * tile).min(*count)..((place + 1) * tile).min(*count)
                }
            };
        }
        spans
    }

    /// The place of a chunk among the tiles of a kept axis.
    pub(crate) fn kept_place(&self, axis: usize, chunk: u64) -> u64 {
        chunk.saturating_sub(self.first[axis])
    }

    /// Lengths of the axes of the answer, one for each axis of the array.
    pub(crate) fn lengths(&self) -> &[u64] {
        &self.lengths
    }
}

/// Number of cells of a tile.
pub(crate) fn cells(spans: &[Span<u64>]) -> usize {
    spans.iter().map(|span| (span.end - span.start) as usize).product()
}
