use gristmill_exact::Sum;
use num_bigint::BigUint;
use proptest::prelude::*;

use crate::oracle::{Rational, assert_canonical_nan, assert_rounded, sum as exact_sum};
use crate::values::{any_f32, any_f64, f32_bytes, f64_bytes, few, finite};

fn sum_of(values: &[f64]) -> Sum {
    let mut sum = Sum::new();
    sum.add_f64_le(&f64_bytes(values));
    sum
}

fn encoded(sum: &Sum) -> Vec<u8> {
    let mut out = Vec::new();
    sum.encode(&mut out);
    assert!(out.len() <= Sum::STATE_BYTES);
    out
}

fn check_value_and_mean(sum: &Sum, finite: &[f64]) {
    let n = finite.len() as u64;
    let num = exact_sum(finite);
    assert_rounded(sum.value_skip_nan(), &Rational { num: num.clone(), den: 1u8.into(), exp2: -1074 });
    if n > 0 {
        assert_rounded(sum.mean_skip_nan(n), &Rational { num, den: BigUint::from(n), exp2: -1074 });
    }
}

proptest! {
    #[test]
    fn finite_values_are_summed_exactly(values in finite()) {
        let sum = sum_of(&values);
        check_value_and_mean(&sum, &values);
        prop_assert_eq!(sum.value().to_bits(), sum.value_skip_nan().to_bits());
        prop_assert_eq!((sum.nans(), sum.infinities()), (0, (0, 0)));
    }

    #[test]
    fn means_divide_once(values in few(), n in 1u64..) {
        let exact = Rational { num: exact_sum(&values), den: BigUint::from(n), exp2: -1074 };
        assert_rounded(sum_of(&values).mean(n), &exact);
    }

    #[test]
    fn any_bits_follow_the_special_rules(values in any_f64()) {
        let sum = sum_of(&values);
        let count = |what: fn(&f64) -> bool| values.iter().filter(|x| what(x)).count() as u64;
        let nans = count(|x| x.is_nan());
        let infinities = (count(|x| *x == f64::INFINITY), count(|x| *x == f64::NEG_INFINITY));
        prop_assert_eq!((sum.nans(), sum.infinities()), (nans, infinities));
        let skipping = match infinities {
            (0, 0) => {
                let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
                check_value_and_mean(&sum, &finite);
                sum.value_skip_nan()
            }
            (_, 0) => f64::INFINITY,
            (0, _) => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
        if skipping.is_nan() {
            assert_canonical_nan(sum.value_skip_nan());
            assert_canonical_nan(sum.mean_skip_nan(3));
        } else {
            prop_assert_eq!(sum.value_skip_nan().to_bits(), skipping.to_bits());
        }
        if nans > 0 {
            assert_canonical_nan(sum.value());
            assert_canonical_nan(sum.mean(3));
        } else if !skipping.is_nan() {
            prop_assert_eq!(sum.value().to_bits(), skipping.to_bits());
        }
    }

    #[test]
    fn f32_values_are_widened(values in any_f32()) {
        let mut sum = Sum::new();
        sum.add_f32_le(&f32_bytes(&values));
        let wide: Vec<f64> = values.iter().map(|x| f64::from(*x)).collect();
        prop_assert_eq!(encoded(&sum), encoded(&sum_of(&wide)));
        if sum.infinities() == (0, 0) {
            check_value_and_mean(&sum, &wide.into_iter().filter(|x| x.is_finite()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn order_split_and_merge_do_not_matter(
        (values, shuffled) in any_f64().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        merge_order in any::<u64>(),
    ) {
        let whole = sum_of(&values);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(shuffled.len() + 1)).collect();
        cuts.extend([0, shuffled.len()]);
        cuts.sort_unstable();
        let mut parts: Vec<Sum> =
            cuts.windows(2).map(|cut| sum_of(&shuffled[cut[0]..cut[1]])).collect();
        // Two parts at a time are merged. The bits of a number choose them, so every merge tree can occur.
        let mut choice = merge_order;
        while parts.len() > 1 {
            let mut a = parts.swap_remove((choice % parts.len() as u64) as usize);
            choice = choice.rotate_right(7);
            let b = parts.swap_remove((choice % parts.len() as u64) as usize);
            choice = choice.rotate_right(7);
            // Half of them travel as bytes.
            if choice & 1 == 1 {
                a = Sum::decode(&encoded(&a)).unwrap().0;
            }
            a.merge(&b);
            parts.push(a);
        }
        let merged = parts.pop().unwrap();
        prop_assert_eq!(&merged, &whole);
        prop_assert_eq!(encoded(&merged), encoded(&whole));
        let mut one_by_one = Sum::new();
        values.iter().for_each(|x| one_by_one.add(*x));
        prop_assert_eq!(encoded(&one_by_one), encoded(&whole));
    }
}

#[test]
fn special_results_are_as_documented() {
    assert_eq!(Sum::new().value().to_bits(), 0);
    assert_canonical_nan(Sum::new().mean(0));
    assert_canonical_nan(sum_of(&[1.0]).mean(0));
    assert_canonical_nan(sum_of(&[f64::INFINITY]).mean(0));
    assert_eq!(sum_of(&[-0.0, -0.0]).value().to_bits(), 0);
    assert_eq!(sum_of(&[1.0, -1.0]).value().to_bits(), 0);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
    assert_eq!(sum_of(&[-f64::MAX, -f64::MAX]).value(), f64::NEG_INFINITY);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]).mean(2), f64::MAX);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
    assert_eq!(sum_of(&[f64::MAX, 2f64.powi(969)]).value(), f64::MAX);
    assert_eq!(sum_of(&[f64::MAX, 2f64.powi(970)]).value(), f64::INFINITY);
    assert_eq!(sum_of(&[5e-324, 5e-324]).mean(2), 5e-324);
    assert_eq!(sum_of(&[5e-324]).mean(2).to_bits(), 0, "half of the lowest bit is a tie to zero");
    assert_eq!(sum_of(&[-5e-324]).mean(2).to_bits(), (-0.0f64).to_bits());
    assert_eq!(sum_of(&[1.5e-323]).mean(2), 1e-323, "1.5 of the lowest bit is a tie to two");
    // Rounding the sum first and then the quotient gives other means for some of these.
    let sums = (0..1000).map(|i| sum_of(&[1.0, f64::from(i) * 2f64.powi(-54)]));
    assert!(sums.filter(|sum| sum.mean(3) != sum.value() / 3.0).count() > 0);
    assert_eq!(sum_of(&[1.0, f64::INFINITY, -1e300]).value(), f64::INFINITY);
    assert_canonical_nan(sum_of(&[f64::NEG_INFINITY, f64::INFINITY]).value_skip_nan());
    assert_canonical_nan(sum_of(&[f64::from_bits(0xfff0_dead_beef_0001)]).value());
    assert_eq!(sum_of(&[f64::NAN, 2.0]).mean_skip_nan(1), 2.0);
}

#[test]
fn merging_doubles_past_the_carry_bound() {
    let values: Vec<f64> = vec![f64::MAX, 5e-324, 1.0, -3.25, 1e100];
    let (mut sum, mut negative) = (sum_of(&values), sum_of(&values.iter().map(|x| -x).collect::<Vec<_>>()));
    for _ in 0..60 {
        sum.merge(&sum.clone());
        negative.merge(&negative.clone());
    }
    let exact = Rational { num: exact_sum(&values) << 60, den: BigUint::from(1u64 << 60), exp2: -1074 };
    assert_rounded(sum.mean(1 << 60), &exact);
    sum.merge(&negative);
    assert_eq!(encoded(&sum), encoded(&Sum::new()));
}

#[test]
fn counts_stop_at_the_largest() {
    let mut sum = sum_of(&[f64::NAN, f64::INFINITY]);
    for _ in 0..70 {
        sum.merge(&sum.clone());
    }
    assert_eq!((sum.nans(), sum.infinities()), (u64::MAX, (u64::MAX, 0)));
    sum.add(f64::NAN);
    assert_eq!(sum.nans(), u64::MAX);
}
