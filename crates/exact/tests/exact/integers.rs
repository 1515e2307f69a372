use gristmill_exact::{IntKind, IntMoments, IntSum};
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use crate::oracle::{Rational, assert_canonical_nan, assert_rounded, assert_rounded_root};

const KINDS: [IntKind; 8] = [
    IntKind::I8,
    IntKind::I16,
    IntKind::I32,
    IntKind::I64,
    IntKind::U8,
    IntKind::U16,
    IntKind::U32,
    IntKind::U64,
];

fn signed(kind: IntKind) -> bool {
    matches!(kind, IntKind::I8 | IntKind::I16 | IntKind::I32 | IntKind::I64)
}

/// Reads values from little-endian bytes, byte by byte.
fn read(kind: IntKind, bytes: &[u8]) -> Vec<i128> {
    let value = |raw: &[u8]| {
        let unsigned = raw.iter().rev().fold(0i128, |value, byte| value * 256 + i128::from(*byte));
        let top = raw.last().is_some_and(|byte| *byte >= 0x80);
        if signed(kind) && top { unsigned - (1 << (8 * raw.len())) } else { unsigned }
    };
    bytes.chunks_exact(kind.bytes()).map(value).collect()
}

fn check(sum: &IntSum, moments: &IntMoments, values: &[i128]) {
    let total: i128 = values.iter().sum();
    assert_eq!((sum.value(), moments.sum()), (total, total));
    let n = values.len() as u64;
    let squares: BigInt = values.iter().map(|x| BigInt::from(*x).pow(2)).sum();
    for ddof in [0, 1] {
        if n <= ddof {
            assert_canonical_nan(moments.variance(n, ddof));
            assert_canonical_nan(moments.std(n, ddof));
            continue;
        }
        let num: BigInt = &squares * n - BigInt::from(total).pow(2);
        let exact = Rational { num, den: BigUint::from(n) * (n - ddof), exp2: 0 };
        assert_rounded(moments.variance(n, ddof), &exact);
        assert_rounded_root(moments.std(n, ddof), &exact);
    }
    if n == 0 {
        assert_canonical_nan(sum.mean(0));
        assert_canonical_nan(moments.mean(0));
    } else {
        let exact = Rational { num: total.into(), den: n.into(), exp2: 0 };
        assert_rounded(sum.mean(n), &exact);
        assert_rounded(moments.mean(n), &exact);
    }
}

fn folded(kind: IntKind, bytes: &[u8]) -> (IntSum, IntMoments) {
    let (mut sum, mut moments) = (IntSum::new(), IntMoments::new());
    sum.add_le(kind, bytes);
    moments.add_le(kind, bytes);
    (sum, moments)
}

proptest! {
    #[test]
    fn sums_and_moments_are_exact(
        kind in prop::sample::select(&KINDS[..]),
        mut bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..3000),
            prop::collection::vec(prop_oneof![Just(0u8), Just(0x7f), Just(0x80), Just(0xff)], 0..3000),
        ],
        cut in any::<prop::sample::Index>(),
    ) {
        bytes.truncate(bytes.len() / kind.bytes() * kind.bytes());
        let (sum, moments) = folded(kind, &bytes);
        check(&sum, &moments, &read(kind, &bytes));

        let values = bytes.len() / kind.bytes();
        let (left, right) = bytes.split_at(cut.index(values + 1) * kind.bytes());
        let (left_sum, left_moments) = folded(kind, left);
        let (mut merged_sum, mut merged_moments) = folded(kind, right);
        let mut saved = Vec::new();
        left_sum.encode(&mut saved);
        prop_assert_eq!(saved.len(), IntSum::STATE_BYTES);
        merged_sum.merge(&IntSum::decode(&saved).unwrap().0);
        saved.clear();
        left_moments.encode(&mut saved);
        prop_assert_eq!(saved.len(), IntMoments::STATE_BYTES);
        merged_moments.merge(&IntMoments::decode(&saved).unwrap().0);
        prop_assert_eq!((merged_sum, merged_moments), (sum, moments));
    }
}

/// There are enough extreme values to overflow any lane that is too narrow for its block.
#[test]
fn extreme_values_overflow_no_lane() {
    for kind in KINDS {
        let bytes = kind.bytes();
        let mut largest = vec![0xff; bytes];
        let mut smallest = vec![0; bytes];
        if signed(kind) {
            largest[bytes - 1] = 0x7f;
            smallest[bytes - 1] = 0x80;
        }
        for pattern in [largest, smallest] {
            let data = pattern.repeat(150_000);
            let (sum, moments) = folded(kind, &data);
            check(&sum, &moments, &read(kind, &data));
        }
    }
}

#[test]
fn sums_of_squares_pass_128_bits() {
    let (_, mut moments) = folded(IntKind::U64, &u64::MAX.to_le_bytes());
    moments.merge(&folded(IntKind::U64, &0u64.to_le_bytes()).1);
    for _ in 0..61 {
        moments.merge(&moments.clone());
    }
    // Half of the values are zero, and half are the largest value.
    let exact = Rational { num: BigInt::from(u64::MAX).pow(2), den: 4u8.into(), exp2: 0 };
    assert_rounded(moments.variance(1 << 62, 0), &exact);
    assert_rounded_root(moments.std(1 << 62, 0), &exact);
    assert_rounded(moments.mean(1 << 62), &Rational { num: u64::MAX.into(), den: 2u8.into(), exp2: 0 });
}

#[test]
fn single_values_can_be_added() {
    let mut sum = IntSum::new();
    sum.add(i128::from(u64::MAX));
    sum.add(-1);
    assert_eq!(sum.value(), i128::from(u64::MAX) - 1);
}
