use gristmill_exact::Moments;
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use crate::oracle::{
    Rational, assert_canonical_nan, assert_rounded, assert_rounded_root, square_sum, sum as exact_sum,
    variance as exact_variance,
};
use crate::values::{any_f32, any_f64, f32_bytes, f64_bytes, few, finite};

fn moments_of(values: &[f64]) -> Moments {
    let mut moments = Moments::new();
    moments.add_f64_le(&f64_bytes(values));
    moments
}

fn encoded(moments: &Moments) -> Vec<u8> {
    let mut out = Vec::new();
    moments.encode(&mut out);
    assert!(out.len() <= Moments::STATE_BYTES);
    out
}

/// The variance by `n Sxx - Sx^2`, with sums of the oracle. It is fast enough for long lists.
fn long_variance(values: &[f64], ddof: u64) -> Rational {
    let n = values.len() as u64;
    let num: BigInt = square_sum(values) * n - exact_sum(values).pow(2);
    Rational { num, den: BigUint::from(n) * (n - ddof), exp2: -2148 }
}

fn check(moments: &Moments, finite: &[f64]) {
    let n = finite.len() as u64;
    for ddof in [0, 1, 7] {
        if n > ddof {
            let exact = long_variance(finite, ddof);
            assert_rounded(moments.variance(n, ddof, true), &exact);
            assert_rounded_root(moments.std(n, ddof, true), &exact);
        } else {
            assert_canonical_nan(moments.variance(n, ddof, true));
            assert_canonical_nan(moments.std(n, ddof, true));
        }
    }
    if n > 0 {
        let mean = Rational { num: exact_sum(finite), den: BigUint::from(n), exp2: -1074 };
        assert_rounded(moments.mean(n, true), &mean);
    }
}

proptest! {
    #[test]
    fn finite_values_have_exact_moments(values in finite()) {
        check(&moments_of(&values), &values);
    }

    #[test]
    fn variance_is_the_mean_squared_distance(values in few(), ddof in 0u64..3) {
        let n = values.len() as u64;
        if n > ddof {
            let exact = exact_variance(&values, ddof);
            assert_rounded(moments_of(&values).variance(n, ddof, false), &exact);
            assert_rounded_root(moments_of(&values).std(n, ddof, false), &exact);
        }
    }

    #[test]
    fn any_bits_follow_the_special_rules(values in any_f64()) {
        let moments = moments_of(&values);
        let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let n = values.iter().filter(|x| !x.is_nan()).count() as u64;
        let infinite = values.iter().any(|x| x.is_infinite());
        if infinite {
            assert_canonical_nan(moments.variance(n, 0, true));
            assert_canonical_nan(moments.std(n, 0, true));
        } else {
            check(&moments, &finite);
        }
        if moments.nans() > 0 {
            assert_canonical_nan(moments.variance(n.max(1), 0, false));
            assert_canonical_nan(moments.std(n.max(1), 0, false));
            assert_canonical_nan(moments.mean(n.max(1), false));
        }
    }

    #[test]
    fn f32_values_are_widened(values in any_f32()) {
        let mut moments = Moments::new();
        moments.add_f32_le(&f32_bytes(&values));
        let wide: Vec<f64> = values.iter().map(|x| f64::from(*x)).collect();
        prop_assert_eq!(encoded(&moments), encoded(&moments_of(&wide)));
        if moments.infinities() == (0, 0) {
            check(&moments, &wide.into_iter().filter(|x| x.is_finite()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn order_split_and_merge_do_not_matter(
        (values, shuffled) in any_f64().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
        cut in any::<prop::sample::Index>(),
        swap in any::<bool>(),
    ) {
        let whole = moments_of(&values);
        let (left, right) = shuffled.split_at(cut.index(shuffled.len() + 1));
        let (mut a, mut b) = (moments_of(left), moments_of(right));
        if swap {
            std::mem::swap(&mut a, &mut b);
        }
        let (mut restored, used) = Moments::decode(&encoded(&a)).unwrap();
        prop_assert_eq!(used, encoded(&a).len());
        restored.merge(&b);
        prop_assert_eq!(&restored, &whole);
        prop_assert_eq!(encoded(&restored), encoded(&whole));
        let mut one_by_one = Moments::new();
        values.iter().for_each(|x| one_by_one.add(*x));
        prop_assert_eq!(encoded(&one_by_one), encoded(&whole));
        let mut sum = Vec::new();
        whole.sum().encode(&mut sum);
        let mut alone = gristmill_exact::Sum::new();
        alone.add_f64_le(&f64_bytes(&values));
        let mut expected = Vec::new();
        alone.encode(&mut expected);
        prop_assert_eq!(sum, expected);
    }
}

#[test]
fn cancellation_and_extremes_are_exact() {
    let near = moments_of(&[1e16, 1e16 + 2.0, 1e16 + 4.0]);
    assert_eq!((near.variance(3, 1, false), near.std(3, 1, false)), (4.0, 2.0));
    // 1e16 + 1 is not a double. It is rounded to 1e16, so the values are {1e16, 1e16, 1e16 + 2}.
    let near = moments_of(&[1e16, 1e16 + 1.0, 1e16 + 2.0]);
    assert_eq!(near.variance(3, 1, false), 4.0 / 3.0);

    let large = moments_of(&[1e300, -1e300]);
    assert_eq!(large.variance(2, 0, false), f64::INFINITY);
    assert_eq!(large.std(2, 0, false), 1e300);
    assert_eq!(moments_of(&[f64::MAX; 5]).variance(5, 1, false).to_bits(), 0);
    assert_eq!(moments_of(&[f64::MAX, -f64::MAX]).std(2, 0, false), f64::MAX);
    assert_eq!(moments_of(&[f64::MAX, -f64::MAX]).std(2, 1, false), f64::INFINITY);

    let tiny = moments_of(&[5e-324, -5e-324]);
    assert_eq!(tiny.variance(2, 0, false).to_bits(), 0);
    assert_eq!(tiny.std(2, 0, false), 5e-324);
    assert_eq!(moments_of(&[5e-324, 0.0]).std(2, 0, false).to_bits(), 0, "half the lowest bit is a tie");
    assert_eq!(moments_of(&[2f64.powi(-537), -(2f64.powi(-537))]).variance(2, 0, false), 5e-324);

    // The root of the rounded variance would be rounded twice.
    let twice = (1..2000).map(|i| moments_of(&[0.0, f64::from(i), 1.0]));
    let differs = twice.filter(|m| m.std(3, 1, false) != m.variance(3, 1, false).sqrt()).count();
    assert!(differs > 0);

    assert_canonical_nan(moments_of(&[]).variance(0, 0, false));
    assert_canonical_nan(moments_of(&[1.0]).variance(1, 1, false));
    assert_canonical_nan(moments_of(&[1.0]).std(1, 2, true));
    assert_eq!(moments_of(&[1.0]).variance(1, 0, false).to_bits(), 0);
    // Two values are counted as one. The rational is negative, and it has no root.
    assert_eq!(moments_of(&[1.0, 1.0]).variance(1, 0, false), -2.0);
    assert_canonical_nan(moments_of(&[1.0, 1.0]).std(1, 0, false));
}

#[test]
fn many_values_far_from_zero_have_exact_moments() {
    for offset in [1e16, 1e300, -2f64.powi(52), 5e-324, 1e-160, 1e-308] {
        let values: Vec<f64> = (0..5000)
            .map(|i| {
                let mut x: f64 = offset;
                for _ in 0..i % 3 {
                    x = x.next_up();
                }
                x
            })
            .collect();
        check(&moments_of(&values), &values);
    }
}
