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
//! Types are those of NumPy 2: literals are weak, an f32 with an integer of at most 16 bits stays f32, i64 with
//! u64 is f64. Intended differences:
//! - `&` and `|` bind less than comparisons, so `x > 1 & x < 2` means `(x > 1) & (x < 2)`; NumPy needs the parentheses.
//! - Roots, exponentials and logarithms of integers of 8 bits are f32. NumPy gives half precision, which is not
//!   supported.
//! - A cast of a float to an integer cuts towards zero. NaN becomes 0, and a number out of range becomes the nearest
//!   integer of the type. In NumPy this depends on the processor.
//! - `x ** n` with a literal whole `n` from -64 to 64 is computed by multiplications in f64, and `x ** 0.5` is the
//!   square root. All other powers, `exp`, `log` and `log10` are those of musl (crate `libm`): the same bits on every
//!   machine, within an ulp or two of NumPy.
//!
//! As in NumPy, integers wrap, `/` of integers is f64, `//` and `%` go towards minus infinity, an integer divided
//! by zero is 0 with `//` and `%`, `round` takes the even of two, NaN wins in `min` and `max`, NaN is true as a `bool`.

mod ast;
mod check;
mod eval;
mod expression;
mod image;
mod operators;
mod parse;

pub use ast::{MAX_DEPTH, MAX_TEXT};
pub use check::Typed;
pub(crate) use check::promoted;
pub use expression::Expr;
pub(crate) use image::Image;
pub(crate) use operators::{Arithmetic, CastFrom, cast};

#[cfg(test)]
mod tests;
