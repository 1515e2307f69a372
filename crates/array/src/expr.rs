//! Elementwise expressions over the values of a variable, before they are reduced.
//!
//! ```text
//! numbers      1  2.5  1e-3        true  false  nan  inf
//! arithmetic   + - * / // % **     unary -
//! comparisons  < <= > >= == !=     of numbers; chains as a < b < c are refused
//! logic        & | ~               of booleans; they bind less than comparisons
//! functions    where(c, a, b)  isnan(x)  isfinite(x)  clip(x, low, high)  min(a, b)  max(a, b)  abs(x)
//!              sqrt(x)  exp(x)  log(x)  log10(x)  floor(x)  ceil(x)  round(x)
//! casts        bool(x)  i8(x) to u64(x)  f32(x)  f64(x)
//! ```
//! Types are those of NumPy 2: literals are weak, an integer beside an f32 of 16 bits or fewer stays f32, i64 beside u64 is
//! f64. Differences that are meant:
//! - `&` and `|` bind less than comparisons, so `x > 1 & x < 2` is what it seems to be; NumPy needs parentheses.
//! - roots, exponentials and logarithms of integers of 8 bits are f32 (NumPy has half precision, which is not here).
//! - a cast of a float to an integer cuts towards zero, NaN is 0 and what is out of range is the nearest integer there is;
//!   with NumPy that depends on the processor.
//! - `x ** n` with a literal whole `n` from -64 to 64 is made of multiplications in f64, `x ** 0.5` is the root, and all
//!   else the `pow` of musl (crate `libm`), as are `exp`, `log` and `log10`: the same bits on every machine, within an
//!   ulp or two of NumPy.
//!
//! The same as NumPy: integers wrap, `/` of integers is f64, `//` and `%` go towards minus infinity, an integer divided by
//! zero is 0 with `//` and `%`, `round` takes the even of two, NaN wins in `min` and `max`, NaN is true as a `bool`.

mod ast;
mod check;
mod eval;
mod image;
mod operators;
mod parse;

pub use ast::{Expr, MAX_DEPTH, MAX_TEXT};
pub use check::Typed;
pub(crate) use check::promoted;
pub(crate) use image::Image;
pub(crate) use operators::{Arithmetic, CastFrom, cast};

#[cfg(test)]
mod tests;
