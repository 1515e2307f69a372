//! Frames round trip, and a short frame with a large count takes little memory.
#![allow(clippy::unwrap_used)]

use std::ops::Range;

use gristmill_kernel::{Position, RowBatch};
use gristmill_runtime::{HandBack, RowCut, Tally, UnitEnd};
use gristmill_wire::action::Receipt;
use gristmill_wire::{ErrorBody, Frame, MAX_FILE_TARGETS, MAX_FRAME_BYTES, TallyFrame, WireError};
use proptest::prelude::*;

const ROWS: u8 = 3;
const END: u8 = 4;
const PARTIAL: u8 = 5;
const FAILED: u8 = 6;
const FINISHED: u8 = 7;
const HANDED_BACK: u8 = 10;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..300u64, any::<u64>()]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

/// Rows at any position, in any order.
fn rows() -> impl Strategy<Value = RowBatch> {
    let same = (0..9usize).prop_flat_map(|size| {
        prop::collection::vec((number(), Just(0), prop::collection::vec(any::<u8>(), size)), 0..12)
    });
    let mixed = prop::collection::vec((number(), prop_oneof![Just(0), number()], bytes()), 0..12);
    prop_oneof![same, mixed].prop_map(|rows| {
        let mut batch = RowBatch::default();
        for (record, part, row) in rows {
            batch.push(Position { record, part }, &row);
        }
        batch
    })
}

fn piece() -> impl Strategy<Value = (Range<u64>, Vec<u8>)> {
    (number(), number(), bytes()).prop_map(|(a, b, state)| (a.min(b)..a.max(b), state))
}

fn handed_back() -> impl Strategy<Value = HandBack> {
    let row_cut = (number(), prop::option::of(piece())).prop_map(|(from, begun)| {
        let from = begun.as_ref().map_or(from, |(range, _)| range.end);
        RowCut { from, begun }
    });
    (prop::collection::vec(any::<u32>(), 0..9), row_cut, ".{0,20}")
        .prop_map(|(targets, row_cut, why)| HandBack { targets, row_cut, why })
}

fn unit_end() -> impl Strategy<Value = UnitEnd> {
    (prop::option::of(piece()), any::<bool>(), any::<bool>()).prop_map(|(piece, enough, cut)| UnitEnd {
        piece,
        enough,
        cut,
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let tally = (
        prop::collection::vec((any::<u32>(), number(), number()), 0..9),
        number(),
        number(),
        number(),
        number(),
    )
        .prop_map(|(targets, moved, messages, settled, in_storage)| TallyFrame {
            targets,
            moved,
            messages,
            settled,
            in_storage,
        });
    prop_oneof![
        number().prop_map(Frame::Progress),
        number().prop_map(Frame::Begin),
        rows().prop_map(Frame::Rows),
        unit_end().prop_map(Frame::End),
        bytes().prop_map(Frame::Partial),
        (number(), any::<String>(), any::<String>()).prop_map(|(at, kind, message)| Frame::Failed(
            at,
            ErrorBody { kind, message, retry_after: None }
        )),
        (any::<u32>(), (number(), number(), number()), any::<String>()).prop_map(
            |(target, (length, data, version), seal)| {
                Frame::Written(target, Receipt { length, data: Some(data), version, sum: None, seal })
            }
        ),
        (any::<u32>(), bytes()).prop_map(|(round, shared)| Frame::Reached(round, shared)),
        handed_back().prop_map(Frame::HandedBack),
        tally.prop_map(Frame::Finished),
    ]
}

proptest! {
    #[test]
    fn frames_round_trip(frame in frame()) {
        prop_assert_eq!(Frame::decode(&frame.encode()).unwrap(), frame);
    }

    #[test]
    fn a_truncated_frame_is_refused(frame in frame(), cut in any::<prop::sample::Index>()) {
        let encoded = frame.encode();
        let cut = cut.index(encoded.len());
        prop_assert!(Frame::decode(&encoded[..cut]).is_err(), "{cut} of {} bytes", encoded.len());
    }

    #[test]
    fn a_frame_with_trailing_bytes_is_refused(frame in frame(), more in 1..9usize) {
        let mut encoded = frame.encode();
        encoded.resize(encoded.len() + more, 0);
        prop_assert!(Frame::decode(&encoded).is_err());
    }

    #[test]
    fn a_decoded_frame_round_trips(
        kind in 0..12u8,
        body in prop::collection::vec(prop_oneof![0..4u8, any::<u8>()], 0..60),
    ) {
        if let Ok(frame) = Frame::decode(&[&[kind], body.as_slice()].concat()) {
            prop_assert_eq!(Frame::decode(&frame.encode()).unwrap(), frame);
        }
    }
}

#[test]
fn rows_of_eight_bytes_take_one_or_two_more() {
    let mut batch = RowBatch::default();
    for record in 0..1000u64 {
        batch.push(Position::of_record(record * 100), &record.to_le_bytes());
    }
    assert!(Frame::Rows(batch).encode().len() < 9 * 1000 + 20);
}

#[test]
fn the_longest_frame_is_decoded_and_a_longer_one_is_refused() {
    let state = vec![7; MAX_FRAME_BYTES - 9];
    let frame = Frame::Partial(state);
    let mut encoded = frame.encode();
    assert_eq!(encoded.len(), MAX_FRAME_BYTES);
    assert_eq!(Frame::decode(&encoded).unwrap(), frame);
    encoded.push(0);
    assert!(matches!(Frame::decode(&encoded), Err(WireError::TooLong { max: MAX_FRAME_BYTES, .. })));
}

/// Encodes a number in LEB128.
fn leb(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

#[test]
fn a_count_without_the_bytes_for_it_is_refused() {
    let huge = u64::MAX.to_le_bytes();
    let filler = [0; 64];
    // An allocation for any of these counts would end the process.
    for count in [u64::MAX, u64::MAX / 24, 1 << 60, 1 << 45] {
        for flags in 0..4 {
            let frame = [&[ROWS, flags], leb(count).as_slice(), &filler].concat();
            assert!(Frame::decode(&frame).is_err(), "{count} rows, flags {flags}");
        }
        let count = count.to_le_bytes();
        assert!(Frame::decode(&[&[PARTIAL], count.as_slice(), &filler].concat()).is_err());
        assert!(Frame::decode(&[&[FINISHED], count.as_slice(), &filler].concat()).is_err());
        assert!(Frame::decode(&[&[FAILED], &filler[..8], count.as_slice(), &filler].concat()).is_err());
        assert!(
            Frame::decode(&[&[END, 0, 0, 1], &filler[..16], count.as_slice(), &filler].concat()).is_err()
        );
    }
    // The sum of the sizes of two rows overflows.
    let sizes = [&[ROWS, 3, 2], leb(u64::MAX / 2 + 2).as_slice(), &filler].concat();
    assert!(Frame::decode(&sizes).is_err());
    assert!(Frame::decode(&[&[PARTIAL], huge.as_slice()].concat()).is_err());
}

#[test]
fn the_number_of_empty_rows_is_bounded() {
    let frame = |count: usize| [&[ROWS, 3], leb(count as u64).as_slice(), &[0], &vec![0; count]].concat();
    let Frame::Rows(batch) = Frame::decode(&frame(1 << 20)).unwrap() else { panic!("rows are rows") };
    assert_eq!(batch.len(), 1 << 20);
    // Each row would take 24 times the memory of its byte in the frame.
    assert!(Frame::decode(&frame((1 << 20) + 1)).is_err());
    assert!(Frame::decode(&frame(MAX_FRAME_BYTES - 8)).is_err());
}

#[test]
fn numbers_that_are_too_long_are_refused() {
    for number in [vec![0xff; 10], vec![0x80; 11], [vec![0xff; 9], vec![2]].concat()] {
        let frame = [&[ROWS, 3], number.as_slice(), &[0; 16]].concat();
        assert!(Frame::decode(&frame).is_err(), "{number:?}");
    }
}

#[test]
fn a_reversed_range_is_refused() {
    let ends = [5u64.to_le_bytes(), 4u64.to_le_bytes(), 0u64.to_le_bytes()].concat();
    let error = Frame::decode(&[&[END, 0, 0, 1], ends.as_slice()].concat()).unwrap_err();
    assert!(error.to_string().contains("reversed"), "{error}");
}

#[test]
fn the_rest_begins_where_the_cut_unit_ends() {
    let frame = |end: u64| {
        let fields = [1u64, 0, 5].map(u64::to_le_bytes).concat();
        let piece = [2, end, 0].map(u64::to_le_bytes).concat();
        [&[HANDED_BACK], fields.as_slice(), &[1], piece.as_slice(), &0u64.to_le_bytes()].concat()
    };
    assert!(matches!(Frame::decode(&frame(5)), Ok(Frame::HandedBack(_))));
    let error = Frame::decode(&frame(6)).unwrap_err();
    assert!(error.to_string().contains("where the rest begins"), "{error}");
    let many = [&[HANDED_BACK], u64::MAX.to_le_bytes().as_slice()].concat();
    assert!(Frame::decode(&many).is_err());
}

#[test]
fn other_kinds_and_flags_are_refused() {
    assert!(Frame::decode(&[]).is_err());
    for kind in [0, 8, 255] {
        assert!(Frame::decode(&[&[kind], [0; 8].as_slice()].concat()).is_err(), "{kind}");
    }
    for flags in 4..=u8::MAX {
        assert!(Frame::decode(&[ROWS, flags, 0, 0]).is_err(), "{flags}");
    }
    assert!(Frame::decode(&[END, 2, 0, 0]).is_err());
}

#[test]
fn counts_are_added_to_their_targets_only() {
    let mut tally = Tally::new(5);
    (tally.read[1], tally.records[1], tally.read[4]) = (10, 2, 7);
    (tally.moved, tally.messages, tally.settled) = (3, 1, 2);
    tally.in_storage = 4;
    let frame = TallyFrame::new(&tally);
    assert_eq!(frame.targets, [(1, 10, 2), (4, 7, 0)]);
    let back = frame.tally(5);
    assert_eq!((&back.read, &back.records), (&tally.read, &tally.records));
    assert_eq!((back.moved, back.messages, back.settled, back.in_storage), (3, 1, 2, 4));
    // A node that names a missing target, or a target twice, changes no other count.
    let wrong = TallyFrame { targets: vec![(9, 1, 1), (0, u64::MAX, 1), (0, 1, 1)], ..TallyFrame::default() };
    let counted = wrong.tally(2);
    assert_eq!((counted.read, counted.records), (vec![u64::MAX, 0], vec![2, 0]));
}

#[test]
fn more_targets_than_a_file_has_are_refused() {
    let tally = |n: usize| TallyFrame { targets: vec![(0, 1, 1); n], ..TallyFrame::default() };
    assert!(Frame::decode(&Frame::Finished(tally(MAX_FILE_TARGETS)).encode()).is_ok());
    assert!(Frame::decode(&Frame::Finished(tally(MAX_FILE_TARGETS + 1)).encode()).is_err());
}
