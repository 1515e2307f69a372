//! Sums of millions of values, which are known in closed form.

use gristmill_exact::{IntKind, IntMoments, Moments, Sum};
use num_bigint::{BigInt, BigUint};

use crate::oracle::{Rational, assert_rounded};
use crate::values::f64_bytes;

const VALUES: u64 = 1 << 24;
const CHUNK: u64 = 1 << 15;

fn chunks(value: impl Fn(u64) -> f64) -> impl Iterator<Item = Vec<u8>> {
    (0..VALUES / CHUNK)
        .map(move |chunk| f64_bytes(&(chunk * CHUNK..(chunk + 1) * CHUNK).map(&value).collect::<Vec<_>>()))
}

/// Every term 0.1 is rounded, but the sum of the terms is not.
#[test]
fn one_tenth_is_summed_exactly_many_times() {
    let mut sum = Sum::new();
    chunks(|_| 0.1).for_each(|chunk| sum.add_f64_le(&chunk));
    assert_eq!(sum.value(), 0.1 * VALUES as f64, "times a power of two is exact");
    assert_eq!(sum.mean(VALUES), 0.1);
}

/// The numbers 0 to n - 1, scaled by 2^-60, among pairs of huge numbers that cancel.
#[test]
fn an_arithmetic_series_among_huge_pairs_is_exact() {
    let mut sum = Sum::new();
    chunks(|i| match i % 4 {
        0 => 1e200 * (1 + i / 4 % 1000) as f64,
        1 => -1e200 * (1 + i / 4 % 1000) as f64,
        _ => (i / 4 * 2 + i % 4 - 2) as f64 * 2f64.powi(-60),
    })
    .for_each(|chunk| sum.add_f64_le(&chunk));
    let n = VALUES / 2;
    let num = BigInt::from(n * (n - 1) / 2);
    assert_rounded(sum.value(), &Rational { num: num.clone(), den: 1u8.into(), exp2: -60 });
    assert_rounded(sum.mean(VALUES), &Rational { num, den: VALUES.into(), exp2: -60 });
}

/// The variance of n consecutive integers is (n^2 - 1) / 12, also far from zero.
#[test]
fn variance_of_a_series_is_exact() {
    let mut moments = Moments::new();
    let mut integers = IntMoments::new();
    chunks(|i| 2f64.powi(50) + i as f64).for_each(|chunk| moments.add_f64_le(&chunk));
    for start in (0..VALUES).step_by(CHUNK as usize) {
        let bytes: Vec<u8> = (start..start + CHUNK).flat_map(|i| (i + (1 << 60)).to_le_bytes()).collect();
        integers.add_le(IntKind::I64, &bytes);
    }
    let square = BigInt::from(VALUES).pow(2);
    let exact = Rational { num: &square - 1, den: 12u8.into(), exp2: 0 };
    assert_rounded(moments.variance(VALUES, 0, false), &exact);
    assert_rounded(integers.variance(VALUES, 0), &exact);
    let num = (square - 1) * VALUES;
    let exact = Rational { num, den: BigUint::from(12 * (VALUES - 1)), exp2: 0 };
    assert_rounded(moments.variance(VALUES, 1, false), &exact);
    assert_rounded(integers.variance(VALUES, 1), &exact);
}
