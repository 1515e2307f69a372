//! A fixed-point number that is wide enough for every `f64` (or its square), with delayed carries: the
//! small superaccumulator of Neal, "Fast exact summation using small and large superaccumulators" (2015).

use num_bigint::{BigInt, BigUint, Sign};

use crate::round::round_to_f64;

/// Bits in a limb.
const LIMB_BITS: u32 = 32;
const LIMB_MASK: i64 = 0xffff_ffff;

/// Deposits between two carry passes. One deposit changes a limb by less than 2^33, so a limb stays below
/// 2^29 * 2^33 + 2^32 < 2^63.
const DEPOSITS_BEFORE_CARRY: u32 = 1 << 29;

/// `LIMBS` limbs of 32 bits. The lowest bit stands for `2^LOWEST`. The number is in two's complement, so a total
/// beyond the width wraps. Between carry passes limbs may be any `i64`.
#[derive(Clone, Debug)]
pub(crate) struct Wide<const LIMBS: usize, const LOWEST: i32> {
    limbs: [i64; LIMBS],
    deposits: u32,
}

impl<const LIMBS: usize, const LOWEST: i32> Wide<LIMBS, LOWEST> {
    /// Bytes of the longest encoding: two for the header and four for each limb.
    pub(crate) const STATE_BYTES: usize = 2 + 4 * LIMBS;

    pub(crate) const fn new() -> Self {
        assert!(LIMBS <= u8::MAX as usize);
        Wide { limbs: [0; LIMBS], deposits: 0 }
    }

    /// Adds a finite number.
    #[inline]
    pub(crate) fn add_f64(&mut self, x: f64) {
        let (negative, mantissa, exp2) = split(x);
        self.count_deposit();
        let position = (exp2 - LOWEST) as u32;
        let at = (position / LIMB_BITS) as usize;
        let shifted = u128::from(mantissa) << (position % LIMB_BITS);
        let sign = -i64::from(negative);
        let limbs = &mut self.limbs[at..at + 3];
        limbs[0] += ((shifted as i64 & LIMB_MASK) ^ sign) - sign;
        limbs[1] += (((shifted >> 32) as i64 & LIMB_MASK) ^ sign) - sign;
        limbs[2] += ((shifted >> 64) as i64 ^ sign) - sign;
    }

    /// Adds the exact square of a finite number.
    #[inline]
    pub(crate) fn add_square(&mut self, x: f64) {
        let (_, mantissa, exp2) = split(x);
        self.count_deposit();
        let position = (2 * exp2 - LOWEST) as u32;
        let at = (position / LIMB_BITS) as usize;
        let square = u128::from(mantissa) * u128::from(mantissa);
        // The square has 106 bits and moves by up to 31. Its low 64 and high 42 bits move separately, so that both stay
        // below 2^96.
        let shift = position % LIMB_BITS;
        let low = u128::from(square as u64) << shift;
        let high = (square >> 64) << shift;
        let limbs = &mut self.limbs[at..at + 5];
        limbs[0] += low as i64 & LIMB_MASK;
        limbs[1] += (low >> 32) as i64 & LIMB_MASK;
        limbs[2] += (low >> 64) as i64 + (high as i64 & LIMB_MASK);
        limbs[3] += (high >> 32) as i64 & LIMB_MASK;
        limbs[4] += (high >> 64) as i64;
    }

    /// Adds `units * 2^exp2`. The number lies inside the width, because the caller derived it from values that do.
    pub(crate) fn add_scaled(&mut self, units: i64, exp2: i32) {
        self.count_deposit();
        let position = (exp2 - LOWEST) as u32;
        let at = (position / LIMB_BITS) as usize;
        let shifted = i128::from(units) << (position % LIMB_BITS);
        let limbs = &mut self.limbs[at..at + 3];
        limbs[0] += shifted as i64 & LIMB_MASK;
        limbs[1] += (shifted >> 32) as i64 & LIMB_MASK;
        limbs[2] += (shifted >> 64) as i64;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // A limb of `other` is below its own count of deposits times 2^33, plus one deposit for its carried part.
        if self.deposits + other.deposits >= DEPOSITS_BEFORE_CARRY {
            self.carry();
        }
        if self.deposits + other.deposits >= DEPOSITS_BEFORE_CARRY {
            let mut carried = other.clone();
            carried.carry();
            return self.merge(&carried);
        }
        for (limb, more) in self.limbs.iter_mut().zip(&other.limbs) {
            *limb += more;
        }
        self.deposits += other.deposits + 1;
    }

    #[inline]
    fn count_deposit(&mut self) {
        if self.deposits >= DEPOSITS_BEFORE_CARRY {
            self.carry();
        }
        self.deposits += 1;
    }

    /// Brings every limb except the last into `0..2^32`, and the last into the range of an `i32`.
    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs {
            let total = *limb + carry;
            *limb = total & LIMB_MASK;
            carry = total >> LIMB_BITS;
        }
        if let Some(last) = self.limbs.last_mut() {
            *last = i64::from(*last as i32);
        }
        self.deposits = 0;
    }

    /// Sign and magnitude, lowest limb first: the canonical form.
    pub(crate) fn magnitude(&self) -> (bool, [u32; LIMBS]) {
        let mut carried = self.clone();
        carried.carry();
        let negative = carried.limbs.last().is_some_and(|last| *last < 0);
        let mut carry = u64::from(negative);
        let flip = if negative { u32::MAX } else { 0 };
        let magnitude = carried.limbs.map(|limb| {
            let total = u64::from(limb as u32 ^ flip) + carry;
            carry = total >> LIMB_BITS;
            total as u32
        });
        (negative, magnitude)
    }

    /// The number rounded to the nearest `f64`, ties to even.
    pub(crate) fn value(&self) -> f64 {
        let (negative, magnitude) = self.magnitude();
        let used = magnitude.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
        let (below, top) = magnitude[..used].split_at(used.saturating_sub(4));
        let mantissa = top.iter().rev().fold(0u128, |high, limb| high << LIMB_BITS | u128::from(*limb));
        let sticky = below.iter().any(|limb| *limb != 0);
        let exp2 = i128::from(LOWEST) + (LIMB_BITS as usize * below.len()) as i128;
        round_to_f64(negative, mantissa, sticky, exp2)
    }

    /// The number as `integer * 2^exp2`.
    pub(crate) fn to_big(&self) -> (BigInt, i32) {
        let (negative, magnitude) = self.magnitude();
        let first = magnitude.iter().position(|limb| *limb != 0).unwrap_or(0);
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        let integer = BigInt::from_biguint(sign, BigUint::from_slice(&magnitude[first..]));
        (integer, LOWEST + (LIMB_BITS as usize * first) as i32)
    }

    /// The number with this sign and these limbs from limb `first` on; `None` if they do not fit.
    pub(crate) fn from_magnitude(negative: bool, first: usize, limbs: &[u32]) -> Option<Self> {
        let mut wide = Self::new();
        let place = wide.limbs.get_mut(first..first.checked_add(limbs.len())?)?;
        for (limb, given) in place.iter_mut().zip(limbs) {
            *limb = if negative { -i64::from(*given) } else { i64::from(*given) };
        }
        wide.carry();
        // A magnitude that needs the sign bit comes back with the other sign.
        let wrapped = wide.limbs.last().is_some_and(|last| *last < 0) != negative;
        (limbs.is_empty() || !wrapped).then_some(wide)
    }
}

impl<const LIMBS: usize, const LOWEST: i32> PartialEq for Wide<LIMBS, LOWEST> {
    fn eq(&self, other: &Self) -> bool {
        self.magnitude() == other.magnitude()
    }
}

/// Sign, integer mantissa below 2^53 and exponent of a finite number.
#[inline]
fn split(x: f64) -> (bool, u64, i32) {
    let bits = x.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i32;
    let mantissa = (bits & ((1 << 52) - 1)) | (u64::from(field != 0) << 52);
    (bits >> 63 == 1, mantissa, field.max(1) - 1075)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Narrow = Wide<70, -1074>;

    /// A number whose limbs are as large as the bound allows, so that no other deposit is possible.
    fn full(sign: i64) -> Narrow {
        let mut limbs = [sign * ((i64::from(DEPOSITS_BEFORE_CARRY) << 33) + LIMB_MASK); 70];
        // The highest limbs take carries only.
        limbs[67..].fill(0);
        Wide { limbs, deposits: DEPOSITS_BEFORE_CARRY }
    }

    // Tests are debug builds, which panic if a limb overflows.
    #[test]
    fn full_limbs_are_carried_before_they_overflow() {
        for sign in [1, -1] {
            let before = full(sign);
            let mut wide = before.clone();
            wide.add_f64(sign as f64 * f64::MAX);
            assert_eq!(wide.deposits, 1);
            let mut both = before.clone();
            both.merge(&before);
            both.merge(&wide);
            let expected = before.to_big().0 * 3 + {
                let mut max = Narrow::new();
                max.add_f64(sign as f64 * f64::MAX);
                let (big, exp2) = max.to_big();
                big << (exp2 + 1074).unsigned_abs()
            };
            assert_eq!(both.to_big().1, -1074);
            assert_eq!(both.to_big().0, expected);
        }
    }

    #[test]
    fn opposite_full_limbs_cancel() {
        let mut wide = full(1);
        wide.merge(&full(-1));
        assert_eq!(wide, Narrow::new());
        assert_eq!(wide.value().to_bits(), 0);
    }

    #[test]
    fn the_width_wraps_without_panic() {
        let mut top = [0u32; 70];
        top[69] = 0x7fff_ffff;
        let largest = Narrow::from_magnitude(false, 0, &top).unwrap();
        let mut wide = largest.clone();
        for _ in 0..200 {
            let twice = wide.clone();
            wide.merge(&twice);
            wide.merge(&largest);
        }
        wide.value();
    }

    #[test]
    fn magnitudes_that_need_the_sign_bit_are_refused() {
        assert!(Narrow::from_magnitude(false, 69, &[0x8000_0000]).is_none());
        assert!(Narrow::from_magnitude(true, 69, &[0x8000_0001]).is_none());
        let lowest = Narrow::from_magnitude(true, 69, &[0x8000_0000]).unwrap();
        assert!(lowest.magnitude().0 && lowest.magnitude().1[69] == 0x8000_0000);
        assert!(Narrow::from_magnitude(false, 69, &[1, 1]).is_none());
        assert!(Narrow::from_magnitude(false, usize::MAX, &[1, 1]).is_none());
    }
}
