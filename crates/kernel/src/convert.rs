//! Conversion of consecutive elements from bytes to f64 and back.

use multiversion::multiversion;

use crate::element::Element;

/// Converts little-endian elements to f64, as many as both slices hold.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx+avx2", "x86_64+sse4.2"))]
pub(crate) fn widen<T: Element>(bytes: &[u8], out: &mut [f64]) {
    for (bytes, x) in bytes.chunks_exact(T::SIZE).zip(out) {
        *x = T::read(bytes).to_f64();
    }
}

/// Rounds each value to the nearest element and writes it little-endian. `out` has room for as many elements.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx+avx2", "x86_64+sse4.2"))]
pub(crate) fn narrow<T: Element>(values: &[f64], out: &mut [u8]) {
    for (x, bytes) in values.iter().zip(out.chunks_exact_mut(T::SIZE)) {
        bytes.copy_from_slice(&T::from_f64(*x).bits().to_le_bytes()[..T::SIZE]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same rule in another form: rounds ties to even, then clamps to the range. NaN becomes 0.
    fn rounded(x: f64, most: f64) -> u64 {
        if x.is_nan() { 0 } else { x.round_ties_even().clamp(0.0, most) as u64 }
    }

    proptest! {
        #[test]
        fn integers_are_rounded_to_nearest(
            values in prop::collection::vec(
                prop_oneof![-3i32..140_000, any::<i32>()].prop_map(|halves| f64::from(halves) / 2.0), 0..70,
            ),
        ) {
            let near = |x: &f64| [*x, x.next_up(), x.next_down(), -x, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            let values: Vec<f64> = values.iter().flat_map(near).collect();
            let (mut bytes, mut words) = (vec![1; values.len()], vec![1; 2 * values.len()]);
            narrow::<u8>(&values, &mut bytes);
            narrow::<u16>(&values, &mut words);
            for (n, x) in values.iter().enumerate() {
                prop_assert_eq!(u64::from(bytes[n]), rounded(*x, 255.0), "{}", x);
                prop_assert_eq!(u64::from(u16::read(&words[2 * n..][..2])), rounded(*x, 65535.0), "{}", x);
            }
        }

        #[test]
        fn floats_round_trip(values in prop::collection::vec(any::<f32>(), 0..70)) {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            let (mut wide, mut back) = (vec![0.0; values.len()], vec![0; bytes.len()]);
            widen::<f32>(&bytes, &mut wide);
            narrow::<f32>(&wide, &mut back);
            let wanted = values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x });
            prop_assert_eq!(back, wanted.flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        }
    }
}
