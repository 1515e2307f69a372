//! The suite finds kernels that break a law, and names the law. A suite that cannot fail would prove nothing.
#![allow(clippy::expect_used)] // in a function that tests share

use std::sync::Arc;

use gristmill_conformance::samples::*;
use gristmill_conformance::{Answer, Case, Law, check};
use gristmill_kernel::{DType, Input, Kernel, KernelError, Position, Value};

fn case(kernel: impl Kernel + 'static) -> Case {
    let data = (0..40).flat_map(|i| (f64::from(i) * 0.1).to_le_bytes()).collect();
    Case::new(Arc::new(kernel), Input::elements(DType::F64), data)
}

/// The message for the user. `Display` gives the same sentence as `Debug`, which `?` in a `main` and `unwrap` print.
fn message(case: &Case) -> String {
    let broken = check(case, 7, 200).expect_err("a broken kernel passed");
    assert_eq!(format!("{broken}"), format!("{broken:?}"));
    broken.to_string()
}

fn law_broken_by(kernel: impl Kernel + 'static) -> Law {
    check(&case(kernel), 7, 200).expect_err("a broken kernel passed").law
}

/// Counts the values.
fn count(data: &[u8]) -> Value {
    Value::from(data.len() as u64 / 8)
}

#[test]
fn a_kernel_that_counts_blocks() {
    assert_eq!(law_broken_by(BlockCounter), Law::Blocks);
}

#[test]
fn a_kernel_that_forgets_when_saved() {
    assert_eq!(law_broken_by(Forgetful), Law::Save);
}

#[test]
fn a_kernel_whose_merge_loses_a_side() {
    assert_eq!(law_broken_by(LeftHeavy), Law::Merge);
}

#[test]
fn a_kernel_that_depends_on_the_order_and_declares_any() {
    assert_eq!(law_broken_by(FirstWins), Law::Order);
}

#[test]
fn a_kernel_that_panics_on_a_short_state() {
    assert_eq!(law_broken_by(Panicky), Law::State);
}

#[test]
fn a_kernel_that_takes_no_record() {
    assert_eq!(law_broken_by(Idler), Law::Contract);
}

#[test]
fn floats_merged_without_a_tree() {
    assert_eq!(law_broken_by(Welford), Law::Merge);
}

#[test]
fn a_kernel_that_always_answers_0() {
    check(&case(Zero), 7, 50).expect("it keeps the laws");
    assert_eq!(
        message(&case(Zero).with_reference(count)),
        "kernel 'zero' gives a wrong answer: the reference gives 40, and one fold over the whole input gives 0"
    );
}

#[test]
fn a_kernel_that_answers_where_the_reference_refuses() {
    let refuses = |_: &[u8]| Err::<Value, _>(KernelError::Empty { kernel: "zero", why: "there is nothing" });
    let message = message(&case(Zero).with_reference(refuses));
    assert!(message.contains("the reference gives the error \"kernel 'zero' has no answer"), "{message}");
}

#[test]
fn floats_may_differ_from_the_reference_by_the_tolerance() {
    let sum = |data: &[u8]| data.as_chunks().0.iter().map(|x| f64::from_le_bytes(*x)).sum::<f64>();
    let near = move |data: &[u8]| Value::Float(sum(data) * (1.0 + 1e-13));
    check(&case(Total).with_reference_within(1e-12, near), 7, 5).expect("it is near");
    let message = message(&case(Total).with_reference(near));
    assert!(message.starts_with("kernel 'total' gives a wrong answer: the reference gives 78."), "{message}");
}

#[test]
fn rows_are_compared_and_the_message_has_the_first_difference() {
    let case = Case::new(Arc::new(Multiples(3)), Input::elements(DType::U8), vec![3, 4, 6]);
    let rows =
        |found: &[(u64, u8)]| found.iter().map(|(at, x)| (Position::of_record(*at), vec![*x])).collect();
    let right = Answer { value: Ok(2u64.into()), rows: rows(&[(0, 3), (2, 6)]) };
    let wrong = Answer { value: Ok(2u64.into()), rows: rows(&[(0, 3), (1, 4)]) };
    check(&case.clone().with_reference(move |_| right.clone()), 7, 5).expect("it is right");
    assert_eq!(
        message(&case.with_reference(move |_| wrong.clone())),
        "kernel 'multiples' gives a wrong answer: the reference gives 2 with 2 rows (row 1 is the bytes 04 of record \
         1), and one fold over the whole input gives 2 with 2 rows (row 1 is the bytes 06 of record 2)"
    );
}

#[test]
fn the_message_of_a_broken_law_is_a_sentence() {
    let message = message(&case(Forgetful));
    assert!(
        message.starts_with(
            "kernel 'forgetful' breaks the law that save and restore between any two records change nothing: "
        ),
        "{message}"
    );
    assert!(
        message.contains("one fold over the whole input gives 39, but it gives 38 where extent 0..40 is cut"),
        "{message}"
    );
    for word in ["BrokenLaw {", "Ok(", "Int(", "Striped", "Options"] {
        assert!(!message.contains(word), "{message}");
    }
}

#[test]
fn the_message_of_a_broken_contract_is_a_sentence() {
    let message = message(&case(Idler));
    assert!(message.contains("one fold over one block gives the error"), "{message}");
    assert!(message.contains("took 0 of 40 records"), "{message}");
}
