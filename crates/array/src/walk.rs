//! The pieces of a chunk: each has the selected elements that go to one tile.

use crate::axes::{Axes, AxisUse, NO_GROUP, cells};
use crate::plan::Plan;
use std::ops::Range;

/// An axis of the part of a chunk that goes to one tile.
#[derive(Clone, Debug)]
pub(crate) struct Axis<'a> {
    pub(crate) length: usize,
    /// Distance between elements in the chunk.
    pub(crate) stride: usize,
    /// Distance between cells; 0 if the axis is reduced.
    pub(crate) cell_stride: usize,
    /// Distance between elements within the reduced axes.
    pub(crate) index_stride: u64,
    /// The group of each element, within the tile, if the axis is mapped.
    pub(crate) labels: Option<Vec<usize>>,
    /// The weight of each element, if the axis has weights.
    pub(crate) weights: Option<&'a [f64]>,
    /// Distance between elements in each constant.
    pub(crate) constants: Vec<usize>,
}

impl Axis<'_> {
    pub(crate) fn is_kept(&self) -> bool {
        self.labels.is_none() && self.cell_stride > 0
    }

    /// Whether this axis and the next inner axis can be walked as one longer axis.
    fn joins(&self, inner: &Axis<'_>) -> bool {
        let plain = self.labels.is_none()
            && inner.labels.is_none()
            && self.weights.is_none()
            && inner.weights.is_none();
        let along = |(outer, inner_stride): (&usize, &usize)| *outer == inner_stride * inner.length;
        plain
            && self.constants.iter().zip(&inner.constants).all(along)
            && self.stride == inner.stride * inner.length
            && self.cell_stride == inner.cell_stride * inner.length
            && self.index_stride == inner.index_stride * inner.length as u64
    }
}

/// The part of a chunk that goes to one tile.
pub(crate) struct Piece<'a> {
    pub(crate) tile: u64,
    /// Number of cells of the tile.
    pub(crate) cells: usize,
    pub(crate) axes: Vec<Axis<'a>>,
    /// The first element in the chunk.
    pub(crate) offset: usize,
    /// The cell of the first element.
    pub(crate) cell: usize,
    /// Position of the first element within the reduced axes.
    pub(crate) index: u64,
    /// The first element in each constant.
    pub(crate) constants: Vec<usize>,
    /// The product of the weights of axes of one element.
    pub(crate) weight: f64,
}

/// A run of selected elements along one axis of a chunk that go to one tile, and the index of the tile along the axis.
type Stretch = (Range<u64>, u64);

impl Plan {
    /// Returns the pieces of a chunk; none if no element of it is selected.
    pub(crate) fn pieces(&self, number: u64) -> Vec<Piece<'_>> {
        let (place, origin) = (self.grid.place(number), self.grid.origin(number));
        let (inside, stored) = (self.grid.clipped(number), self.grid.stored(number));
        let count = origin.len();
        let mut strides = vec![1usize; count];
        for axis in (1..count).rev() {
            strides[axis - 1] = strides[axis] * stored[axis] as usize;
        }
        let mut index_strides = vec![0u64; count];
        let mut next = 1u64;
        for axis in (0..count).rev() {
            if self.axes.uses[axis] == AxisUse::Reduced {
                index_strides[axis] = next;
                next = next.saturating_mul(self.selected.axes[axis].count);
            }
        }
        let within: Vec<(u64, u64, u64)> =
            (0..count).map(|axis| self.selected.axes[axis].within(origin[axis], inside[axis])).collect();
        let stretches: Vec<Vec<Stretch>> = (0..count)
            .map(|axis| stretches(&self.axes, axis, within[axis].0, within[axis].2, place[axis]))
            .collect();
        let mut pieces = Vec::new();
        let mut chosen = vec![0usize; count];
        if stretches.iter().any(Vec::is_empty) {
            return pieces;
        }
        loop {
            let now: Vec<&Stretch> = stretches.iter().zip(&chosen).map(|(all, at)| &all[*at]).collect();
            pieces.push(self.piece(&now, &within, &strides, &index_strides));
            // Counts on like an odometer.
            let Some(axis) = (0..count).rev().find(|axis| chosen[*axis] + 1 < stretches[*axis].len()) else {
                return pieces;
            };
            chosen[axis] += 1;
            chosen[axis + 1..].fill(0);
        }
    }

    fn piece(
        &self,
        stretches: &[&Stretch],
        within: &[(u64, u64, u64)],
        strides: &[usize],
        index_strides: &[u64],
    ) -> Piece<'_> {
        let places: Vec<u64> = stretches.iter().map(|(_, tile)| *tile).collect();
        let tile = self.axes.tile(&places);
        let spans = self.axes.spans(&self.grid, &self.selected, tile);
        let mut piece = Piece {
            tile,
            cells: cells(&spans),
            axes: Vec::new(),
            offset: 0,
            cell: 0,
            index: 0,
            constants: vec![0; self.constants.len()],
            weight: 1.0,
        };
        let mut cell_stride = piece.cells;
        for (axis, (elements, _)) in stretches.iter().enumerate() {
            let span = &spans[axis];
            cell_stride /= ((span.end - span.start) as usize).max(1);
            let (skipped, begin, _) = within[axis];
            let step = self.selected.axes[axis].step as usize;
            let stride = strides[axis].saturating_mul(step);
            piece.offset += begin as usize * strides[axis] + (elements.start - skipped) as usize * stride;
            let weights = self.weights.iter().find(|(of, _)| *of == axis);
            let selected = elements.start as usize..elements.end as usize;
            let mut one = Axis {
                length: selected.len(),
                stride,
                cell_stride: 0,
                index_stride: 0,
                labels: None,
                weights: weights.and_then(|(_, weights)| weights.get(selected.clone())),
                constants: self.constants.iter().map(|constant| constant.strides[axis]).collect(),
            };
            for (first, stride) in piece.constants.iter_mut().zip(&one.constants) {
                *first += selected.start * stride;
            }
            match &self.axes.uses[axis] {
                AxisUse::Dropped => {}
                AxisUse::Reduced => {
                    one.index_stride = index_strides[axis];
                    piece.index += elements.start * index_strides[axis];
                }
                AxisUse::Kept => {
                    one.cell_stride = cell_stride;
                    piece.cell += (elements.start - span.start) as usize * cell_stride;
                }
                AxisUse::Mapped { labels, .. } => {
                    one.cell_stride = cell_stride;
                    let within = |label: &u32| (u64::from(*label) - span.start) as usize;
                    one.labels = labels.get(selected).map(|labels| labels.iter().map(within).collect());
                }
            }
            piece.add(one);
        }
        piece
    }
}

impl<'a> Piece<'a> {
    /// Adds an axis inside all others.
    fn add(&mut self, mut axis: Axis<'a>) {
        if axis.length == 1 {
            if let Some(label) = axis.labels.take().and_then(|labels| labels.first().copied()) {
                self.cell += label * axis.cell_stride;
            }
            self.weight *= axis.weights.and_then(|weights| weights.first().copied()).unwrap_or(1.0);
            return;
        }
        match self.axes.last_mut() {
            Some(outer) if outer.joins(&axis) => {
                axis.length *= outer.length;
                *outer = axis;
            }
            _ => self.axes.push(axis),
        }
    }
}

/// Returns the stretches of an axis: all selected elements, or on a mapped axis each run whose groups are in one tile.
fn stretches(axes: &Axes, axis: usize, first: u64, count: u64, chunk: u64) -> Vec<Stretch> {
    if count == 0 {
        return Vec::new();
    }
    let all = first..first + count;
    match &axes.uses[axis] {
        AxisUse::Dropped | AxisUse::Reduced => vec![(all, 0)],
        AxisUse::Kept => vec![(all, axes.kept_place(axis, chunk))],
        AxisUse::Mapped { labels, tile, .. } => {
            let mut stretches: Vec<Stretch> = Vec::new();
            for at in all {
                let label = labels.get(at as usize).copied().unwrap_or(NO_GROUP);
                if label == NO_GROUP {
                    continue;
                }
                let place = u64::from(label) / tile;
                match stretches.last_mut() {
                    Some((elements, same)) if *same == place && elements.end == at => elements.end = at + 1,
                    _ => stretches.push((at..at + 1, place)),
                }
            }
            stretches
        }
    }
}
