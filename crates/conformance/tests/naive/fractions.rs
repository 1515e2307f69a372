//! Floats as integers times 2^-1074, and fractions of such integers that are rounded once.

use num_bigint::BigInt;

/// Number of binary places of the smallest float.
pub const PLACES: usize = 1074;

/// Computes x 2^1074 of a finite float.
pub fn scaled(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let size = match exponent {
        0 => BigInt::from(fraction),
        _ => BigInt::from(fraction | 1 << 52) << (exponent as usize - 1),
    };
    if x.is_sign_negative() { -size } else { size }
}

/// Computes the float nearest to a fraction (ties to even). The denominator is above 0.
pub fn nearest(num: &BigInt, den: &BigInt) -> f64 {
    let zero = BigInt::from(0);
    if *num < zero {
        return -nearest(&-num, den);
    }
    let wanted = num << PLACES;
    rounded(|twice| (twice * den).cmp(&(&wanted * 2)))
}

/// Computes the float nearest to the square root of a fraction that is at least 0.
pub fn nearest_root(num: &BigInt, den: &BigInt) -> f64 {
    let wanted = num << (2 * PLACES);
    rounded(|twice| (twice * twice * den).cmp(&(&wanted * 4)))
}

/// Computes the float nearest to a number x that is at least 0. `compare` gets twice another number, scaled by 2^1074,
/// and compares it with twice x, scaled alike.
fn rounded(compare: impl Fn(&BigInt) -> std::cmp::Ordering) -> f64 {
    let at_most = |bits: u64| compare(&(scaled(f64::from_bits(bits)) * 2)).is_le();
    let (mut low, mut beyond) = (0, f64::MAX.to_bits() + 1);
    while beyond - low > 1 {
        let middle = low + (beyond - low) / 2;
        if at_most(middle) { low = middle } else { beyond = middle }
    }
    let below = scaled(f64::from_bits(low));
    // After the largest float comes the number that would be next if there were larger exponents.
    let above = match low + 1 {
        next if f64::from_bits(next).is_finite() => scaled(f64::from_bits(next)),
        _ => &below + (BigInt::from(1) << (971 + PLACES)),
    };
    match compare(&(below + above)) {
        std::cmp::Ordering::Greater => f64::from_bits(low),
        std::cmp::Ordering::Equal if low.is_multiple_of(2) => f64::from_bits(low),
        _ => f64::from_bits(low + 1),
    }
}
