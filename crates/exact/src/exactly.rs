//! An exact number before its one rounding, so that the type it is rounded to can be chosen.

use num_bigint::{BigInt, BigUint, Sign};

use crate::binned::joined;
use crate::ratio::{ratio_to_f64, shifted_quotient, sqrt_ratio_to_f64};
use crate::round::{CANONICAL_NAN, round_to_f64};

/// An exact fraction, an infinity or NaN. Rounds to nearest, ties to even, once: to `f32` too, where going through
/// `f64` would round twice.
///
/// ```
/// use gristmill_exact::Exactly;
///
/// // Just above the middle of two f32: through f64 it would be a tie.
/// let number = Exactly::ratio(((1i64 << 60) + (1 << 36) + 1).into(), 1u8.into(), -60);
/// assert_eq!(number.to_f32(), 1.0 + f32::EPSILON);
/// assert_eq!(number.to_f64() as f32, 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Exactly(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Special(f64),
    /// `(num + less than 1, if sticky) / den * 2^exp2`. `num` has its highest bit or is 0; sticky is not 0.
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

/// Bits kept for the rounding to `f32`, with a last one that says whether there was more.
const NARROW_BITS: u32 = 40;

impl Exactly {
    /// Not a number.
    pub const NAN: Exactly = Exactly(Kind::Special(CANONICAL_NAN));

    /// An infinity, or NaN.
    pub(crate) const fn special(x: f64) -> Exactly {
        Exactly(Kind::Special(x))
    }

    /// `num / den * 2^exp2`.
    pub const fn ratio(num: BigInt, den: BigUint, exp2: i64) -> Exactly {
        Exactly(Kind::Ratio { num, den, exp2 })
    }

    /// Bins, 40 bits apart, divided by `n`, which is not 0; `exp2` is the exponent of the last grid.
    pub(crate) fn of_bins<const BINS: usize>(totals: [i128; BINS], exp2: i32, n: u64) -> Exactly {
        let [first, second, third] = match &totals[..] {
            [first, second, third] if totals.iter().all(|total| total.unsigned_abs() >> 86 == 0) => {
                [*first, *second, *third]
            }
            _ => return Exactly::ratio(joined(&totals), n.into(), exp2.into()),
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
        // Where bits were dropped the highest is there, and nothing moves.
        let exp2 = exp2 + drop as i32 - up as i32;
        Exactly(Kind::Small { negative, num: num << up, sticky, den: n, exp2 })
    }

    /// `num * 2^exp2 - x` for a finite `x`.
    pub(crate) fn difference(num: &BigInt, exp2: i64, x: f64) -> Exactly {
        let field = ((x.to_bits() >> 52) & 0x7ff) as i64;
        let fraction = x.to_bits() & ((1 << 52) - 1);
        let (mantissa, at) =
            if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
        let lowest = exp2.min(at);
        let taken = BigInt::from(mantissa) << (at - lowest).unsigned_abs();
        let num = num << (exp2 - lowest).unsigned_abs();
        let num = if x.is_sign_negative() { num + taken } else { num - taken };
        Exactly::ratio(num, BigUint::from(1u8), lowest)
    }

    /// `num / den`; NaN for a `den` of 0.
    pub fn quotient(num: i128, den: u64) -> Exactly {
        if den == 0 {
            return Exactly::NAN;
        }
        Exactly::ratio(num.into(), den.into(), 0)
    }

    /// The nearest `f64`. A zero is `+0.0`; what is too large is infinite.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Kind::Special(x) => *x,
            Kind::Small { negative, num, sticky, den, exp2 } => {
                let (quotient, sticky) = divided(*num, *sticky, *den);
                round_to_f64(*negative, quotient, sticky, i128::from(*exp2))
            }
            Kind::Ratio { num, den, exp2 } => ratio_to_f64(num, den, *exp2),
        }
    }

    /// The nearest `f32`, rounded once.
    pub fn to_f32(&self) -> f32 {
        match &self.0 {
            Kind::Special(x) => *x as f32,
            Kind::Small { negative, num, sticky, den, exp2 } => {
                let (quotient, sticky) = divided(*num, *sticky, *den);
                narrow(*negative, quotient, sticky, i128::from(*exp2))
            }
            Kind::Ratio { num, den, exp2 } => {
                if num.sign() == Sign::NoSign || den.bits() == 0 {
                    return ratio_to_f64(num, den, *exp2) as f32;
                }
                let shift = 65 - i128::from(num.bits()) + i128::from(den.bits());
                let (quotient, sticky) = shifted_quotient(num.magnitude(), den, shift);
                narrow(num.sign() == Sign::Minus, quotient, sticky, i128::from(*exp2) - shift)
            }
        }
    }

    /// The square root, rounded once to the nearest `f64`; NaN of a negative number.
    pub fn sqrt_f64(&self) -> f64 {
        match self.unsigned() {
            Ok((num, den, exp2)) => sqrt_ratio_to_f64(&num, &den, exp2),
            Err(special) => special.sqrt(),
        }
    }

    /// The square root rounded to `f64` and then to `f32`: twice, but a root is never so near a tie of `f32` that
    /// this shows, unless the fraction has more than 100 bits.
    pub fn sqrt_f32(&self) -> f32 {
        self.sqrt_f64() as f32
    }

    /// Numerator, denominator and exponent, where the number is not negative.
    fn unsigned(&self) -> Result<(BigUint, BigUint, i64), f64> {
        match &self.0 {
            Kind::Special(x) if x.is_nan() || *x < 0.0 => Err(CANONICAL_NAN),
            Kind::Special(x) => Err(*x),
            Kind::Small { negative: true, .. } => Err(CANONICAL_NAN),
            Kind::Small { num, den, exp2, .. } => Ok(((*num).into(), (*den).into(), i64::from(*exp2))),
            Kind::Ratio { num, .. } if num.sign() == Sign::Minus => Err(CANONICAL_NAN),
            Kind::Ratio { num, den, exp2 } => Ok((num.magnitude().clone(), den.clone(), *exp2)),
        }
    }
}

/// The quotient, of at least 64 bits where it is not 0, and whether anything is missing.
fn divided(num: u128, sticky: bool, den: u64) -> (u128, bool) {
    let den = u128::from(den.max(1));
    (num / den, sticky || !num.is_multiple_of(den))
}

/// Rounds as `round_to_f64` does, to `f32`.
fn narrow(negative: bool, mantissa: u128, sticky: bool, exp2: i128) -> f32 {
    let drop = (128 - mantissa.leading_zeros()).saturating_sub(NARROW_BITS);
    let kept = mantissa >> drop;
    let sticky = sticky || kept << drop != mantissa;
    // Odd where it is not exact, so that no tie comes up and the sign of the rest is kept (Boldo and Melquiond 2008).
    // Far below the smallest f32, where this f64 may be rounded too, both are rounded to zero.
    round_to_f64(negative, kept | u128::from(sticky), false, exp2 + i128::from(drop)) as f32
}
