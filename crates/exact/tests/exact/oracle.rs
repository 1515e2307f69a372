//! Decides which answer is right, by comparisons of exact integers, never by rounding.

use num_bigint::{BigInt, BigUint, Sign};

/// A rational number `num / den * 2^exp2`.
#[derive(Debug)]
pub struct Rational {
    pub num: BigInt,
    pub den: BigUint,
    pub exp2: i64,
}

/// A finite number in units of 2^-1074.
pub fn units(x: f64) -> BigInt {
    let bits = x.to_bits();
    let field = (bits >> 52) & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    let magnitude = match field {
        0 => BigUint::from(fraction),
        _ => BigUint::from(fraction + (1 << 52)) << (field - 1),
    };
    BigInt::from_biguint(if x.is_sign_negative() { Sign::Minus } else { Sign::Plus }, magnitude)
}

/// The exact sum, in units of 2^-1074.
pub fn sum(values: &[f64]) -> BigInt {
    values.iter().map(|x| units(*x)).sum()
}

/// The exact sum of squares, in units of 2^-2148.
pub fn square_sum(values: &[f64]) -> BigInt {
    values.iter().map(|x| units(*x).pow(2)).sum()
}

/// The sum of the squared distances of the values from the exact mean, divided by `n - ddof`. The formula differs from
/// the one under test: it is the sum of `(n x - S)^2`, divided by `n^2 (n - ddof)`.
pub fn variance(values: &[f64], ddof: u64) -> Rational {
    let n = values.len() as u64;
    let sum = sum(values);
    let num: BigInt = values.iter().map(|x| (units(*x) * n - &sum).pow(2)).sum();
    Rational { num, den: BigUint::from(n) * n * (n - ddof), exp2: -2148 }
}

/// The values midway between the magnitude `r` and its neighbours, in units of 2^-1075.
fn midpoints(r: f64) -> (BigUint, Option<BigUint>) {
    let overflow: BigUint = BigUint::from(1u8) << 2098;
    let at = |x: f64| if x.is_finite() { units(x).magnitude().clone() } else { overflow.clone() };
    let below = if r == 0.0 { BigUint::ZERO } else { at(r) + at(r.next_down()) };
    (below, r.is_finite().then(|| at(r) + at(r.next_up())))
}

/// Asserts that `result` is the nearest to the `power`-th root of the rational, ties to even.
fn assert_nearest(result: f64, exact: &Rational, power: u32) {
    assert!(!result.is_nan(), "NaN for {exact:?}");
    if exact.num.sign() == Sign::NoSign {
        assert_eq!(result.to_bits(), 0, "an exact zero is +0.0");
        return;
    }
    assert_eq!(result.is_sign_negative(), exact.num.sign() == Sign::Minus, "sign of {result:e}");
    let (below, above) = midpoints(result.abs());
    // Compares exact with mid * 2^-1075, both to the power, in integers.
    let shift = exact.exp2 + 1075 * i64::from(power);
    let left = exact.num.magnitude() << shift.max(0).unsigned_abs();
    let right = |mid: BigUint| (mid.pow(power) * &exact.den) << (-shift).max(0).unsigned_abs();
    let even = result.to_bits() & 1 == 0;
    let below = right(below);
    assert!(left > below || (even && left == below), "{result:e} is too large for {exact:?}");
    if let Some(above) = above {
        let above = right(above);
        assert!(left < above || (even && left == above), "{result:e} is too small for {exact:?}");
    }
}

pub fn assert_rounded(result: f64, exact: &Rational) {
    assert_nearest(result, exact, 1);
}

pub fn assert_rounded_root(result: f64, exact: &Rational) {
    assert_nearest(result, exact, 2);
}

pub fn assert_canonical_nan(x: f64) {
    assert_eq!(x.to_bits(), 0x7ff8_0000_0000_0000);
}

#[test]
fn the_oracle_tells_right_from_wrong() {
    let third = Rational { num: 1.into(), den: 3u8.into(), exp2: 0 };
    assert_rounded(1.0 / 3.0, &third);
    for wrong in [(1.0f64 / 3.0).next_up(), (1.0f64 / 3.0).next_down(), 0.0, f64::INFINITY, -1.0 / 3.0] {
        assert!(std::panic::catch_unwind(|| assert_rounded(wrong, &third)).is_err(), "{wrong:e}");
    }
    // 2^53 + 1 is a tie.
    let tie = Rational { num: ((1i64 << 53) + 1).into(), den: 1u8.into(), exp2: 0 };
    assert_rounded(2f64.powi(53), &tie);
    assert!(std::panic::catch_unwind(|| assert_rounded(2f64.powi(53).next_up(), &tie)).is_err());
}
