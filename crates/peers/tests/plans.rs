//! Plans of requests, made before they run.
#![allow(clippy::unwrap_used)]

use gristmill_peers::{Plan, Question};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::{FileMap, FoldPlace, InputSpec, TargetPlace};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn file(length: u64, unit: u64, targets: u32) -> FileMap {
    let place = |number| TargetPlace { number, address: format!("10.0.0.{number}:1"), version: 1 };
    FileMap {
        id: "0".repeat(32),
        path: "/data".into(),
        length,
        unit,
        first: 0,
        record: None,
        segments: false,
        attached: None,
        targets: (0..targets).map(place).collect(),
    }
}

fn plan_of(question: &Question, file: &FileMap, wanted: FoldPlace) -> Result<Plan, RunError> {
    Plan::make(question, file, &file.striped()?.into(), wanted)
}

fn sum() -> Question {
    Question {
        kernel: "sum".into(),
        input: InputSpec { dtype: Some("f64".into()), ..InputSpec::default() },
        ..Question::default()
    }
}

/// A kernel over text records of this size.
fn records(size: u64) -> Question {
    Question {
        kernel: "grep".into(),
        params: vec![("pattern".into(), "x".into())],
        input: InputSpec { record: Some(size), ..InputSpec::default() },
        range: None,
        array: None,
    }
}

fn lines() -> Question {
    Question { kernel: "wc".into(), ..Question::default() }
}

const PLACES: [FoldPlace; 3] = [FoldPlace::Auto, FoldPlace::Storage, FoldPlace::Client];

#[test]
fn aligned_elements_stay_where_they_are() {
    let file = file(64 * MIB, 64 << 10, 4);
    for (wanted, place) in [
        (FoldPlace::Auto, FoldPlace::Storage),
        (FoldPlace::Storage, FoldPlace::Storage),
        (FoldPlace::Client, FoldPlace::Client),
    ] {
        let plan = plan_of(&sum(), &file, wanted).unwrap();
        assert_eq!(plan.place, place);
        assert_eq!((plan.extra_work.pulled_bytes, plan.extra_work.messages), (0, 0));
        assert_eq!(plan.client_bytes, 64 * MIB);
        assert!(!plan.estimated);
        let answer = plan.answer_bytes.unwrap();
        assert!(answer > 0 && answer < 64 << 10, "{answer}");
        assert_eq!(plan.storage_bytes(), answer);
    }
}

#[test]
fn records_much_longer_than_stripes_are_pulled_by_their_owners() {
    // The owner of a record holds a quarter of it and pulls the rest, window by window, from three others.
    let file = file(64 * MIB, 4 << 10, 4);
    for wanted in [FoldPlace::Auto, FoldPlace::Storage] {
        let plan = plan_of(&records(MIB), &file, wanted).unwrap();
        assert_eq!((plan.place, plan.client_bytes), (FoldPlace::Storage, 64 * MIB));
        assert_eq!(plan.extra_work.pulled_bytes, 48 * MIB);
        assert!(plan.extra_work.messages >= 3 * 64);
    }
}

#[test]
fn a_unit_of_whole_records_needs_no_pulling() {
    let plan = plan_of(&records(96), &file(96 * 10_000, 96 * 128, 5), FoldPlace::Storage).unwrap();
    assert_eq!(plan.extra_work.pulled_bytes, 0);
    assert_eq!(plan.answer_bytes, None, "the number of rows depends on the data");
}

#[test]
fn lines_are_expected_to_move_nothing() {
    for wanted in [FoldPlace::Auto, FoldPlace::Storage] {
        let plan = plan_of(&lines(), &file(10 * MIB, 1000, 4), wanted).unwrap();
        assert_eq!(
            (plan.place, plan.extra_work.pulled_bytes, plan.extra_work.messages),
            (FoldPlace::Storage, 0, 0)
        );
        assert_eq!(plan.client_bytes, 10 * MIB);
    }
}

#[test]
fn a_plain_read_moves_the_range_without_the_header() {
    let file = file(1000, 64, 4);
    let bytes = |skip, range| {
        let mut question = lines();
        (question.input.skip, question.range) = (skip, range);
        plan_of(&question, &file, FoldPlace::Client).unwrap().client_bytes
    };
    assert_eq!(bytes(0, None), 1000);
    assert_eq!(bytes(100, None), 900);
    assert_eq!(bytes(1000, None), 0);
    assert_eq!(bytes(0, Some((200, None))), 800);
    assert_eq!(bytes(0, Some((200, Some(50)))), 50);
    assert_eq!(bytes(0, Some((200, Some(u64::MAX)))), 800);
    assert_eq!(bytes(300, Some((200, Some(50)))), 0);
    assert_eq!(bytes(220, Some((200, Some(50)))), 30);
    assert_eq!(bytes(0, Some((u64::MAX, Some(u64::MAX)))), 0);
}

#[test]
fn bytes_beyond_the_file_move_nothing() {
    let file = file(1000, 64, 4);
    for skip in [1000, 1001, u64::MAX] {
        for mut question in [sum(), lines()] {
            question.input.skip = skip;
            let plan = plan_of(&question, &file, FoldPlace::Auto).unwrap();
            assert_eq!((plan.client_bytes, plan.extra_work.pulled_bytes), (0, 0), "skip {skip}");
        }
    }
    let empty = plan_of(&sum(), &self::file(0, 64, 4), FoldPlace::Auto).unwrap();
    assert_eq!((empty.client_bytes, empty.extra_work.pulled_bytes), (0, 0));
}

#[test]
fn a_question_that_the_kernel_refuses_is_refused_before_anything_moves() {
    let question = Question { kernel: "summ".into(), ..sum() };
    let error = plan_of(&question, &file(1000, 64, 4), FoldPlace::Auto).unwrap_err();
    assert!(error.to_string().contains("did you mean 'sum'?"), "{error}");
    let question = Question { input: InputSpec::default(), ..sum() };
    assert_eq!(plan_of(&question, &file(1000, 64, 4), FoldPlace::Auto).unwrap_err().kind(), ErrorKind::Usage);
    let no_targets = file(1000, 64, 0);
    assert!(matches!(plan_of(&sum(), &no_targets, FoldPlace::Auto), Err(RunError::Layout(_))));
}

proptest! {
    #[test]
    fn auto_never_moves_more_than_a_plain_read(
        length in 0..1u64 << 22, unit in 1..1u64 << 14, targets in 1..9u32, size in 1..1u64 << 16,
        skip in 0..1u64 << 10, range in prop::option::of((0..1u64 << 22, prop::option::of(0..1u64 << 22))),
    ) {
        let mut question = records(size);
        question.input.skip = skip;
        question.range = range;
        let file = file(length, unit, targets);
        let plan = plan_of(&question, &file, FoldPlace::Auto).unwrap();
        prop_assert!(plan.client_bytes <= length);
        if plan.place == FoldPlace::Storage {
            prop_assert!(plan.extra_work.pulled_bytes <= plan.client_bytes);
        }
        let storage = plan_of(&question, &file, FoldPlace::Storage);
        prop_assert_eq!(storage.is_ok(), plan.place == FoldPlace::Storage);
        if targets == 1 {
            prop_assert_eq!(plan.extra_work.pulled_bytes, 0);
        }
    }

    #[test]
    fn nothing_overflows(
        length in 0..=i64::MAX as u64, unit in 1..=i64::MAX as u64, size in 1..=u64::MAX, skip in any::<u64>(),
        range in any::<Option<(u64, Option<u64>)>>(),
    ) {
        let mut question = records(size);
        question.input.skip = skip;
        question.range = range;
        for place in PLACES {
            // Some of the plans are refused. None panics or runs for ever.
            if let Ok(plan) = plan_of(&question, &file(length, unit, 3), place) {
                prop_assert!(plan.client_bytes <= length);
                prop_assert!(plan.storage_bytes() >= plan.extra_work.pulled_bytes);
            }
        }
    }
}
