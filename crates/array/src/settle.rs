//! Chunks that need not be read because their statistics give what they add.

use gristmill_kernel::ArrayType;

use crate::expr::Image;
use crate::plan::Plan;
use crate::reduction::Op;
use crate::statistics::ChunkStatistics;
use crate::totals::{Rule, bin_position};
use crate::truth::is_float;
use crate::values::{Number, with_type, with_values};

/// The single cell to which all selected elements of a chunk go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SingleCell {
    pub(crate) tile: u64,
    /// Number of cells of the tile.
    pub(crate) cells: usize,
    /// Number of the cell in its tile.
    pub(crate) cell: usize,
    /// Number of selected elements.
    pub(crate) elements: u64,
}

impl Plan {
    /// Number of elements of a chunk that are inside the array.
    pub(crate) fn elements(&self, number: u64) -> u64 {
        self.grid.clipped(number).iter().product()
    }

    /// Returns the cell to which all selected elements of a chunk go, or `None` if they go to several.
    pub(crate) fn single_cell(&self, number: u64) -> Option<SingleCell> {
        if number >= self.grid.chunks() {
            return None;
        }
        let pieces = self.pieces(number);
        let [piece] = &pieces[..] else { return None };
        let (mut cell, mut elements) = (piece.cell, 1);
        for axis in &piece.axes {
            elements *= axis.length as u64;
            match axis.labels.as_deref() {
                Some([first, rest @ ..]) if rest.iter().all(|label| label == first) => {
                    cell += first * axis.cell_stride;
                }
                None if axis.cell_stride == 0 => {}
                _ => return None,
            }
        }
        Some(SingleCell { tile: piece.tile, cells: piece.cells, cell, elements })
    }

    /// Decodes statistics of a chunk. Returns `None` if the bytes are not statistics of this chunk.
    pub(crate) fn statistics(&self, number: u64, bytes: &[u8]) -> Option<ChunkStatistics> {
        let statistics = ChunkStatistics::decode(bytes).ok()?;
        let fits = number < self.grid.chunks()
            && statistics.elements == self.elements(number)
            && statistics.dtype == self.meaning.decoded();
        fits.then_some(statistics)
    }

    /// Returns what a chunk adds and to which cell, if its statistics suffice.
    pub(crate) fn settle(&self, number: u64, bytes: &[u8]) -> Option<(SingleCell, ChunkStatistics)> {
        if !self.reads_only_lead() {
            return None;
        }
        let statistics = self.statistics(number, bytes)?;
        let single_cell = self.single_cell(number)?;
        let column = self.column(statistics, single_cell.elements)?;
        self.rule.takes(&column).then_some((single_cell, column))
    }

    /// Returns the statistics of the reduced values of `selected` elements of a chunk, if the chunk's statistics give
    /// them.
    fn column(&self, chunk: ChunkStatistics, selected: u64) -> Option<ChunkStatistics> {
        let whole = selected == chunk.elements;
        let column = self.rule.column;
        let image = match &self.expr {
            Some(expr) => expr.image(chunk.range(), chunk.missing > 0)?,
            None if whole => return Some(chunk),
            None => Image::unchanged(chunk.range(), chunk.missing > 0),
        };
        let spread = match image {
            Image::Truth { yes, no } if yes != no && column == ArrayType::Bool => {
                return Some(self.constant(Some(yes.key()), selected));
            }
            Image::Numbers(spread) => spread,
            _ => return None,
        };
        let Some(ends) = spread.ends else { return Some(self.constant(None, selected)) };
        let (least, largest) = with_values!(&ends, ends => (ends[0].key(), ends[1].key()));
        if least == largest && !spread.nan {
            return Some(self.constant(Some(least), selected));
        }
        match (whole, spread.same) {
            (true, true) => Some(chunk),
            // All values are between the images of the ends, and missing elements stay missing.
            (true, false) => {
                let range = Some((least, largest));
                let missing = if spread.nan { chunk.missing } else { 0 };
                let none = ChunkStatistics::constant(column, None, chunk.elements);
                Some(ChunkStatistics { range, missing, ..none })
            }
            _ => None,
        }
    }

    /// Statistics of elements that all have the value of a key, or are all NaN.
    fn constant(&self, key: Option<u64>, elements: u64) -> ChunkStatistics {
        let all = ChunkStatistics::constant(self.rule.column, key, elements);
        if matches!(self.rule.op, Op::Sum | Op::Mean | Op::Totals) {
            all.with_sum(self.rule.single)
        } else {
            all
        }
    }
}

impl Rule {
    /// Whether statistics of elements that go to one cell are all that the operation needs.
    pub(crate) fn takes(&self, chunk: &ChunkStatistics) -> bool {
        if self.weighted || self.round > 0 || chunk.dtype != self.column {
            return false;
        }
        match &self.op {
            Op::Count | Op::Min | Op::Max | Op::Any => true,
            Op::Sum | Op::Mean | Op::Totals if !is_float(self.column) => chunk.whole.is_some(),
            Op::Sum | Op::Mean | Op::Totals if self.single => chunk.exact.is_some(),
            Op::Sum | Op::Mean | Op::Totals => chunk.binned.is_some(),
            Op::All => any_false(chunk).is_some(),
            Op::Histogram(edges) => in_one_bin(edges, chunk),
            Op::Var | Op::Std | Op::ArgMin | Op::ArgMax | Op::Moments | Op::Comoments | Op::Quantile(_) => {
                false
            }
        }
    }

    /// Whether the statistics of all elements are enough for the operation if there is no expression.
    pub(crate) fn measured(&self) -> bool {
        !self.weighted && matches!(self.op, Op::Count | Op::Sum | Op::Mean | Op::Totals | Op::Min | Op::Max)
    }
}

/// Returns whether any element is true. NaN is true.
pub(crate) fn any_true(chunk: &ChunkStatistics) -> bool {
    chunk.missing > 0
        || chunk.range().is_some_and(|ends| !with_values!(&ends, ends => ends.iter().all(is_zero)))
}

/// Returns whether any element is false, or `None` if that is not certain.
pub(crate) fn any_false(chunk: &ChunkStatistics) -> Option<bool> {
    fn of<T: Number>(ends: &[T]) -> Option<bool> {
        let (low, high) = (ends[0], ends[1]);
        match (is_zero(&low) || is_zero(&high), low < T::default() && high > T::default()) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }
    let Some(ends) = chunk.range() else { return Some(false) };
    with_values!(&ends, ends => of(ends))
}

fn is_zero<T: Number>(x: &T) -> bool {
    *x == T::default()
}

fn in_one_bin(edges: &[f64], chunk: &ChunkStatistics) -> bool {
    let Some((least, largest)) = chunk.range else { return true };
    with_type!(chunk.dtype, T => {
        bin_position(edges, T::of_key(least)) == bin_position(edges, T::of_key(largest))
    })
}
