//! Passes that a crew folds: which failure is reported, when the crew stops, which tallies add up, and what is refused.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_kernel::{Block, Ctx, DType, Input, Kernel, KernelError, NoRows, Value, catalog, saved};
use gristmill_runtime::{
    Control, Crew, Discard, ErrorKind, ExtentSet, FileParts, Outcome, Partial, PassOrder, Request, RunError,
    ShardEnd, TakeShard, UnitSource, run_on,
};

const COUNT: u64 = 64;

fn byte(record: u64) -> u8 {
    (record * 37 % 251) as u8
}

fn request(dir: &Path, kernel: &str) -> Request {
    let path = dir.join("data.u8");
    std::fs::write(&path, (0..COUNT).map(byte).collect::<Vec<_>>()).unwrap();
    let input = Input::elements(DType::U8);
    Request::new(catalog::bind(kernel, &[], &input).unwrap(), input, FileParts::plain(&path).unwrap())
}

fn failed(at: u64) -> RunError {
    RunError::Remote { kind: ErrorKind::Data, message: format!("record {at}") }
}

fn only(range: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(range).collect()
}

/// The answer of one member: the records that it folded, whether its fold had enough at their end, and where it failed.
#[derive(Clone, Default)]
struct MemberAnswer {
    folded: Vec<Range<u64>>,
    enough: bool,
    failed: Option<u64>,
}

impl MemberAnswer {
    fn end(&self, kernel: &dyn Kernel, ctx: &Ctx) -> ShardEnd {
        let mut end = ShardEnd::new(ctx.round, 1);
        for range in &self.folded {
            let data: Vec<u8> = range.clone().map(byte).collect();
            let mut fold = kernel.begin(ctx).unwrap();
            fold.update(&Block::new(range.start, data.len() as u64, &data), &mut NoRows).unwrap();
            let piece = Partial::new(ctx.round, ExtentSet::from_range(range.clone()), saved(&*fold));
            end.partial.join(kernel, ctx, piece, &mut NoRows).unwrap();
            end.tally.read[0] += range.end - range.start;
            end.tally.records[0] += range.end - range.start;
            end.partial.enough_at = self.enough.then_some(range.end);
        }
        end.failure = self.failed.map(|at| (at, failed(at)));
        (end.tally.moved, end.tally.messages, end.tally.sent) = (10, 1, 100);
        end
    }
}

/// A crew whose members answer in this order.
struct ScriptedCrew {
    answers: Vec<MemberAnswer>,
    asked: AtomicUsize,
}

impl Crew for ScriptedCrew {
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError> {
        for answer in &self.answers {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if !take(answer.end(&**order.kernel, order.ctx))? {
                break;
            }
        }
        Ok(())
    }

    fn rows<'o>(&'o self, _: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError> {
        panic!("a value was asked for")
    }
}

/// The outcome, and the number of members that answered.
fn asked(kernel: &str, answers: &[MemberAnswer]) -> (Result<Outcome, RunError>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let crew = ScriptedCrew { answers: answers.to_vec(), asked: 0.into() };
    let outcome = run_on(request(dir.path(), kernel), &crew, &mut Discard, &Control::new());
    (outcome, crew.asked.into_inner())
}

fn both_orders(answers: &[MemberAnswer]) -> [Vec<MemberAnswer>; 2] {
    [answers.to_vec(), answers.iter().rev().cloned().collect()]
}

#[test]
fn the_failure_at_the_lowest_position_is_reported() {
    let answers = [
        MemberAnswer { folded: only(0..8), failed: Some(40), ..MemberAnswer::default() },
        MemberAnswer { folded: only(8..16), failed: Some(20), ..MemberAnswer::default() },
        MemberAnswer { folded: only(16..20), failed: Some(30), ..MemberAnswer::default() },
    ];
    for kernel in ["last", "sum"] {
        for answers in both_orders(&answers) {
            let (outcome, count) = asked(kernel, &answers);
            assert_eq!(outcome.unwrap_err().to_string(), failed(20).to_string());
            assert_eq!(count, 3);
        }
    }
}

#[test]
fn a_failure_behind_enough_is_not_reported() {
    let enough = MemberAnswer { folded: only(0..10), enough: true, failed: Some(11) };
    let later = MemberAnswer { folded: only(12..20), failed: Some(20), ..MemberAnswer::default() };
    for answers in both_orders(&[enough, later]) {
        let Outcome::Done(answer) = asked("first", &answers).0.unwrap() else { panic!("it stopped") };
        assert_eq!(answer.value.get("first"), Some(&Value::Int(0)));
    }
}

#[test]
fn a_failure_before_enough_is_reported() {
    let enough = MemberAnswer { folded: only(10..20), enough: true, ..MemberAnswer::default() };
    let before = MemberAnswer { failed: Some(0), ..MemberAnswer::default() };
    for answers in both_orders(&[enough, before]) {
        assert_eq!(asked("first", &answers).0.unwrap_err().to_string(), failed(0).to_string());
    }
}

#[test]
fn the_crew_stops_once_all_needed_records_are_folded() {
    let enough = MemberAnswer { folded: only(0..10), enough: true, ..MemberAnswer::default() };
    let rest = MemberAnswer { folded: only(10..COUNT), ..MemberAnswer::default() };
    assert_eq!(asked("first", &[enough.clone(), rest.clone()]).1, 1);
    assert_eq!(asked("first", &[rest, enough]).1, 2);
    // A fold that has enough does not cover the records before it.
    let middle = MemberAnswer { folded: only(10..20), enough: true, ..MemberAnswer::default() };
    let start = MemberAnswer { folded: only(0..10), ..MemberAnswer::default() };
    assert_eq!(asked("first", &[middle, start, MemberAnswer::default()]).1, 2);
}

#[test]
fn records_that_are_missing_or_sent_twice_are_an_error() {
    let half = MemberAnswer { folded: only(0..32), ..MemberAnswer::default() };
    let outcome = asked("sum", std::slice::from_ref(&half)).0;
    assert!(matches!(&outcome, Err(RunError::Incomplete { gap }) if *gap == (32..COUNT)), "{outcome:?}");
    let outcome = asked("sum", &[half.clone(), half]).0;
    assert!(matches!(&outcome, Err(RunError::Overlap { at }) if *at == (0..32)), "{outcome:?}");
}

#[test]
fn tallies_add_up() {
    let answers: Vec<MemberAnswer> = (0..4)
        .map(|n| MemberAnswer { folded: only(16 * n..16 * (n + 1)), ..MemberAnswer::default() })
        .collect();
    let Outcome::Done(answer) = asked("sum", &answers).0.unwrap() else { panic!("it stopped") };
    let report = answer.report;
    assert_eq!((report.bytes_read, report.bytes_moved, report.messages), (COUNT, 40, 4));
    assert_eq!(report.bytes_to_client, 400);
    assert_eq!(report.places[0].records, Some(COUNT));
    assert_eq!(answer.value.get("sum"), Some(&Value::Int((0..COUNT).map(|i| i128::from(byte(i))).sum())));
}

#[test]
fn neighbours_that_cannot_be_merged_fail_where_they_meet() {
    let input = Input::elements(DType::U8);
    let kernel = catalog::bind("last", &[], &input).unwrap();
    let ctx = Ctx::first(0..COUNT);
    let good = |range| MemberAnswer { folded: only(range), ..MemberAnswer::default() }.end(&*kernel, &ctx);
    let damaged = |range| {
        let mut end = ShardEnd::new(0, 1);
        end.partial = Partial::new(0, ExtentSet::from_range(range), b"no state of any fold".to_vec());
        end
    };
    let orders: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let mut all = ShardEnd::new(0, 1);
        for n in order {
            let end = match n {
                0 => good(0..10),
                1 => damaged(10..20),
                _ => good(20..COUNT),
            };
            all.join(&*kernel, &ctx, end).unwrap();
        }
        let (at, error) = all.failure.unwrap();
        assert!(matches!(error, RunError::Kernel(KernelError::BadState { .. })), "{error}");
        assert_eq!(at, 10, "{order:?}");
        assert_eq!(all.partial.covered().unwrap().ranges()[0], 0..10, "{order:?}");
    }
}
