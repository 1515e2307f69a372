//! Sums of many cells at once. They do not depend on the order: values are rounded to a fine grid and added exactly.
//!
//! If 2^e bounds the values, the grid has a spacing of 2^(e-80). A value is split into a multiple of 2^(e-40) and a
//! rest. To do this, a large number is added and subtracted, as in Demmel and Nguyen, "Fast reproducible floating-point
//! summation" (2013). Both parts are added up in `f64` without an error for [`CARRY_EVERY`] values. Then they are
//! carried to integers of 128 bits. The error of a sum of n values is at most n 2^(e-81), far below the error of a sum
//! in `f64`.

use multiversion::multiversion;

use crate::KernelError;
use crate::state::{StateReader, StateWriter};

/// Cells that are added to together.
const WIDE: usize = 8;

/// Bits of the coarse part, and of the fine part.
const BITS: i32 = 40;

/// Most values that a cell takes before it is carried.
const CARRY_EVERY: u32 = 1 << 12;

/// Exponents e for which all intermediate results are normal numbers.
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

/// The numbers that round a value to the coarse and the fine grid. A value becomes a multiple of the spacing when such
/// a number is added and subtracted.
#[derive(Clone, Copy, Debug)]
struct Grid {
    coarse: f64,
    fine: f64,
}

impl Grid {
    #[inline(always)]
    fn add(self, x: f64, high: &mut f64, low: &mut f64) {
        let top = (x + self.coarse) - self.coarse;
        *high += top;
        *low += ((x - top) + self.fine) - self.fine;
    }
}

/// Sums of rows of cells whose values are at most 2^e.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    exponent: i32,
    grid: Grid,
    /// Cells of a row, and the distance of rows in `high` and `low`. The elements between two rows are not used.
    width: usize,
    stride: usize,
    high: Vec<f64>,
    low: Vec<f64>,
    /// Carried sums in units of the fine grid, row by row.
    totals: Vec<i128>,
    pending: u32,
}

impl Cells {
    /// `rows` rows of `width` empty cells.
    pub fn new(exponent: i32, rows: usize, width: usize) -> Cells {
        let width = width.max(1);
        // Short rows would become much longer.
        let stride = if width < WIDE { width } else { width.next_multiple_of(WIDE) };
        let (coarse, fine) = (1.5 * power(exponent - BITS + 52), 1.5 * power(exponent - 2 * BITS + 52));
        Cells {
            exponent,
            grid: Grid { coarse, fine },
            width,
            stride,
            high: vec![0.0; rows * stride],
            low: vec![0.0; rows * stride],
            totals: vec![0; rows * width],
            pending: 0,
        }
    }

    /// Adds each point to the row with its number. A point is as wide as a row.
    pub fn add(&mut self, numbers: &[u32], points: &[f64]) {
        add_points(self.grid, (self.width, self.stride), &mut self.high, &mut self.low, numbers, points);
    }

    /// Adds all values to the first cell.
    pub fn add_to_first(&mut self, values: &[f64]) {
        if let (Some(high), Some(low)) = (self.high.first_mut(), self.low.first_mut()) {
            let (more_high, more_low) = sums(self.grid, values);
            *high += more_high;
            *low += more_low;
        }
    }

    /// Counts additions, and carries the cells in time. It must be called with the number of additions since the last
    /// call, which is at most half of [`CARRY_EVERY`].
    pub fn count_additions(&mut self, additions: u32) {
        self.pending += additions;
        if self.pending > CARRY_EVERY / 2 {
            self.carry();
        }
    }

    fn carry(&mut self) {
        for at in 0..self.totals.len() {
            self.totals[at] = self.total(at);
        }
        self.high.fill(0.0);
        self.low.fill(0.0);
        self.pending = 0;
    }

    /// The sum in a cell (numbered row by row), in units of the fine grid.
    pub fn total(&self, at: usize) -> i128 {
        let place = at / self.width * self.stride + at % self.width;
        self.totals[at].wrapping_add(fine_units(self.exponent, self.high[place], self.low[place]))
    }

    /// The sum in a cell divided by a count, rounded.
    pub fn quotient(&self, at: usize, count: u64) -> f64 {
        self.total(at) as f64 / count.max(1) as f64 * power(self.exponent - 2 * BITS)
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        (0..self.totals.len()).for_each(|at| out.put_i128(self.total(at)));
    }

    /// Adds the saved sums of as many cells.
    pub fn merge(&mut self, read: &mut StateReader<'_>) -> Result<(), KernelError> {
        for total in &mut self.totals {
            *total = total.wrapping_add(read.i128()?);
        }
        Ok(())
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn add_points(
    grid: Grid,
    (width, stride): (usize, usize),
    high: &mut [f64],
    low: &mut [f64],
    numbers: &[u32],
    points: &[f64],
) {
    for (n, number) in numbers.iter().enumerate() {
        let at = *number as usize * stride;
        let (high, low) = (&mut high[at..at + stride], &mut low[at..at + stride]);
        let point = &points[n * width..];
        match point.get(..stride) {
            // The values after the point go to the elements between two rows, which are not used.
            Some(point) if stride.is_multiple_of(WIDE) => {
                let (high, low) = (high.as_chunks_mut::<WIDE>().0, low.as_chunks_mut::<WIDE>().0);
                for ((high, low), point) in high.iter_mut().zip(low).zip(point.as_chunks::<WIDE>().0) {
                    for n in 0..WIDE {
                        grid.add(point[n], &mut high[n], &mut low[n]);
                    }
                }
            }
            _ => {
                for ((high, low), x) in high.iter_mut().zip(low).zip(&point[..width]) {
                    grid.add(*x, high, low);
                }
            }
        }
    }
}

/// The sums of the coarse and the fine parts. They are exact, so the order does not matter.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx", "x86_64+sse4.2"))]
fn sums(grid: Grid, values: &[f64]) -> (f64, f64) {
    let (mut high, mut low) = ([0.0; WIDE], [0.0; WIDE]);
    let (chunks, rest) = values.as_chunks::<WIDE>();
    for chunk in chunks {
        for n in 0..WIDE {
            grid.add(chunk[n], &mut high[n], &mut low[n]);
        }
    }
    for x in rest {
        grid.add(*x, &mut high[0], &mut low[0]);
    }
    (high.iter().sum(), low.iter().sum())
}

fn fine_units(exponent: i32, high: f64, low: f64) -> i128 {
    let high = (high * power(BITS - exponent)) as i64;
    // Two steps, because 2^(80-e) may overflow.
    let low = (low * power(BITS - exponent) * power(BITS)) as i64;
    (i128::from(high) << BITS) + i128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_accurate_in_any_order_and_split(
            values in prop::collection::vec(-1e6f64..1e6, 0..200), split in 0usize..200,
        ) {
            let e = exponent(1e6).unwrap();
            let sum = |values: &[f64]| {
                let mut cells = Cells::new(e, 1, 1);
                cells.add_to_first(values);
                cells.count_additions(values.len() as u32);
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
            prop_assert!((whole.quotient(0, 1) - exact.value()).abs() <= 1e-12 * exact.value().abs() + 1e-15);
        }

        /// Each cell of each row has the sum that a separate cell would have.
        #[test]
        fn rows_do_not_mix(width in 1usize..20, rows in 1usize..5, count in 0usize..60, seed: u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let numbers: Vec<u32> = (0..count).map(|_| rng.u32(0..rows as u32)).collect();
            let points: Vec<f64> = (0..count * width).map(|_| rng.f64() * 2.0 - 1.0).collect();
            let mut cells = Cells::new(0, rows, width);
            cells.add(&numbers, &points);
            cells.count_additions(count as u32);
            for at in 0..rows * width {
                let of_row = |(n, _): &(usize, &u32)| numbers[*n] as usize == at / width;
                let values = numbers.iter().enumerate().filter(of_row).map(|(n, _)| points[n * width + at % width]);
                let mut one = Cells::new(0, 1, 1);
                one.add_to_first(&values.collect::<Vec<f64>>());
                prop_assert_eq!(cells.total(at), one.total(0));
            }
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
        let mut cells = Cells::new(0, 1, 2);
        for _ in 0..100 {
            for _ in 0..CARRY_EVERY / 2 {
                cells.add(&[0], &[1.0, -1.0]);
            }
            cells.count_additions(CARRY_EVERY / 2);
        }
        let n = u64::from(100 * CARRY_EVERY / 2);
        assert_eq!((cells.quotient(0, n), cells.quotient(1, n)), (1.0, -1.0));
    }
}
