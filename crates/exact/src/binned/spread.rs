//! Variances of cells.

use num_bigint::{BigInt, BigUint, Sign};

use crate::binned::BinnedCells;
use crate::binned::grid::{Cell, grid};
use crate::exactly::Exactly;

impl BinnedCells {
    /// `(n * Sxx - Sx * Sx) / (n * (n - ddof))` of the cell `at` of two rows of cells, which hold the sums of `n` values
    /// and of their squares as [`squares`](crate::squares) has them. NaN where `n <= ddof` or a value was not finite.
    ///
    /// The fraction of what the cells hold is exact. What they dropped leaves it off by at most
    /// `2^-77 * n / (n - ddof) * max|x|^2`; a fraction that this made negative is 0, and so is that of one value.
    pub fn variance(&self, squares: &BinnedCells, at: usize, n: u64, ddof: u64) -> Exactly {
        if n <= ddof
            || at >= self.len()
            || at >= squares.len()
            || self.is_special(at)
            || squares.is_special(at)
        {
            return Exactly::NAN;
        }
        if n == 1 {
            return Exactly::ratio(BigInt::ZERO, BigUint::from(1u8), 0);
        }
        let ((sum, sum_exp2), (squares, squares_exp2)) = (big(&self.cell(at)), big(&squares.cell(at)));
        let exp2 = squares_exp2.min(2 * sum_exp2);
        let squares = (squares * n) << (squares_exp2 - exp2).unsigned_abs();
        let square = (&sum * &sum) << (2 * sum_exp2 - exp2).unsigned_abs();
        let num = squares - square;
        let num = if num.sign() == Sign::Minus { BigInt::ZERO } else { num };
        Exactly::ratio(num, BigUint::from(n) * (n - ddof), exp2.into())
    }

    /// The cell `at` divided by the same cell of `weights`: a weighted mean, where these cells hold the sums of
    /// products. NaN where either is not finite, or the weights add up to 0.
    pub fn quotient(&self, weights: &BinnedCells, at: usize) -> Exactly {
        if at >= self.len() || at >= weights.len() || weights.is_special(at) {
            return Exactly::NAN;
        }
        let (den, den_exp2) = big(&weights.cell(at));
        if den.sign() == Sign::NoSign {
            return Exactly::NAN;
        }
        if let Some(special) = self.cell(at).special() {
            return Exactly::special(if den.sign() == Sign::Minus { -special } else { special });
        }
        let (num, num_exp2) = big(&self.cell(at));
        let num = if den.sign() == Sign::Minus { -num } else { num };
        Exactly::ratio(num, den.magnitude().clone(), i64::from(num_exp2) - i64::from(den_exp2))
    }
}

/// What a cell holds, as `integer * 2^exp2`.
fn big(cell: &Cell) -> (BigInt, i32) {
    let [first, second, third] = cell.totals().map(BigInt::from);
    ((first << 80) + (second << 40) + third, grid(cell.top() - 2))
}
