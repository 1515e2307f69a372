//! Tests of folds by groups of nodes.
#![allow(clippy::unwrap_used)]

use gristmill_runtime::ExtentSet;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_part_of_a_pass_comes_through(
        round in any::<u32>(),
        (start, count) in (0u64..1000, 1u64..1000),
        state in prop::collection::vec(any::<u8>(), 0..100),
        failure in prop::option::of((any::<u64>(), any::<String>())),
        back in prop::option::of((prop::collection::vec(any::<u32>(), 0..5), ".{0,9}")),
    ) {
        let hand_back = |(targets, why)| HandBack { targets, row_cut: RowCut::default(), why };
        let handed_back: Vec<HandBack> = back.map(hand_back).into_iter().collect();
        let partial = Partial::new(round, ExtentSet::from_range(start..start + count), state);
        let error = |message| RunError::Remote { kind: ErrorKind::Data, message };
        let failure = failure.map(|(at, message)| (at, error(message)));
        let expected = failure.as_ref().map(|(at, error)| (*at, error.to_string()));
        let end = ShardEnd { partial: partial.clone(), failure, handed_back: handed_back.clone(), ..ShardEnd::new(0, 3) };
        let end = decode(&encode(&end), 3).unwrap();
        prop_assert_eq!(end.handed_back, handed_back);
        prop_assert_eq!(end.partial, partial);
        let failure = end.failure.map(|(at, error)| {
            assert_eq!(error.kind(), ErrorKind::Data);
            (at, error.to_string())
        });
        prop_assert_eq!(failure, expected);
    }

    #[test]
    fn what_is_cut_or_changed_is_an_error_or_another_part_and_nothing_worse(
        state in prop::collection::vec(any::<u8>(), 0..60),
        fails in any::<bool>(),
        (cut, at, to) in (0usize..200, 0usize..200, any::<u8>()),
    ) {
        let partial = Partial::new(1, ExtentSet::from_range(3..9), state);
        let failure = fails.then_some((5, RunError::Panicked));
        let mut bytes = encode(&ShardEnd { partial, failure, ..ShardEnd::new(0, 1) });
        prop_assert!(decode(&bytes[..cut.min(bytes.len() - 1)], 1).is_err());
        let at = at % bytes.len();
        bytes[at] = to;
        let _ = decode(&bytes, 1);
    }

    #[test]
    fn junk_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes, 1);
    }
}
