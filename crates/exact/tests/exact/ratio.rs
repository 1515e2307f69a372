use gristmill_exact::{ratio_to_f64, sqrt_ratio_to_f64};
use num_bigint::{BigInt, BigUint, Sign};
use proptest::prelude::*;

use crate::oracle::{Rational, assert_canonical_nan, assert_rounded, assert_rounded_root, units};

fn big() -> impl Strategy<Value = BigUint> {
    let limbs = prop_oneof![Just(0u32), Just(1), Just(u32::MAX), any::<u32>()];
    let long = prop::collection::vec(limbs, 1..80).prop_map(BigUint::new);
    prop_oneof![
        any::<u64>().prop_map(BigUint::from),
        long,
        (0u32..3000).prop_map(|s| BigUint::from(1u8) << s)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn quotients_are_nearest(num in big(), den in big(), exp2 in -4000i64..4000, negative: bool) {
        prop_assume!(den != BigUint::ZERO);
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        let num = BigInt::from_biguint(sign, num);
        assert_rounded(ratio_to_f64(&num, &den, exp2), &Rational { num, den, exp2 });
    }

    #[test]
    fn roots_are_nearest(num in big(), den in big(), exp2 in -6000i64..6000) {
        prop_assume!(den != BigUint::ZERO);
        let root = sqrt_ratio_to_f64(&num, &den, exp2);
        assert_rounded_root(root, &Rational { num: num.into(), den, exp2 });
    }

    /// Quotients and roots at a tie, just below it and just above it.
    #[test]
    fn ties_go_to_even(bits in 0u64..0x7fef_ffff_ffff_ffff, nudge in -1i64..2, den in 1u64..) {
        let x = f64::from_bits(bits);
        let twice = units(x) + units(x.next_up());
        // The nudge is far below the last bit, but it is not zero.
        let num: BigInt = ((&twice * den) << 200) + nudge;
        let exact = Rational { num: num.clone(), den: den.into(), exp2: -1275 };
        assert_rounded(ratio_to_f64(&num, &den.into(), -1275), &exact);
        let square: BigInt = ((twice.pow(2) * den) << 200) + nudge;
        let exact = Rational { num: square.clone(), den: den.into(), exp2: -2350 };
        assert_rounded_root(sqrt_ratio_to_f64(square.magnitude(), &den.into(), -2350), &exact);
    }

    #[test]
    fn roots_of_squares_are_exact(bits in 1u64..0x7ff0_0000_0000_0000, den in 1u64..) {
        let x = f64::from_bits(bits);
        let num = units(x).pow(2).magnitude() * den;
        prop_assert_eq!(sqrt_ratio_to_f64(&num, &den.into(), -2148).to_bits(), bits);
    }
}

#[test]
fn zero_and_extreme_arguments_have_their_results() {
    let one = BigUint::from(1u8);
    assert_canonical_nan(ratio_to_f64(&BigInt::ZERO, &BigUint::ZERO, 0));
    assert_eq!(ratio_to_f64(&1.into(), &BigUint::ZERO, 0), f64::INFINITY);
    assert_eq!(ratio_to_f64(&(-1).into(), &BigUint::ZERO, 0), f64::NEG_INFINITY);
    assert_eq!(ratio_to_f64(&BigInt::ZERO, &one, 0).to_bits(), 0);
    assert_canonical_nan(sqrt_ratio_to_f64(&BigUint::ZERO, &BigUint::ZERO, 0));
    assert_eq!(sqrt_ratio_to_f64(&one, &BigUint::ZERO, 0), f64::INFINITY);
    assert_eq!(sqrt_ratio_to_f64(&BigUint::ZERO, &one, 0).to_bits(), 0);
    assert_eq!(ratio_to_f64(&1.into(), &one, i64::MAX), f64::INFINITY);
    assert_eq!(ratio_to_f64(&(-1).into(), &one, i64::MIN).to_bits(), (-0.0f64).to_bits());
    assert_eq!(sqrt_ratio_to_f64(&one, &one, i64::MAX), f64::INFINITY);
    assert_eq!(sqrt_ratio_to_f64(&one, &one, i64::MIN).to_bits(), 0);
}
