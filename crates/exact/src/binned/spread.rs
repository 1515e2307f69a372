//! Variances and covariances of cells, and the rests of rounded sums.

use num_bigint::{BigInt, BigUint, Sign};

use crate::binned::Cells;
use crate::binned::grid::{Cell, WIDTH, grid};
use crate::exact_number::ExactNumber;

impl<const BINS: usize> Cells<BINS> {
    /// The variance `(n * Sxx - Sx * Sx) / (n * (n - ddof))` of the cell `at`. These cells hold the sums of `n`
    /// values. The other cells hold the sums of their squares, as [`squares`](crate::squares) computes them. The
    /// result is NaN if `n <= ddof` or a value was not finite.
    ///
    /// The fraction is exact for the content of the cells. With three bins for the values and four for their squares no
    /// bit is dropped if all values are within 2^-7 of the largest (and squares above 2^-968). Then the variance is
    /// exact, also if it is much smaller than the values. If a value is smaller, the variance is at least
    /// `max|x|^2 / (3 n)`, and its error is at most `2^-76 * n / (n - ddof) * max|x|^2`. If the error makes the
    /// fraction negative, the variance is 0. The variance of one value is 0, too.
    pub fn variance<const SQUARE_BINS: usize>(
        &self,
        squares: &Cells<SQUARE_BINS>,
        at: usize,
        n: u64,
        ddof: u64,
    ) -> ExactNumber {
        if n <= ddof
            || at >= self.len()
            || at >= squares.len()
            || self.is_special(at)
            || squares.is_special(at)
        {
            return ExactNumber::NAN;
        }
        if n == 1 {
            return ExactNumber::ratio(BigInt::ZERO, BigUint::from(1u8), 0);
        }
        let ((sum, sum_exp2), (squares, squares_exp2)) = (big(&self.cell(at)), big(&squares.cell(at)));
        let exp2 = squares_exp2.min(2 * sum_exp2);
        let squares = (squares * n) << (squares_exp2 - exp2).unsigned_abs();
        let square = (&sum * &sum) << (2 * sum_exp2 - exp2).unsigned_abs();
        let num = squares - square;
        let num = if num.sign() == Sign::Minus { BigInt::ZERO } else { num };
        ExactNumber::ratio(num, BigUint::from(n) * (n - ddof), exp2.into())
    }

    /// The sum of `(x - mean of x) * (y - mean of y)` over `n` pairs: `Sxy - Sx * Sy / n` of the cell `at`. These
    /// cells hold the sums of x. The other cells hold the sums of y and of the products. The fraction is exact for the
    /// content of the cells. It is NaN if `n` is 0 or a value was not finite.
    ///
    /// With five bins each, no bit is dropped if all values of x are within 2^-27 of the largest x, and all values of y
    /// within 2^-27 of the largest y. Otherwise at most `n * 2^-158 * max|x| * max|y|` is dropped. The result of one
    /// pair is 0, also if its product has bits below the least f64.
    pub fn comoment(&self, y: &Cells<BINS>, products: &Cells<BINS>, at: usize, n: u64) -> ExactNumber {
        let inside = |cells: &Cells<BINS>| at < cells.len() && !cells.is_special(at);
        if n == 0 || !(inside(self) && inside(y) && inside(products)) {
            return ExactNumber::NAN;
        }
        if n == 1 {
            return ExactNumber::ratio(BigInt::ZERO, BigUint::from(1u8), 0);
        }
        let (x, x_exp2) = big(&self.cell(at));
        let (y, y_exp2) = big(&y.cell(at));
        let (products, products_exp2) = big(&products.cell(at));
        let means_exp2 = x_exp2 + y_exp2;
        let exp2 = products_exp2.min(means_exp2);
        let products = (products * n) << (products_exp2 - exp2).unsigned_abs();
        let means = (x * y) << (means_exp2 - exp2).unsigned_abs();
        ExactNumber::ratio(products - means, BigUint::from(n), exp2.into())
    }

    /// The sum of the cell `at` minus `rounded`, a number near it, rounded once. The result is 0 if either is not
    /// finite or if there is no such cell.
    pub fn remainder(&self, at: usize, rounded: f64) -> f64 {
        if at >= self.len() || self.is_special(at) || !rounded.is_finite() {
            return 0.0;
        }
        let (sum, exp2) = big(&self.cell(at));
        ExactNumber::difference(&sum, exp2.into(), rounded).to_f64()
    }

    /// The cell `at` divided by the same cell of `weights`. It is a weighted mean if these cells hold the sums of
    /// products. NaN if the weights are not finite or add up to 0, or if there is no such cell.
    pub fn quotient(&self, weights: &Cells<BINS>, at: usize) -> ExactNumber {
        if at >= self.len() || at >= weights.len() || weights.is_special(at) {
            return ExactNumber::NAN;
        }
        let (den, den_exp2) = big(&weights.cell(at));
        if den.sign() == Sign::NoSign {
            return ExactNumber::NAN;
        }
        if let Some(special) = self.cell(at).special() {
            return ExactNumber::special(if den.sign() == Sign::Minus { -special } else { special });
        }
        let (num, num_exp2) = big(&self.cell(at));
        let num = if den.sign() == Sign::Minus { -num } else { num };
        ExactNumber::ratio(num, den.magnitude().clone(), i64::from(num_exp2) - i64::from(den_exp2))
    }
}

/// The sum of a cell as `integer * 2^exp2`.
fn big<const BINS: usize>(cell: &Cell<BINS>) -> (BigInt, i32) {
    (joined(&cell.totals()), grid(cell.top() - (BINS - 1) as u8))
}

/// The totals of bins as one integer, in units of the lowest grid.
pub(crate) fn joined(totals: &[i128]) -> BigInt {
    totals.iter().fold(BigInt::ZERO, |all, total| (all << WIDTH as u32) + total)
}
