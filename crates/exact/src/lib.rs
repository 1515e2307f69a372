//! Correctly rounded sums, means, variances and standard deviations, for any split of the data.
//!
//! Floating-point addition is not associative, so the plain sum of a file depends on the parts in which it was
//! read. Here every accumulator holds the *exact* sum. It is rounded once, when the answer is computed. So the
//! answer and the saved state depend only on which values were added, never on order, split, merge tree or
//! processor.
//!
//! | type | holds | answers |
//! |---|---|---|
//! | [`Sum`] | exact sum of `f64` or `f32` | sum, mean |
//! | [`Moments`] | exact sums of `x` and `x * x` | mean, variance, standard deviation |
//! | [`IntSum`] | sum of integers up to 64 bits | sum, mean |
//! | [`IntMoments`] | sums of integers and their squares | mean, variance, standard deviation |
//! | [`BinnedCells`] | sums of many cells at 49 bytes each; error bounded, same bits for any order | sum, mean, variance, covariance |
//!
//! A block of 2,048 values is deposited in vector registers on levels: grids of fixed spacing on which addition
//! is exact (Demmel and Nguyen, "Fast reproducible floating-point summation", 2013). The residue after the last
//! level shows whether the sum of the block is exact. If it is not, more levels are tried, and in the end the
//! values are added one by one. Block sums go to a fixed-point number that covers the whole range of `f64` (Neal,
//! "Fast exact summation using small and large superaccumulators", 2015). Squares are split into a rounded square
//! and its error (Dekker 1971). Quotients and roots are computed from big integers.
//!
//! The blocks need IEEE arithmetic that rounds to nearest and keeps subnormal numbers. Rust programs run with it.
//! If C or Fortran code may have changed it in a thread, call [`check_rounding_mode`] first.
//!
//! ```
//! use gristmill_exact::{Moments, Sum};
//!
//! fn bytes(values: &[f64]) -> Vec<u8> {
//!     values.iter().flat_map(|x| x.to_le_bytes()).collect()
//! }
//!
//! // Two halves of a file are summed separately and merged in any order.
//! let (mut a, mut b) = (Sum::new(), Sum::new());
//! a.add_f64_le(&bytes(&[1e100, 1.0]));
//! b.add_f64_le(&bytes(&[-1e100, 0.1]));
//! b.merge(&a);
//! assert_eq!(b.value(), 1.1);
//! assert_eq!(b.mean(4), 0.275);
//!
//! // The state travels as bytes.
//! let mut saved = Vec::new();
//! b.encode(&mut saved);
//! let (restored, used) = Sum::decode(&saved).unwrap();
//! assert_eq!((restored, used), (b, saved.len()));
//!
//! let mut moments = Moments::new();
//! moments.add_f64_le(&bytes(&[1e16, 1e16 + 2.0, 1e16 + 4.0]));
//! assert_eq!(moments.variance(3, 1, false), 4.0);
//! assert_eq!(moments.std(3, 1, false), 2.0);
//! ```

pub mod binned;
mod block;
mod deposit;
mod exact_number;
mod int_lanes;
mod ints;
mod level_choice;
mod moments;
mod non_finite;
mod path;
mod range;
mod ratio;
mod round;
mod rounding_mode;
mod state;
mod sum;
mod vector;
mod wide;

#[cfg(test)]
mod path_tests;

pub use binned::{BinnedCells, Cells, LARGEST_FACTOR, Real, SquareCells, products, squares};
pub use exact_number::ExactNumber;
pub use ints::{IntKind, IntMoments, IntSum};
pub use moments::Moments;
pub use range::{ValueRange, range_f32, range_f64};
pub use ratio::{ratio_to_f64, sqrt_ratio_to_f64};
pub use rounding_mode::{RoundingModeError, check_rounding_mode};
pub use state::DecodeError;
pub use sum::Sum;
