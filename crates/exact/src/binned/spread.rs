//! Variances and covariances of cells, and what the rounding of a sum left.

use num_bigint::{BigInt, BigUint, Sign};

use crate::binned::Cells;
use crate::binned::grid::{Cell, WIDTH, grid};
use crate::exactly::Exactly;

impl<const BINS: usize> Cells<BINS> {
    /// `(n * Sxx - Sx * Sx) / (n * (n - ddof))` of the cell `at` of two rows of cells, which hold the sums of `n` values
    /// and of their squares as [`squares`](crate::squares) has them. NaN where `n <= ddof` or a value was not finite.
    ///
    /// The fraction of what the cells hold is exact. With three bins for the values and four for their squares nothing is
    /// dropped where all values are within 2^-7 of the largest (and squares above 2^-968): then the variance is exact
    /// however small it is beside the values. Where one is smaller the variance is at least `max|x|^2 / (3 n)`, and it is off by
    /// at most `2^-76 * n / (n - ddof) * max|x|^2`. A fraction that this made negative is 0, and so is that of one value.
    pub fn variance<const SQUARE_BINS: usize>(
        &self,
        squares: &Cells<SQUARE_BINS>,
        at: usize,
        n: u64,
        ddof: u64,
    ) -> Exactly {
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

    /// The sum of `(x - mean of x) * (y - mean of y)` over `n` pairs: `Sxy - Sx * Sy / n` of the cell `at` of these sums of x, of
    /// those of y and of those of the products, which is an exact fraction of what the cells hold. NaN where `n` is 0 or a value
    /// was not finite.
    ///
    /// With five bins each nothing is dropped where the values of x, and those of y, are within 2^-27 of the largest of theirs.
    /// What is dropped otherwise is at most `n * 2^-158 * max|x| * max|y|`. That of one pair is 0, also where its product has bits
    /// below the least f64.
    pub fn comoment(&self, y: &Cells<BINS>, products: &Cells<BINS>, at: usize, n: u64) -> Exactly {
        let inside = |cells: &Cells<BINS>| at < cells.len() && !cells.is_special(at);
        if n == 0 || !(inside(self) && inside(y) && inside(products)) {
            return Exactly::NAN;
        }
        if n == 1 {
            return Exactly::ratio(BigInt::ZERO, BigUint::from(1u8), 0);
        }
        let (x, x_exp2) = big(&self.cell(at));
        let (y, y_exp2) = big(&y.cell(at));
        let (products, products_exp2) = big(&products.cell(at));
        let means_exp2 = x_exp2 + y_exp2;
        let exp2 = products_exp2.min(means_exp2);
        let products = (products * n) << (products_exp2 - exp2).unsigned_abs();
        let means = (x * y) << (means_exp2 - exp2).unsigned_abs();
        Exactly::ratio(products - means, BigUint::from(n), exp2.into())
    }

    /// What is left of the sum of the cell `at` when `rounded`, a number near it, is taken away, rounded once. 0 where either
    /// is not finite or there is no such cell.
    pub fn remainder(&self, at: usize, rounded: f64) -> f64 {
        if at >= self.len() || self.is_special(at) || !rounded.is_finite() {
            return 0.0;
        }
        let (sum, exp2) = big(&self.cell(at));
        Exactly::difference(&sum, exp2.into(), rounded).to_f64()
    }

    /// The cell `at` divided by the same cell of `weights`: a weighted mean, where these cells hold the sums of
    /// products. NaN where either is not finite, or the weights add up to 0.
    pub fn quotient(&self, weights: &Cells<BINS>, at: usize) -> Exactly {
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
fn big<const BINS: usize>(cell: &Cell<BINS>) -> (BigInt, i32) {
    (joined(&cell.totals()), grid(cell.top() - (BINS - 1) as u8))
}

/// The totals of bins as one integer, in units of the lowest grid.
pub(crate) fn joined(totals: &[i128]) -> BigInt {
    totals.iter().fold(BigInt::ZERO, |all, total| (all << WIDTH as u32) + total)
}
