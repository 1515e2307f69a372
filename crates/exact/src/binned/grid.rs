//! The grids of the bins, and one cell.
//!
//! Bin `b` has the grid `2^(40 b - 1074)` of values times [`SCALE`], so that the lowest bit of a subnormal value is
//! above the lowest grid. An accumulator begins at 1.5 times 2^52 units and never leaves its binade. So its spacing
//! is the grid, and adding to it rounds to the grid. The *top* of a cell is the first of its bins: the lowest bin whose
//! half range, 2^39 units, is above every value. All bins above it would take slices of zero.

use crate::round::CANONICAL_NAN;

/// Bits from one grid to the next.
pub(crate) const WIDTH: i32 = 40;
/// The factor of values: 2^64.
pub(crate) const SCALE: f64 = 18_446_744_073_709_551_616.0;
/// The factor of values in huge cells, which is three bins lower.
pub(crate) const HUGE_SCALE: f64 = SCALE / (1u128 << 120) as f64;
/// The top of a cell without values. Its lowest grid is below every bit of an `f64`.
pub(crate) const fn lowest_top(bins: usize) -> u8 {
    bins as u8
}
/// The highest top whose accumulators are finite. Cells with a higher top are *huge*: their content is scaled down by
/// [`HUGE_BINS`] bins.
pub(crate) const HIGHEST_PLAIN: u8 = 51;
/// The top of the largest `f64`.
pub(crate) const HIGHEST_TOP: u8 = 54;
/// Bins by which huge cells are scaled down.
pub(crate) const HUGE_BINS: u8 = 3;
/// After a carry, an accumulator holds its total modulo `2^CARRY_BITS` units. The multiples of this are in the carry.
pub(crate) const CARRY_BITS: u32 = 50;
/// Slices that an accumulator takes between two carries: 2^11 of 2^39 units are the 2^50 that it has room for.
pub(crate) const MAX_DEPOSITS: u32 = 2047;
/// The bound of the values that an accumulator takes, divided by its binade: 2^39 of 2^52 units.
pub(crate) const LIMIT: f64 = 1.0 / 8192.0;

/// Some value was NaN.
pub(crate) const NAN: u8 = 1;
/// Some value was +infinity.
pub(crate) const POSITIVE: u8 = 2;
/// Some value was -infinity.
pub(crate) const NEGATIVE: u8 = 4;
/// The cell is huge.
pub(crate) const HUGE: u8 = 8;

/// The number at which the accumulator of a bin begins.
pub(crate) const fn start(bin: u8) -> f64 {
    let exponent = 52 - 1074 + WIDTH * bin as i32;
    f64::from_bits((((exponent + 1023) as u64) << 52) | (1 << 51))
}

/// The numbers at which the accumulators of a cell begin if its first bin is `top`.
pub(crate) const fn starts<const BINS: usize>(top: u8) -> [f64; BINS] {
    let mut starts = [0.0; BINS];
    let mut k = 0;
    while k < BINS {
        starts[k] = start(top - k as u8);
        k += 1;
    }
    starts
}

/// Exponent of the grid of a bin, for values that are not scaled.
pub(crate) const fn grid(bin: u8) -> i32 {
    WIDTH * bin as i32 - 1074 - 64
}

/// The top that a finite value needs in a cell of `bins` bins.
pub(crate) fn top_of(x: f64, bins: usize) -> u8 {
    let field = ((x.to_bits() >> 52) & 0x7ff) as i32;
    let exponent = field.max(1) - 1023;
    // |x| < 2^(exponent + 1), and 2^64 times this must be at most 2^39 units of the grid.
    let top = (exponent + 1 + 64 + 1074 - 39 + WIDTH - 1) / WIDTH;
    top.clamp(lowest_top(bins) as i32, HIGHEST_TOP as i32) as u8
}

/// A copy of one cell of the planes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell<const BINS: usize> {
    pub(crate) bins: [f64; BINS],
    pub(crate) carries: [i64; BINS],
    pub(crate) flags: u8,
}

impl<const BINS: usize> Cell<BINS> {
    pub(crate) const EMPTY: Cell<BINS> =
        Cell { bins: starts(lowest_top(BINS)), carries: [0; BINS], flags: 0 };

    pub(crate) fn top(&self) -> u8 {
        let exponent = ((self.bins[0].to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let stored = ((exponent - 52 + 1074) / WIDTH) as u8;
        if self.flags & HUGE != 0 { stored + HUGE_BINS } else { stored }
    }

    /// The cell whose bins begin at `top` and hold these totals, in units of their grids.
    pub(crate) fn from_totals(top: u8, totals: [i128; BINS], flags: u8) -> Cell<BINS> {
        let huge = top > HIGHEST_PLAIN;
        let stored = if huge { top - HUGE_BINS } else { top };
        let mut cell = Cell { flags: (flags & !HUGE) | if huge { HUGE } else { 0 }, ..Cell::EMPTY };
        for (k, total) in totals.into_iter().enumerate() {
            let rest = (total & ((1 << CARRY_BITS) - 1)) as u64;
            cell.bins[k] = f64::from_bits(start(stored - k as u8).to_bits() + rest);
            cell.carries[k] = (total >> CARRY_BITS) as i64;
        }
        cell
    }

    /// The total of each bin, in units of its grid.
    pub(crate) fn totals(&self) -> [i128; BINS] {
        let top = self.top();
        let stored = if self.flags & HUGE != 0 { top - HUGE_BINS } else { top };
        std::array::from_fn(|k| {
            let begin = start(stored - k as u8).to_bits() as i64;
            let rest = self.bins[k].to_bits() as i64 - begin;
            (i128::from(self.carries[k]) << CARRY_BITS) + i128::from(rest)
        })
    }

    /// The totals in bins that begin at a higher `top`.
    pub(crate) fn totals_at(&self, top: u8) -> [i128; BINS] {
        let mut totals = self.totals();
        let up = usize::from(top - self.top()).min(BINS);
        totals.rotate_right(up);
        totals[..up].fill(0);
        totals
    }

    pub(crate) fn raise(&mut self, top: u8) {
        if top > self.top() {
            // A short way for empty cells, with which most cells begin.
            if top <= HIGHEST_PLAIN && self.bins == Self::EMPTY.bins && self.carries == Self::EMPTY.carries {
                self.bins = starts(top);
                return;
            }
            *self = Cell::from_totals(top, self.totals_at(top), self.flags);
        }
    }

    /// Adds a value of any kind. The caller counts one deposit.
    pub(crate) fn add(&mut self, x: f64) {
        if !x.is_finite() {
            self.flags |= match (x.is_nan(), x > 0.0) {
                (true, _) => NAN,
                (false, true) => POSITIVE,
                (false, false) => NEGATIVE,
            };
            return;
        }
        if x == 0.0 {
            return;
        }
        self.raise(top_of(x, BINS));
        let scale = if self.flags & HUGE != 0 { HUGE_SCALE } else { SCALE };
        deposit(&mut self.bins, x * scale);
    }

    pub(crate) fn merge(&mut self, other: &Cell<BINS>) {
        let top = self.top().max(other.top());
        let (mut totals, more) = (self.totals_at(top), other.totals_at(top));
        for (total, more) in totals.iter_mut().zip(more) {
            *total = total.wrapping_add(more);
        }
        *self = Cell::from_totals(top, totals, self.flags | other.flags);
    }

    /// The answer if it does not depend on the finite values.
    pub(crate) fn special(&self) -> Option<f64> {
        match (self.flags & NAN != 0, self.flags & POSITIVE != 0, self.flags & NEGATIVE != 0) {
            (true, ..) | (_, true, true) => Some(CANONICAL_NAN),
            (_, true, false) => Some(f64::INFINITY),
            (_, false, true) => Some(f64::NEG_INFINITY),
            (false, false, false) => None,
        }
    }
}

/// Adds the slices of a scaled value that is below the limit of the first bin.
///
/// The lowest bit of a rest is set before it is rounded, so that no rest is a tie between two multiples of the grid.
/// The direction of a tie would depend on the content of the accumulator. That bit is below half a unit in every bin,
/// except in the last bin of the smallest values. [`SCALE`] keeps values away from it.
#[inline(always)]
pub(crate) fn deposit<const BINS: usize>(bins: &mut [f64; BINS], scaled: f64) {
    let mut rest = scaled;
    for bin in bins {
        let total = *bin + f64::from_bits(rest.to_bits() | 1);
        rest -= total - *bin;
        *bin = total;
    }
}
