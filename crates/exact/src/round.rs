//! The one rounding step: from an exact magnitude to the nearest `f64`.

/// The quiet NaN that every function of this crate returns.
pub(crate) const CANONICAL_NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// Exponent of the lowest bit of any `f64`.
pub(crate) const LOWEST_F64_BIT: i32 = -1074;

/// Rounds `(mantissa + s) * 2^exp2` to nearest even. `s` is 0 without `sticky`, and some unknown number in (0, 1) with
/// it. With `sticky` the mantissa has at least 55 bits, so `s` lies below the bit that decides. For subnormal results
/// that bit only lies higher.
pub(crate) fn round_to_f64(negative: bool, mantissa: u128, sticky: bool, exp2: i128) -> f64 {
    debug_assert!(!sticky || mantissa >> 54 != 0);
    let sign = u64::from(negative) << 63;
    if mantissa == 0 {
        return 0.0;
    }
    let leading = exp2.saturating_add(i128::from(127 - mantissa.leading_zeros()));
    if leading > 1023 {
        return f64::from_bits(sign | f64::INFINITY.to_bits());
    }
    let last = leading.saturating_sub(52).max(i128::from(LOWEST_F64_BIT));
    let drop = last.saturating_sub(exp2);
    let kept = match drop {
        // Here the mantissa is shorter than 53 bits, and `last` lies at most 52 below its leading bit.
        ..=0 => (mantissa << drop.unsigned_abs()) as u64,
        1..=128 => {
            let kept = if drop == 128 { 0 } else { mantissa >> drop };
            let half = 1u128 << (drop - 1);
            let below = mantissa & (half | (half - 1));
            let up = below > half || (below == half && (sticky || kept & 1 == 1));
            kept as u64 + u64::from(up)
        }
        // The number is less than half of the lowest bit of a subnormal.
        _ => 0,
    };
    // The implicit bit of `kept` is added to the exponent field, and so is a carry from the rounding.
    let field = if kept == 0 { 0 } else { ((last - i128::from(LOWEST_F64_BIT)) as u64) << 52 };
    f64::from_bits(sign | (field + kept))
}
