//! A check that this thread has the floating-point environment that block sums need.

use std::hint::black_box;

use thiserror::Error;

/// The floating-point environment is not the default of IEEE 754, so block sums would be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RoundingModeError {
    /// Results are not rounded to nearest, ties to even.
    #[error("floating-point rounding is not to nearest even; call fesetround(FE_TONEAREST) in this thread")]
    NotNearest,
    /// Subnormal results become zero.
    #[error(
        "subnormal results are flushed to zero; clear FTZ in this thread (code built with -ffast-math sets it)"
    )]
    FlushToZero,
    /// Subnormal operands count as zero.
    #[error(
        "subnormal operands are read as zero; clear DAZ in this thread (code built with -ffast-math sets it)"
    )]
    DenormalsAreZero,
}

/// Checks, by a few additions and multiplications, that this thread rounds to nearest even and keeps
/// subnormal numbers. Call it if C, C++ or Fortran code may have changed the environment.
///
/// # Errors
/// [`RoundingModeError`] says which of the two is not true.
///
/// ```
/// gristmill_exact::check_rounding_mode().unwrap();
/// ```
pub fn check_rounding_mode() -> Result<(), RoundingModeError> {
    const HALF_STEP: f64 = f64::EPSILON / 2.0;
    let add = |a: f64, b: f64| black_box(black_box(a) + black_box(b)).to_bits();
    let multiply = |a: f64, b: f64| black_box(black_box(a) * black_box(b)).to_bits();

    // Ties between an even and an odd neighbour. Upward rounding fails the first, downward rounding the second,
    // rounding towards zero the third, and rounding away from zero the first.
    let nearest = add(1.0, HALF_STEP) == 1.0f64.to_bits()
        && add(-1.0, -HALF_STEP) == (-1.0f64).to_bits()
        && add(1.0 + f64::EPSILON, HALF_STEP) == (1.0 + 2.0 * f64::EPSILON).to_bits();
    if !nearest {
        return Err(RoundingModeError::NotNearest);
    }
    if multiply(f64::MIN_POSITIVE, 0.5) == 0 {
        return Err(RoundingModeError::FlushToZero);
    }
    if multiply(f64::from_bits(1), 1e300) == 0 {
        return Err(RoundingModeError::DenormalsAreZero);
    }
    Ok(())
}
