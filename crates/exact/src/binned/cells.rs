//! Many cells, in planes of one bin each.

use std::ops::Range;

use crate::binned::grid::{
    CARRY_BITS, Cell, HUGE, HUGE_BINS, MAX_DEPOSITS, grid, lowest_top, start, starts, top_of,
};
use crate::binned::loops::{LANES, LargestMagnitude, Real, Row, Run};
use crate::exact_number::ExactNumber;
use crate::path::Path;

/// Cells that count their deposits together, and whose values are checked together.
const STRIP: usize = 128;

/// Values of a run that are added together.
const PIECE: usize = 128 * LANES;

#[derive(Clone, Copy, Debug, Default)]
struct Strip {
    /// Most slices that an accumulator may have taken since the last carry.
    deposits: u32,
    /// Whether some cell is huge.
    huge: bool,
}

/// Sums of `f64` values (`f32` are widened), one for each cell, in `BINS` bins. See the [module](crate::binned).
///
/// The caller keeps the number of values of each cell. Two sets of cells are equal if they got the same values, in any
/// order. A cell holds any 2^63 values.
#[derive(Clone, Debug)]
pub struct Cells<const BINS: usize> {
    bins: [Vec<f64>; BINS],
    carries: [Vec<i64>; BINS],
    flags: Vec<u8>,
    strips: Vec<Strip>,
}

impl<const BINS: usize> PartialEq for Cells<BINS> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && (0..self.len()).all(|at| {
                let (a, b) = (self.cell(at), other.cell(at));
                (a.flags, a.top(), a.totals()) == (b.flags, b.top(), b.totals())
            })
    }
}

impl<const BINS: usize> Cells<BINS> {
    /// Bytes of memory of a cell.
    pub const CELL_BYTES: usize = BINS * 16 + 1;

    /// `cells` sums of no values.
    pub fn new(cells: usize) -> Cells<BINS> {
        Cells {
            bins: starts(lowest_top(BINS)).map(|start| vec![start; cells]),
            carries: std::array::from_fn(|_| vec![0; cells]),
            flags: vec![0; cells],
            strips: vec![Strip::default(); cells.div_ceil(STRIP)],
        }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// Adds `values[i]` to cell `at + i`. With `skip_nan` NaNs add nothing. Without it they make their cells NaN.
    /// Values without a cell are left out.
    pub fn add_row<T: Real>(&mut self, at: usize, values: &[T], skip_nan: bool) {
        self.add_row_on(Path::best(), at, values, skip_nan);
    }

    pub(crate) fn add_row_on<T: Real>(&mut self, path: Path, at: usize, values: &[T], skip_nan: bool) {
        let end = at.saturating_add(values.len()).min(self.len());
        let mut from = at;
        while from < end {
            let strip = from / STRIP;
            let to = ((strip + 1) * STRIP).min(end);
            self.count_deposit(strip);
            let part = &values[from - at..to - at];
            let added = !self.strips[strip].huge && {
                let planes = self.bins.each_mut().map(|plane| &mut plane[from..to]);
                if skip_nan {
                    path.run(Row::<T, BINS, true> { values: part, planes })
                } else {
                    path.run(Row::<T, BINS, false> { values: part, planes })
                }
            };
            if !added {
                for (cell, x) in (from..to).zip(part) {
                    self.add_one(cell, x.widen(), skip_nan);
                }
            }
            from = to;
        }
    }

    /// Adds all values to the cell `at`, if there is one. With `skip_nan` NaNs add nothing.
    pub fn add_run<T: Real>(&mut self, at: usize, values: &[T], skip_nan: bool) {
        self.add_run_on(Path::best(), at, values, skip_nan);
    }

    pub(crate) fn add_run_on<T: Real>(&mut self, path: Path, at: usize, values: &[T], skip_nan: bool) {
        if at >= self.len() {
            return;
        }
        for piece in values.chunks(PIECE) {
            let (groups, rest) = piece.as_chunks::<LANES>();
            if !groups.is_empty() && !self.add_groups(path, at, groups, skip_nan) {
                for x in groups.as_flattened() {
                    self.count_deposit(at / STRIP);
                    self.add_one(at, x.widen(), skip_nan);
                }
            }
            for x in rest {
                self.count_deposit(at / STRIP);
                self.add_one(at, x.widen(), skip_nan);
            }
        }
    }

    /// Adds groups of values to a cell. Returns `false` and changes nothing if the values must be added one by one.
    fn add_groups<T: Real>(&mut self, path: Path, at: usize, groups: &[[T; LANES]], skip_nan: bool) -> bool {
        let flat = groups.as_flattened();
        let largest = if skip_nan {
            path.run(LargestMagnitude::<T, true>(flat))
        } else {
            path.run(LargestMagnitude::<T, false>(flat))
        };
        let mut cell = self.cell(at);
        match largest {
            Some(0.0) => return true,
            Some(largest) => cell.raise(top_of(largest, BINS)),
            None => return false,
        }
        if cell.flags & HUGE != 0 {
            return false;
        }
        let top = cell.top();
        let starts = starts(top);
        let taken = if skip_nan {
            path.run(Run::<T, BINS, true> { values: groups, starts })
        } else {
            path.run(Run::<T, BINS, false> { values: groups, starts })
        };
        let mut totals = cell.totals();
        for (total, taken) in totals.iter_mut().zip(taken) {
            *total += i128::from(taken);
        }
        self.put(at, Cell::from_totals(top, totals, cell.flags));
        true
    }

    #[inline]
    fn add_one(&mut self, at: usize, x: f64, skip_nan: bool) {
        if x == 0.0 || skip_nan && x.is_nan() {
            return;
        }
        let mut cell = self.cell(at);
        cell.add(x);
        self.put(at, cell);
    }

    /// Adds the sums of `other`, which has as many cells.
    pub fn merge(&mut self, other: &Cells<BINS>) {
        for at in 0..self.len().min(other.len()) {
            self.merge_cell(at, &other.cell(at));
        }
    }

    /// Adds the first cell of `other` to the cell `at`. Does nothing if one of them does not exist.
    pub fn merge_one(&mut self, at: usize, other: &Cells<BINS>) {
        if at < self.len() && !other.is_empty() {
            self.merge_cell(at, &other.cell(0));
        }
    }

    pub(crate) fn merge_cell(&mut self, at: usize, other: &Cell<BINS>) {
        let mut cell = self.cell(at);
        cell.merge(other);
        self.put(at, cell);
    }

    /// The sum of the cell `at` divided by `n`, before rounding. NaN if there is no such cell, if `n` is 0, if a value
    /// was NaN, or if there were infinities of both signs. Infinities of one sign give that infinity. A sum whose
    /// distance from the limit of overflow is below the error of the bins rounds to the largest number or to infinity.
    pub fn exactly(&self, at: usize, n: u64) -> ExactNumber {
        if at >= self.len() || n == 0 {
            return ExactNumber::NAN;
        }
        let cell = self.cell(at);
        match cell.special() {
            Some(special) => ExactNumber::special(special),
            None => ExactNumber::from_bins(cell.totals(), grid(cell.top() - (BINS - 1) as u8), n),
        }
    }

    /// Whether a value of the cell was not finite.
    pub fn is_special(&self, at: usize) -> bool {
        self.flags.get(at).is_some_and(|flags| flags & !HUGE != 0)
    }

    pub(crate) fn cell(&self, at: usize) -> Cell<BINS> {
        Cell {
            bins: std::array::from_fn(|k| self.bins[k][at]),
            carries: std::array::from_fn(|k| self.carries[k][at]),
            flags: self.flags[at],
        }
    }

    pub(crate) fn put(&mut self, at: usize, cell: Cell<BINS>) {
        for k in 0..BINS {
            self.bins[k][at] = cell.bins[k];
            self.carries[k][at] = cell.carries[k];
        }
        self.flags[at] = cell.flags;
        self.strips[at / STRIP].huge |= cell.flags & HUGE != 0;
    }

    #[inline]
    fn count_deposit(&mut self, strip: usize) {
        if self.strips[strip].deposits >= MAX_DEPOSITS {
            let end = ((strip + 1) * STRIP).min(self.len());
            self.carry(strip * STRIP..end);
            self.strips[strip].deposits = 0;
        }
        self.strips[strip].deposits += 1;
    }

    /// Moves multiples of 2^50 units to the carries.
    fn carry(&mut self, cells: Range<usize>) {
        for at in cells {
            let stored = self.cell(at).top() - if self.flags[at] & HUGE != 0 { HUGE_BINS } else { 0 };
            for k in 0..BINS {
                let rest = self.bins[k][at].to_bits() as i64 - start(stored - k as u8).to_bits() as i64;
                let over = rest >> CARRY_BITS;
                self.carries[k][at] = self.carries[k][at].wrapping_add(over);
                let bits = self.bins[k][at].to_bits() as i64 - (over << CARRY_BITS);
                self.bins[k][at] = f64::from_bits(bits as u64);
            }
        }
    }
}
