//! Correctly rounded quotients of big integers, and their square roots.

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

use crate::round::{CANONICAL_NAN, round_to_f64};

/// Bits of a quotient: 53, a rounding bit and some more.
const QUOTIENT_BITS: i128 = 64;

/// Bits of a quotient under a root: twice as many as the root needs (56). Alignment may add two bits. The result has at
/// most 116 bits, so it fits a `u128`.
const RADICAND_BITS: i128 = 113;

/// `num / den * 2^exp2`, rounded once to the nearest `f64`, ties to even. The result may be subnormal, or overflow to
/// infinity. A quotient of zero is `+0.0`. A quotient that underflows keeps its sign. A zero `den` gives an infinity
/// with the sign of `num`, and NaN for `0 / 0`.
///
/// ```
/// use gristmill_exact::ratio_to_f64;
/// assert_eq!(ratio_to_f64(&1.into(), &3u8.into(), 0), 1.0 / 3.0);
/// assert_eq!(ratio_to_f64(&(-3).into(), &2u8.into(), -1074), -1e-323);
/// ```
pub fn ratio_to_f64(num: &BigInt, den: &BigUint, exp2: i64) -> f64 {
    let negative = num.sign() == Sign::Minus;
    match (num.is_zero(), den.is_zero()) {
        (true, true) => return CANONICAL_NAN,
        (true, false) => return 0.0,
        (false, true) => return if negative { f64::NEG_INFINITY } else { f64::INFINITY },
        (false, false) => {}
    }
    let shift = QUOTIENT_BITS + 1 - bits(num.magnitude()) + bits(den);
    let (quotient, inexact) = shifted_quotient(num.magnitude(), den, shift);
    round_to_f64(negative, quotient, inexact, i128::from(exp2) - shift)
}

/// The square root of `num / den * 2^exp2`, rounded once to the nearest `f64`, ties to even. A zero `den` gives
/// infinity, and NaN for `0 / 0`.
///
/// ```
/// use gristmill_exact::sqrt_ratio_to_f64;
/// assert_eq!(sqrt_ratio_to_f64(&1u8.into(), &2u8.into(), 0), std::f64::consts::FRAC_1_SQRT_2);
/// assert_eq!(sqrt_ratio_to_f64(&1u8.into(), &1u8.into(), -2148), 5e-324);
/// ```
pub fn sqrt_ratio_to_f64(num: &BigUint, den: &BigUint, exp2: i64) -> f64 {
    match (num.is_zero(), den.is_zero()) {
        (true, true) => return CANONICAL_NAN,
        (true, false) => return 0.0,
        (false, true) => return f64::INFINITY,
        (false, false) => {}
    }
    let mut shift = RADICAND_BITS + 1 - bits(num) + bits(den);
    // The other exponent must be even, so that its half is an integer.
    shift += (i128::from(exp2) - shift).rem_euclid(2);
    let (radicand, inexact) = shifted_quotient(num, den, shift);
    let root = radicand.isqrt();
    let sticky = inexact || root * root != radicand;
    round_to_f64(false, root, sticky, (i128::from(exp2) - shift) / 2)
}

fn bits(value: &BigUint) -> i128 {
    i128::from(value.bits())
}

/// `floor(num * 2^shift / den)`, and whether there is a remainder. The callers choose `shift` so that the quotient has
/// fewer than 120 bits.
pub(crate) fn shifted_quotient(num: &BigUint, den: &BigUint, shift: i128) -> (u128, bool) {
    let by = shift.unsigned_abs();
    let (quotient, rest) = if shift >= 0 { (num << by).div_rem(den) } else { num.div_rem(&(den << by)) };
    // `to_u128` cannot fail for fewer than 120 bits; the largest value stands for "too large".
    (quotient.to_u128().unwrap_or(u128::MAX), !rest.is_zero())
}
