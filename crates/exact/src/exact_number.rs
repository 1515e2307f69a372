//! An exact number before its only rounding. It can be rounded to different types.

use num_bigint::{BigInt, BigUint, Sign};

use crate::binned::joined;
use crate::ratio::{ratio_to_f64, shifted_quotient, sqrt_ratio_to_f64};
use crate::round::{CANONICAL_NAN, round_to_f64};

/// An exact fraction, an infinity or NaN. It is rounded once, to nearest with ties to even. This is also true for
/// `f32`, where a step through `f64` would round twice.
///
/// ```
/// use gristmill_exact::ExactNumber;
///
/// // The number is just above the middle of two f32. Rounded to f64 first, it would be a tie.
/// let number = ExactNumber::ratio(((1i64 << 60) + (1 << 36) + 1).into(), 1u8.into(), -60);
/// assert_eq!(number.to_f32(), 1.0 + f32::EPSILON);
/// assert_eq!(number.to_f64() as f32, 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ExactNumber(Representation);

#[derive(Clone, Debug, PartialEq)]
enum Representation {
    Special(f64),
    /// `(num + s) / den * 2^exp2`, where `s` is 0 without `sticky` and some number in (0, 1) with it. The highest bit
    /// of `num` is set, or `num` is 0. A sticky number is not 0.
    Small {
        negative: bool,
        num: u128,
        sticky: bool,
        den: u64,
        exp2: i32,
    },
    Ratio {
        num: BigInt,
        den: BigUint,
        exp2: i64,
    },
}

/// Bits kept for the rounding to `f32`. The last bit says whether lower bits were dropped.
const NARROW_BITS: u32 = 40;

impl ExactNumber {
    /// Not a number.
    pub const NAN: ExactNumber = ExactNumber(Representation::Special(CANONICAL_NAN));

    /// An infinity, or NaN.
    pub(crate) const fn special(x: f64) -> ExactNumber {
        ExactNumber(Representation::Special(x))
    }

    /// `num / den * 2^exp2`.
    pub const fn ratio(num: BigInt, den: BigUint, exp2: i64) -> ExactNumber {
        ExactNumber(Representation::Ratio { num, den, exp2 })
    }

    /// The sum of bins that are 40 bits apart, divided by `n`, which is not 0. `exp2` is the exponent of the last grid.
    pub(crate) fn from_bins<const BINS: usize>(totals: [i128; BINS], exp2: i32, n: u64) -> ExactNumber {
        let [first, second, third] = match &totals[..] {
            [first, second, third] if totals.iter().all(|total| total.unsigned_abs() >> 86 == 0) => {
                [*first, *second, *third]
            }
            _ => return ExactNumber::ratio(joined(&totals), n.into(), exp2.into()),
        };
        const LOW: i128 = (1 << 80) - 1;
        let low = (second << 40) + third;
        let (mut high, mut low) = (first + (low >> 80), low & LOW);
        let negative = high < 0;
        if negative {
            (high, low) = if low == 0 { (-high, 0) } else { (-high - 1, LOW + 1 - low) };
        }
        let (high, low) = (high as u128, low as u128);
        let drop = (128 - high.leading_zeros()).saturating_sub(48);
        let num = (high << (80 - drop)) | (low >> drop);
        let sticky = low & ((1 << drop) - 1) != 0;
        let up = if num == 0 { 0 } else { num.leading_zeros() };
        // If bits were dropped, the highest bit is set, and `num` does not move.
        let exp2 = exp2 + drop as i32 - up as i32;
        ExactNumber(Representation::Small { negative, num: num << up, sticky, den: n, exp2 })
    }

    /// `num * 2^exp2 - x` for a finite `x`.
    pub(crate) fn difference(num: &BigInt, exp2: i64, x: f64) -> ExactNumber {
        let field = ((x.to_bits() >> 52) & 0x7ff) as i64;
        let fraction = x.to_bits() & ((1 << 52) - 1);
        let (mantissa, at) =
            if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
        let lowest = exp2.min(at);
        let taken = BigInt::from(mantissa) << (at - lowest).unsigned_abs();
        let num = num << (exp2 - lowest).unsigned_abs();
        let num = if x.is_sign_negative() { num + taken } else { num - taken };
        ExactNumber::ratio(num, BigUint::from(1u8), lowest)
    }

    /// `num / den`; NaN for a `den` of 0.
    pub fn quotient(num: i128, den: u64) -> ExactNumber {
        if den == 0 {
            return ExactNumber::NAN;
        }
        ExactNumber::ratio(num.into(), den.into(), 0)
    }

    /// The nearest `f64`. A zero is `+0.0`. A number that is too large becomes infinite.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Representation::Special(x) => *x,
            Representation::Small { negative, num, sticky, den, exp2 } => {
                let (quotient, sticky) = divided(*num, *sticky, *den);
                round_to_f64(*negative, quotient, sticky, i128::from(*exp2))
            }
            Representation::Ratio { num, den, exp2 } => ratio_to_f64(num, den, *exp2),
        }
    }

    /// The nearest `f32`, rounded once.
    pub fn to_f32(&self) -> f32 {
        match &self.0 {
            Representation::Special(x) => *x as f32,
            Representation::Small { negative, num, sticky, den, exp2 } => {
                let (quotient, sticky) = divided(*num, *sticky, *den);
                narrow(*negative, quotient, sticky, i128::from(*exp2))
            }
            Representation::Ratio { num, den, exp2 } => {
                if num.sign() == Sign::NoSign || den.bits() == 0 {
                    return ratio_to_f64(num, den, *exp2) as f32;
                }
                let shift = 65 - i128::from(num.bits()) + i128::from(den.bits());
                let (quotient, sticky) = shifted_quotient(num.magnitude(), den, shift);
                narrow(num.sign() == Sign::Minus, quotient, sticky, i128::from(*exp2) - shift)
            }
        }
    }

    /// The square root, rounded once to the nearest `f64`; NaN for a negative number.
    pub fn sqrt_f64(&self) -> f64 {
        match self.unsigned() {
            Ok((num, den, exp2)) => sqrt_ratio_to_f64(&num, &den, exp2),
            Err(special) => special.sqrt(),
        }
    }

    /// The square root, rounded to `f64` and then to `f32`. The result is the same as with one rounding, because a root
    /// is never near enough to a tie of `f32`, unless the fraction has more than 100 bits.
    pub fn sqrt_f32(&self) -> f32 {
        self.sqrt_f64() as f32
    }

    /// The numerator, denominator and exponent, if the number is a fraction that is not negative.
    fn unsigned(&self) -> Result<(BigUint, BigUint, i64), f64> {
        match &self.0 {
            Representation::Special(x) if x.is_nan() || *x < 0.0 => Err(CANONICAL_NAN),
            Representation::Special(x) => Err(*x),
            Representation::Small { negative: true, .. } => Err(CANONICAL_NAN),
            Representation::Small { num, den, exp2, .. } => {
                Ok(((*num).into(), (*den).into(), i64::from(*exp2)))
            }
            Representation::Ratio { num, .. } if num.sign() == Sign::Minus => Err(CANONICAL_NAN),
            Representation::Ratio { num, den, exp2 } => Ok((num.magnitude().clone(), den.clone(), *exp2)),
        }
    }
}

/// The quotient, which has at least 64 bits if it is not 0, and whether it is inexact.
fn divided(num: u128, sticky: bool, den: u64) -> (u128, bool) {
    let den = u128::from(den.max(1));
    (num / den, sticky || !num.is_multiple_of(den))
}

/// Rounds as `round_to_f64` does, to `f32`.
fn narrow(negative: bool, mantissa: u128, sticky: bool, exp2: i128) -> f32 {
    let drop = (128 - mantissa.leading_zeros()).saturating_sub(NARROW_BITS);
    let kept = mantissa >> drop;
    let sticky = sticky || kept << drop != mantissa;
    // An inexact number is made odd, so that it is not a tie and the direction of the rest is kept (Boldo and Melquiond
    // 2008). Far below the smallest f32, this f64 may be rounded, too. Then both roundings give zero.
    round_to_f64(negative, kept | u128::from(sticky), false, exp2 + i128::from(drop)) as f32
}
