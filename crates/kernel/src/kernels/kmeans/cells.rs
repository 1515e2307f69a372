//! Sums of many cells at once, the same whatever the order: values are rounded to one fine grid and added exactly.
//!
//! With 2^e the largest value, the grid has a spacing of 2^(e-80). A value is split into a multiple of 2^(e-40) and a
//! rest by adding and taking away a large number, as in Demmel and Nguyen, "Fast reproducible floating-point summation"
//! (2013); both parts are added up in `f64` without an error for [`CARRY_EVERY`] values and then carried to integers of
//! 128 bits. The error of a sum of n values is at most n 2^(e-81), which is far below that of adding in `f64`.

use crate::KernelError;
use crate::state::{StateReader, StateWriter};

/// Bits of the coarse part, and of the fine one.
const BITS: i32 = 40;

/// Values that a cell takes before it is carried.
const CARRY_EVERY: u32 = 1 << 12;

/// Exponents e of the largest value for which all steps stay within normal numbers.
pub(crate) const EXPONENTS: std::ops::RangeInclusive<i32> = -900..=900;

/// 2^n for a normal number.
fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The smallest e within [`EXPONENTS`] with `max <= 2^e`; `None` if there is none.
pub(crate) fn exponent(max: f64) -> Option<i32> {
    let low = *EXPONENTS.start();
    let found = EXPONENTS.clone().find(|e| max <= power(*e));
    if max <= power(low) { Some(low) } else { found }
}

/// Sums of cells whose values are at most 2^e.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    exponent: i32,
    /// Adding and taking away this rounds to the coarse grid.
    coarse: f64,
    fine: f64,
    high: Vec<f64>,
    low: Vec<f64>,
    /// In units of the fine grid.
    totals: Vec<i128>,
    pending: u32,
}

impl Cells {
    /// So many empty cells.
    pub fn new(exponent: i32, cells: usize) -> Cells {
        Cells {
            exponent,
            coarse: 1.5 * power(exponent - BITS + 52),
            fine: 1.5 * power(exponent - 2 * BITS + 52),
            high: vec![0.0; cells],
            low: vec![0.0; cells],
            totals: vec![0; cells],
            pending: 0,
        }
    }

    /// Adds values to the cells from `at` on, one each.
    #[inline(always)]
    pub fn add(&mut self, at: usize, values: &[f64]) {
        let (coarse, fine) = (self.coarse, self.fine);
        let cells = self.high[at..][..values.len()].iter_mut().zip(&mut self.low[at..][..values.len()]);
        for (x, (high, low)) in values.iter().zip(cells) {
            let top = (x + coarse) - coarse;
            *high += top;
            *low += ((x - top) + fine) - fine;
        }
    }

    /// To be called with the additions since the last time, at most half of [`CARRY_EVERY`].
    pub fn added(&mut self, additions: u32) {
        self.pending += additions;
        if self.pending > CARRY_EVERY / 2 {
            self.carry();
        }
    }

    fn carry(&mut self) {
        for (at, total) in self.totals.iter_mut().enumerate() {
            *total = total.wrapping_add(carried(self.exponent, self.high[at], self.low[at]));
        }
        self.high.fill(0.0);
        self.low.fill(0.0);
        self.pending = 0;
    }

    /// The sum in a cell, in units of the fine grid.
    pub fn total(&self, at: usize) -> i128 {
        self.totals[at].wrapping_add(carried(self.exponent, self.high[at], self.low[at]))
    }

    /// The sum in a cell over a count, rounded.
    pub fn over(&self, at: usize, count: u64) -> f64 {
        self.total(at) as f64 / count.max(1) as f64 * power(self.exponent - 2 * BITS)
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        (0..self.totals.len()).for_each(|at| out.put_i128(self.total(at)));
    }

    /// Adds what another saved of as many cells.
    pub fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        for total in &mut self.totals {
            *total = total.wrapping_add(read.i128()?);
        }
        Ok(())
    }
}

fn carried(exponent: i32, high: f64, low: f64) -> i128 {
    let high = (high * power(BITS - exponent)) as i64;
    // In two steps, for 2^(80-e) may be beyond what there is.
    let low = (low * power(BITS - exponent) * power(BITS)) as i64;
    (i128::from(high) << BITS) + i128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_and_splits_change_nothing_and_the_sum_is_right(
            values in prop::collection::vec(-1e6f64..1e6, 0..200), split in 0usize..200,
        ) {
            let e = exponent(1e6).unwrap();
            let sum = |values: &[f64]| {
                let mut cells = Cells::new(e, 1);
                for x in values {
                    cells.add(0, &[*x]);
                    cells.added(1);
                }
                cells
            };
            let whole = sum(&values);
            let (left, right) = values.split_at(split.min(values.len()));
            let mut saved = Vec::new();
            sum(left).save(&mut saved);
            let mut joined = sum(right);
            joined.merge(&mut StateReader::new("cells", &saved)).unwrap();
            prop_assert_eq!(whole.total(0), joined.total(0));
            let mut exact = gristmill_exact::Sum::new();
            values.iter().for_each(|x| exact.add(*x));
            prop_assert!((whole.over(0, 1) - exact.value()).abs() <= 1e-12 * exact.value().abs() + 1e-15);
        }
    }

    #[test]
    fn exponents_cover_the_largest_value() {
        for (max, e) in [(1.0, 0), (1.5, 1), (2.0, 1), (0.0, -900), (1e-300, -900), (0.3, -1)] {
            assert_eq!(exponent(max), Some(e), "{max}");
        }
        assert_eq!(exponent(1e300), None);
    }

    #[test]
    fn many_additions_are_carried_in_time() {
        let mut cells = Cells::new(0, 2);
        for _ in 0..100 {
            for _ in 0..CARRY_EVERY / 2 {
                cells.add(0, &[1.0, -1.0]);
            }
            cells.added(CARRY_EVERY / 2);
        }
        let n = u64::from(100 * CARRY_EVERY / 2);
        assert_eq!((cells.over(0, n), cells.over(1, n)), (1.0, -1.0));
    }
}
