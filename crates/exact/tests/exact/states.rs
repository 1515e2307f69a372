use gristmill_exact::{DecodeError, IntMoments, IntSum, Moments, Sum};
use proptest::prelude::*;

use crate::values::{any_f64, f64_bytes};

/// Checks that decoded states encode to the same bytes. Returns which types decoded the bytes.
fn canonical(bytes: &[u8]) -> [bool; 4] {
    let mut out = Vec::new();
    macro_rules! check {
        ($type:ty) => {{
            out.clear();
            match <$type>::decode(bytes) {
                Ok((state, used)) => {
                    state.encode(&mut out);
                    assert_eq!(out, bytes[..used]);
                    assert!(used <= <$type>::STATE_BYTES);
                    true
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    false
                }
            }
        }};
    }
    [check!(Sum), check!(Moments), check!(IntSum), check!(IntMoments)]
}

/// Bytes in the form of a state, in which any field may be wrong.
fn almost_states() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x80), Just(0xff), any::<u8>()];
    let number = || {
        (0u8..140, 0u8..140, prop::collection::vec(prop_oneof![Just(0u8), Just(0xffu8), any::<u8>()], 0..560))
            .prop_map(|(first, count, limbs)| {
                let mut bytes = vec![first, count];
                bytes.extend(limbs.iter().cycle().take(if limbs.is_empty() {
                    0
                } else {
                    4 * usize::from(count)
                }));
                bytes
            })
    };
    let counts = prop::collection::vec(byte, 0..25);
    (
        prop_oneof![0x10u8..0x50, any::<u8>()],
        counts,
        number(),
        number(),
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(tag, counts, first, second, end, cut)| {
            let counts = if tag & 0x0e == 0 { &[] } else { &counts[..] };
            let mut bytes = [&[tag], counts, &first, &second].concat();
            if cut {
                bytes.truncate(end.index(bytes.len() + 1));
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_bytes_make_decode_panic(bytes in prop::collection::vec(any::<u8>(), 0..1200)) {
        canonical(&bytes);
    }

    #[test]
    fn almost_states_are_refused_or_canonical(bytes in almost_states()) {
        canonical(&bytes);
        // Decoded states can be used.
        if let Ok((mut moments, _)) = Moments::decode(&bytes) {
            for _ in 0..3 {
                moments.merge(&moments.clone());
            }
            moments.variance(10, 1, true);
            moments.std(u64::MAX, 1, true);
            moments.mean(3, true);
        }
        if let Ok((mut sum, _)) = Sum::decode(&bytes) {
            sum.merge(&sum.clone());
            sum.value_skip_nan();
        }
    }
}

proptest! {
    #[test]
    fn states_round_trip(values in any_f64(), tail in prop::collection::vec(any::<u8>(), 0..20)) {
        let (mut sum, mut moments) = (Sum::new(), Moments::new());
        sum.add_f64_le(&f64_bytes(&values));
        moments.add_f64_le(&f64_bytes(&values));
        let (mut bytes, mut pair) = (Vec::new(), Vec::new());
        sum.encode(&mut bytes);
        moments.encode(&mut pair);
        let (length, pair_length) = (bytes.len(), pair.len());
        bytes.extend(&tail);
        pair.extend(&tail);
        prop_assert_eq!(Sum::decode(&bytes), Ok((sum, length)));
        prop_assert_eq!(Moments::decode(&pair), Ok((moments, pair_length)));
        for end in 0..length {
            prop_assert!(matches!(Sum::decode(&bytes[..end]), Err(DecodeError::Short { .. })), "{}", end);
        }
        let cut = Moments::decode(&pair[..pair_length - 1]);
        prop_assert!(matches!(cut, Err(DecodeError::Short { .. })), "cut by one byte");
    }
}

#[test]
fn each_fault_has_its_error() {
    let mut bytes = Vec::new();
    let mut sum = Sum::new();
    sum.add(1.5);
    sum.add(f64::NAN);
    sum.encode(&mut bytes);
    // Tag and flag, one count, and 1.5 = 0x1_8000_0000 * 2^-32 from limb 33 (bits 1056 to 1087) on.
    assert_eq!(bytes[0], 0x12);
    assert_eq!(bytes[1..9], 1u64.to_le_bytes());
    assert_eq!(canonical(&bytes), [true, false, false, false]);

    let wrong = |bytes: &[u8]| Sum::decode(bytes).unwrap_err();
    assert!(matches!(wrong(&[]), DecodeError::Short { have: 0, .. }));
    assert!(matches!(wrong(&[0x20]), DecodeError::Kind { found: 0x20, .. }));
    let not_canonical: [&[u8]; 6] = [
        &[0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a count of zero
        &[0x11, 0, 0],                         // minus zero
        &[0x10, 1, 0],                         // zero with a place
        &[0x10, 0, 71],                        // longer than the number
        &[0x10, 3, 2, 0, 0, 0, 0, 1, 0, 0, 0], // a zero limb below
        &[0x10, 69, 1, 0, 0, 0, 0x80],         // the sign bit
    ];
    for bytes in not_canonical {
        assert!(matches!(wrong(bytes), DecodeError::NotCanonical { .. }), "{bytes:?}");
    }
    assert!(matches!(wrong(&[0x10, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0]), DecodeError::NotCanonical { .. }));
    assert!(matches!(IntSum::decode(&[0x31; 17]), Err(DecodeError::NotCanonical { .. })));
    assert!(matches!(IntMoments::decode(&[0x48; 41]), Err(DecodeError::NotCanonical { .. })));
    assert_eq!(Sum::decode(&[0x10, 0, 0, 9]), Ok((Sum::new(), 3)));
}

#[test]
fn common_states_are_small() {
    let mut bytes = Vec::new();
    let mut moments = Moments::new();
    moments.add_f64_le(&f64_bytes(&(0..100_000).map(|i| 280.0 + f64::from(i) / 7000.0).collect::<Vec<_>>()));
    moments.encode(&mut bytes);
    assert!(bytes.len() <= 48, "{} bytes", bytes.len());
}
