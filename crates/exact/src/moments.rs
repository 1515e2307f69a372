//! Exact sums of values and of their squares: mean, variance and standard deviation.

use num_bigint::{BigInt, BigUint, Sign};

use crate::block::{SquareTotal, add_values};
use crate::exact_number::ExactNumber;
use crate::path::Path;
use crate::ratio::{ratio_to_f64, sqrt_ratio_to_f64};
use crate::round::CANONICAL_NAN;
use crate::state::{DecodeError, HEAD_BYTES, Kind, NEGATIVE, Reader, write_head, write_magnitude};
use crate::sum::Sum;
use crate::wide::Wide;

const KIND: Kind = Kind { tag: 0x20, name: "pair of moments" };

/// Exact sums of `x` and of `x * x` over `f64` values (`f32` are widened). NaNs and infinities are counted,
/// not summed.
///
/// The state depends only on the multiset of the values, like the state of [`Sum`]. The caller keeps the number of
/// values.
#[derive(Clone, Debug)]
pub struct Moments {
    sum: Sum,
    squares: SquareTotal,
}

impl Default for Moments {
    fn default() -> Self {
        Moments::new()
    }
}

impl PartialEq for Moments {
    fn eq(&self, other: &Self) -> bool {
        self.sum == other.sum && self.squares.wide == other.squares.wide
    }
}

impl Eq for Moments {}

impl Moments {
    /// The longest encoding, in bytes.
    pub const STATE_BYTES: usize =
        HEAD_BYTES + Wide::<70, -1074>::STATE_BYTES + Wide::<136, -2148>::STATE_BYTES;

    /// The moments of no values.
    pub const fn new() -> Self {
        Moments { sum: Sum::new(), squares: SquareTotal::new(Wide::new()) }
    }

    /// Adds one value. The functions that take many values are faster.
    pub fn add(&mut self, x: f64) {
        self.sum.add(x);
        if x.is_finite() {
            self.squares.add(x);
        }
    }

    /// Adds little-endian `f64` values at any alignment. `bytes` holds whole values: its length is a multiple
    /// of 8. A release build ignores trailing bytes, a debug build panics.
    pub fn add_f64_le(&mut self, bytes: &[u8]) {
        self.add_f64_on(Path::best(), bytes);
    }

    /// Adds little-endian `f32` values at any alignment. `bytes` holds whole values: its length is a multiple
    /// of 4. A release build ignores trailing bytes, a debug build panics.
    pub fn add_f32_le(&mut self, bytes: &[u8]) {
        self.add_f32_on(Path::best(), bytes);
    }

    pub(crate) fn add_f64_on(&mut self, path: Path, bytes: &[u8]) {
        let (values, rest) = bytes.as_chunks::<8>();
        debug_assert!(rest.is_empty(), "{} bytes are not a whole number of f64", bytes.len());
        let (total, non_finite) = self.sum.parts_mut();
        add_values(path, values, non_finite, total, Some(&mut self.squares));
    }

    pub(crate) fn add_f32_on(&mut self, path: Path, bytes: &[u8]) {
        let (values, rest) = bytes.as_chunks::<4>();
        debug_assert!(rest.is_empty(), "{} bytes are not a whole number of f32", bytes.len());
        let (total, non_finite) = self.sum.parts_mut();
        add_values(path, values, non_finite, total, Some(&mut self.squares));
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &Moments) {
        self.sum.merge(&other.sum);
        self.squares.wide.merge(&other.squares.wide);
    }

    /// The sum of the values.
    pub fn sum(&self) -> &Sum {
        &self.sum
    }

    /// Number of NaNs that were added.
    pub fn nans(&self) -> u64 {
        self.sum.nans()
    }

    /// Numbers of positive and of negative infinities that were added.
    pub fn infinities(&self) -> (u64, u64) {
        self.sum.infinities()
    }

    /// The mean of `n` values: [`Sum::mean`], or [`Sum::mean_skip_nan`] with `skip_nan`.
    pub fn mean(&self, n: u64, skip_nan: bool) -> f64 {
        self.sum.mean_of(n, skip_nan)
    }

    /// The variance `(n * Sxx - Sx * Sx) / (n * (n - ddof))`, an exact rational that is rounded once. `ddof` is 0 for
    /// the variance of a population and 1 for the usual estimate from a sample.
    ///
    /// `n` is the number of values added, with `skip_nan` without NaNs. The result is NaN if there is any infinity, any
    /// NaN (unless `skip_nan`), or `n <= ddof`. It overflows to infinity.
    pub fn variance(&self, n: u64, ddof: u64, skip_nan: bool) -> f64 {
        match self.spread(n, ddof, skip_nan) {
            Some((num, den, exp2)) => ratio_to_f64(&num, &den, exp2),
            None => CANONICAL_NAN,
        }
    }

    /// The square root of the same exact rational, rounded once. It is not the root of the rounded variance, and it is
    /// finite if the variance overflows. It is NaN if [`variance`](Moments::variance) is NaN, and if a wrong `n` makes
    /// the rational negative.
    pub fn std(&self, n: u64, ddof: u64, skip_nan: bool) -> f64 {
        match self.spread(n, ddof, skip_nan) {
            Some((num, den, exp2)) if num.sign() != Sign::Minus => {
                sqrt_ratio_to_f64(num.magnitude(), &den, exp2)
            }
            _ => CANONICAL_NAN,
        }
    }

    /// The [`variance`](Moments::variance) before rounding.
    pub fn variance_exactly(&self, n: u64, ddof: u64, skip_nan: bool) -> ExactNumber {
        match self.spread(n, ddof, skip_nan) {
            Some((num, den, exp2)) => ExactNumber::ratio(num, den, exp2),
            None => ExactNumber::NAN,
        }
    }

    /// The variance as `num / den * 2^exp2`.
    fn spread(&self, n: u64, ddof: u64, skip_nan: bool) -> Option<(BigInt, BigUint, i64)> {
        let infinite = self.infinities() != (0, 0);
        if infinite || (self.nans() > 0 && !skip_nan) || n <= ddof {
            return None;
        }
        let (sum, sum_exp2) = self.sum.wide().to_big();
        let (squares, squares_exp2) = self.squares.wide.to_big();
        let exp2 = squares_exp2.min(2 * sum_exp2);
        let squares = (squares * n) << (squares_exp2 - exp2).unsigned_abs();
        let square = (&sum * &sum) << (2 * sum_exp2 - exp2).unsigned_abs();
        Some((squares - square, BigUint::from(n) * (n - ddof), i64::from(exp2)))
    }

    /// Appends the state: at most [`STATE_BYTES`](Moments::STATE_BYTES) bytes, usually about forty. Equal
    /// moments give equal bytes. The state is little-endian, and its length follows from its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (negative, sum) = self.sum.wide().magnitude();
        // It is never negative: only 2^155 squares of the largest value would wrap.
        let (_, squares) = self.squares.wide.magnitude();
        write_head(out, KIND, negative, self.sum.non_finite());
        write_magnitude(out, &sum);
        write_magnitude(out, &squares);
    }

    /// Reads a state from the front of `bytes`. Returns also the number of bytes that it took.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that [`encode`](Moments::encode) does not write. It never panics.
    pub fn decode(bytes: &[u8]) -> Result<(Moments, usize), DecodeError> {
        let (flags, mut reader) = Reader::new(KIND, bytes)?;
        let non_finite = reader.non_finite(flags)?;
        let sum = Sum::from_parts(reader.wide(flags & NEGATIVE != 0)?, non_finite);
        let squares = reader.wide(false)?;
        Ok((Moments { sum, squares: SquareTotal::new(squares) }, reader.used()))
    }
}
