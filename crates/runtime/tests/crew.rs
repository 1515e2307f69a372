//! Passes that others fold: which failure is told, when enough is known, what is added up, what is refused.
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

/// What one member says: the records it folded, whether its fold had enough at their end, and where it failed.
#[derive(Clone, Default)]
struct Says {
    folded: Vec<Range<u64>>,
    enough: bool,
    failed: Option<u64>,
}

impl Says {
    fn end(&self, kernel: &dyn Kernel, ctx: &Ctx) -> ShardEnd {
        let mut end = ShardEnd::new(ctx.round, 1);
        for range in &self.folded {
            let data: Vec<u8> = range.clone().map(byte).collect();
            let mut fold = kernel.begin(ctx).unwrap();
            fold.update(&Block::new(range.start, data.len() as u64, &data), &mut NoRows).unwrap();
            let piece = Partial::of(ctx.round, ExtentSet::of(range.clone()), saved(&*fold));
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

/// Members that answer in this order.
struct Scripted {
    says: Vec<Says>,
    asked: AtomicUsize,
}

impl Crew for Scripted {
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError> {
        for says in &self.says {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if !take(says.end(&**order.kernel, order.ctx))? {
                break;
            }
        }
        Ok(())
    }

    fn rows<'o>(&'o self, _: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError> {
        panic!("a value was asked for")
    }
}

/// The answer, and how many members were heard.
fn asked(kernel: &str, says: &[Says]) -> (Result<Outcome, RunError>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let crew = Scripted { says: says.to_vec(), asked: 0.into() };
    let outcome = run_on(request(dir.path(), kernel), &crew, &mut Discard, &Control::new());
    (outcome, crew.asked.into_inner())
}

fn both_ways(says: &[Says]) -> [Vec<Says>; 2] {
    [says.to_vec(), says.iter().rev().cloned().collect()]
}

#[test]
fn the_lowest_failure_is_told() {
    let says = [
        Says { folded: only(0..8), failed: Some(40), ..Says::default() },
        Says { folded: only(8..16), failed: Some(20), ..Says::default() },
        Says { folded: only(16..20), failed: Some(30), ..Says::default() },
    ];
    for kernel in ["last", "sum"] {
        for says in both_ways(&says) {
            let (outcome, heard) = asked(kernel, &says);
            assert_eq!(outcome.unwrap_err().to_string(), failed(20).to_string());
            assert_eq!(heard, 3);
        }
    }
}

#[test]
fn a_failure_behind_enough_is_not_told() {
    let enough = Says { folded: only(0..10), enough: true, failed: Some(11) };
    let later = Says { folded: only(12..20), failed: Some(20), ..Says::default() };
    for says in both_ways(&[enough, later]) {
        let Outcome::Done(answer) = asked("first", &says).0.unwrap() else { panic!("it stopped") };
        assert_eq!(answer.value.get("first"), Some(&Value::Int(0)));
    }
}

#[test]
fn a_failure_before_enough_is_told() {
    let enough = Says { folded: only(10..20), enough: true, ..Says::default() };
    let before = Says { failed: Some(0), ..Says::default() };
    for says in both_ways(&[enough, before]) {
        assert_eq!(asked("first", &says).0.unwrap_err().to_string(), failed(0).to_string());
    }
}

#[test]
fn no_more_is_wanted_once_all_that_is_needed_is_there() {
    let enough = Says { folded: only(0..10), enough: true, ..Says::default() };
    let rest = Says { folded: only(10..COUNT), ..Says::default() };
    assert_eq!(asked("first", &[enough.clone(), rest.clone()]).1, 1);
    assert_eq!(asked("first", &[rest, enough]).1, 2);
    // Enough at a place is not all that lies before it.
    let middle = Says { folded: only(10..20), enough: true, ..Says::default() };
    let start = Says { folded: only(0..10), ..Says::default() };
    assert_eq!(asked("first", &[middle, start, Says::default()]).1, 2);
}

#[test]
fn what_is_missing_or_sent_twice_is_no_answer() {
    let half = Says { folded: only(0..32), ..Says::default() };
    let outcome = asked("sum", std::slice::from_ref(&half)).0;
    assert!(matches!(&outcome, Err(RunError::Incomplete { gap }) if *gap == (32..COUNT)), "{outcome:?}");
    let outcome = asked("sum", &[half.clone(), half]).0;
    assert!(matches!(&outcome, Err(RunError::Overlap { at }) if *at == (0..32)), "{outcome:?}");
}

#[test]
fn tallies_add_up() {
    let says: Vec<Says> =
        (0..4).map(|n| Says { folded: only(16 * n..16 * (n + 1)), ..Says::default() }).collect();
    let Outcome::Done(answer) = asked("sum", &says).0.unwrap() else { panic!("it stopped") };
    let report = answer.report;
    assert_eq!((report.bytes_read, report.bytes_moved, report.messages), (COUNT, 40, 4));
    assert_eq!(report.bytes_to_client, 400);
    assert_eq!(report.places[0].records, Some(COUNT));
    assert_eq!(answer.value.get("sum"), Some(&Value::Int((0..COUNT).map(|i| i128::from(byte(i))).sum())));
}

#[test]
fn neighbours_that_do_not_fit_fail_where_they_meet() {
    let input = Input::elements(DType::U8);
    let kernel = catalog::bind("last", &[], &input).unwrap();
    let ctx = Ctx::first(0..COUNT);
    let good = |range| Says { folded: only(range), ..Says::default() }.end(&*kernel, &ctx);
    let damaged = |range| {
        let mut end = ShardEnd::new(0, 1);
        end.partial = Partial::of(0, ExtentSet::of(range), b"no state of any fold".to_vec());
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
