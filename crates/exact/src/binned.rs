//! Sums of many cells at 49 bytes per cell, with the same bits for any order of the values and any tree of merges.
//!
//! An exact [`Sum`](crate::Sum) takes some hundred bytes, so a map of a million means cannot have a million of them.
//! Here each cell keeps three *bins* (Demmel, Ahrens and Nguyen, "Efficient reproducible floating point summation and
//! BLAS", 2016): grids whose spacings are fixed powers of two, 40 bits apart. A value is cut into one slice for each
//! bin: its rest is rounded to the grid of the bin. Each bin adds its slices exactly. The largest value of a cell alone
//! decides which bins the cell has. Slices finer than its lowest bin are dropped, before or after they were added. So a
//! cell is a function of the multiset of its values, and so are its saved bytes.
//!
//! For each value at most 2^-80 of the largest value of the cell is dropped. With n values the error of the sum before
//! its only rounding is at most `n * 2^-80 * max|x|`. If all values are within 2^-27 of the largest, no bit is dropped.
//! Subnormal values, values up to the largest `f64`, and sums beyond the range (infinite) are correct. A mean overflows
//! only if it is too large itself.
//!
//! ```
//! use gristmill_exact::BinnedCells;
//!
//! // There are two cells, and three rows of two values. The rows are split in two parts and merged.
//! let mut a = BinnedCells::new(2);
//! a.add_row(0, &[1e16, 0.1], false);
//! let mut b = BinnedCells::new(2);
//! b.add_row(0, &[-1e16, 0.2], false);
//! b.add_row(0, &[1.0, f64::NAN], true);
//! b.merge(&a);
//! assert_eq!(b.exactly(0, 1).to_f64(), 1.0);
//! assert_eq!(b.exactly(1, 2).to_f64(), 0.15000000000000002);
//! assert_eq!(b.exactly(1, 2).to_f32(), 0.15);
//! ```

mod cells;
mod grid;
mod loops;
mod products;
mod saved;
mod spread;

pub use cells::Cells;
pub use loops::Real;
pub use products::{LARGEST_FACTOR, products, squares};

pub(crate) use spread::joined;

/// Sums in three bins.
pub type BinnedCells = Cells<3>;

/// Sums of squares in four bins, for variances. See [`Cells::variance`].
pub type SquareCells = Cells<4>;

#[cfg(test)]
mod tests;
