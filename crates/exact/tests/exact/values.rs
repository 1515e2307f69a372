//! Values that are hard to sum, and their bytes.

use proptest::prelude::*;

pub fn f64_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Values with any sign and fraction, and an exponent field in the range.
fn with_exponents(fields: std::ops::Range<u64>) -> BoxedStrategy<f64> {
    (any::<u64>(), fields)
        .prop_map(|(bits, field)| f64::from_bits(bits & !(0x7ff << 52) | field << 52))
        .boxed()
}

/// Finite values of one kind of difficulty.
fn finite_kind() -> impl Strategy<Value = BoxedStrategy<f64>> {
    prop_oneof![
        Just(with_exponents(0..2047)),
        Just(with_exponents(0..1)),
        Just(with_exponents(0..60)),
        Just(with_exponents(2040..2047)),
        Just(with_exponents(1900..2047)),
        Just((250.0..320.0).boxed()),
        Just((-1000i32..1000).prop_map(f64::from).boxed()),
        Just(prop_oneof![Just(0.0), Just(-0.0), Just(5e-324), Just(-5e-324)].boxed()),
        Just(prop_oneof![Just(1e16), Just(1e16 + 2.0), Just(1.0), Just(-1e16)].boxed()),
        Just(prop_oneof![Just(f64::MAX), Just(-f64::MAX), Just(5e-324), Just(1.0)].boxed()),
        Just(prop_oneof![3 => 250.0..320.0, 1 => Just(1e36)].boxed()),
        // Their squares lie around the limits beyond which squares lose bits.
        Just(with_exponents(530..550)),
        Just(with_exponents(1515..1535)),
        (0u64..2000, 1u64..400).prop_map(|(from, binades)| with_exponents(from..(from + binades).min(2047))),
    ]
}

/// Lengths around the edges of blocks and lanes.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..100, 100usize..2000, 2040usize..2060, 4090usize..4200]
}

/// Finite values. In one of four cases they cancel to the first few of them.
pub fn finite() -> impl Strategy<Value = Vec<f64>> {
    (finite_kind(), length(), 0..4).prop_flat_map(|(kind, length, cancel)| {
        prop::collection::vec(kind, length).prop_map(move |mut values| {
            if cancel == 0 {
                let negated: Vec<f64> = values.iter().skip(3).map(|x| -x).collect();
                values.extend(negated);
            }
            values
        })
    })
}

/// Short lists of finite values.
pub fn few() -> impl Strategy<Value = Vec<f64>> {
    (finite_kind(), 1usize..40).prop_flat_map(|(kind, length)| prop::collection::vec(kind, length))
}

/// Values with any bits.
pub fn any_f64() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        -10.0..10.0
    ];
    length().prop_flat_map(move |length| prop::collection::vec(one.clone(), length))
}

/// `f32` values with any bits, or of a few binades.
pub fn any_f32() -> impl Strategy<Value = Vec<f32>> {
    (0u32..256, prop_oneof![1u32..30, 1u32..256], length()).prop_flat_map(|(from, binades, length)| {
        let one = (any::<u32>(), from..from + binades)
            .prop_map(|(bits, field)| f32::from_bits(bits & !(0xff << 23) | field.min(255) << 23));
        prop::collection::vec(one, length)
    })
}
