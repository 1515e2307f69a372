//! Lanes that go on in other threads: the same answers, also after errors and stops.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use gristmill_kernel::{DType, Input, RowBatch, Value, catalog};
use gristmill_runtime::{
    Checkpoint, Control, FileParts, Options, Outcome, Pace, Request, RunError, resume, run,
};

/// A pace that lowers each lane at its first piece, and lets each lane go on in another thread after every unit.
#[derive(Default)]
struct Restless {
    /// Threads whose lanes were lowered, which they may be only once.
    lowered: Mutex<HashSet<ThreadId>>,
    running: AtomicUsize,
    most: AtomicUsize,
    /// Whether lanes are lowered when they begin.
    at_begin: AtomicBool,
}

impl Restless {
    fn is_new(&self) -> bool {
        !self.lowered.lock().unwrap().contains(&std::thread::current().id())
    }
}

impl Pace for Restless {
    fn begins(&self, _: &dyn Fn() -> bool) -> bool {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(running, Ordering::Relaxed);
        assert!(self.is_new(), "a lane began in a thread of low priority");
        self.at_begin.load(Ordering::Relaxed)
    }

    fn piece(&self) -> u64 {
        7
    }

    fn folded(&self, _: u64, _: &dyn Fn() -> bool) -> bool {
        self.is_new()
    }

    fn lower(&self, _: &dyn Fn() -> bool) {
        assert!(self.lowered.lock().unwrap().insert(std::thread::current().id()));
    }

    fn may_rise(&self) -> bool {
        !self.is_new()
    }

    fn ends(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

const LANES: usize = 3;
const RECORDS: u32 = 1000;

/// A folder with a file of numbers.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..RECORDS).flat_map(|i| (f64::from(i) / 7.0).to_le_bytes()).collect();
    fs::write(dir.path().join("data"), bytes).unwrap();
    dir
}

fn request(dir: &Path, kernel: &str, params: &[(&str, &str)]) -> Request {
    let path = dir.join("data");
    let input = Input::elements(DType::F64);
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let kernel = catalog::bind(kernel, &params, &input).unwrap();
    let mut request = Request::new(kernel, input, FileParts::plain(&path).unwrap());
    request.options =
        Options { lanes: LANES, block_bytes: 64, unit_bytes: 256, row_bytes: 100, ..Options::default() };
    request
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(answer) => answer.value,
        Outcome::Stopped(_) => panic!("it stopped by itself"),
    }
}

#[test]
fn answers_are_the_same_if_lanes_go_on_in_other_threads() {
    let dir = folder();
    let kernels: [(&str, &[(&str, &str)]); 5] =
        [("sum", &[]), ("var", &[]), ("median", &[]), ("lookup", &[("where", "> 20.5")]), ("max", &[])];
    for (kernel, params) in kernels {
        let mut expected_rows = RowBatch::default();
        let expected =
            done(run(request(dir.path(), kernel, params), &mut expected_rows, &Control::new()).unwrap());
        for at_begin in [false, true] {
            let pace = Arc::new(Restless { at_begin: at_begin.into(), ..Restless::default() });
            let control = Control::new().with_pace(pace.clone());
            let mut rows = RowBatch::default();
            let value = done(run(request(dir.path(), kernel, params), &mut rows, &control).unwrap());
            assert_eq!((&value, &rows), (&expected, &expected_rows), "{kernel}");
            let units = RECORDS as usize * 8 / 256;
            let threads = pace.lowered.lock().unwrap().len();
            assert!(threads > units / 2, "{kernel}: {threads} threads for {units} units");
            assert!(pace.most.load(Ordering::Relaxed) <= LANES, "{kernel}");
            assert_eq!(pace.running.load(Ordering::Relaxed), 0, "{kernel}");
        }
    }
}

#[test]
fn a_stopped_request_resumes() {
    let dir = folder();
    let params = [("where", "> 20.5")];
    let mut whole = RowBatch::default();
    let expected = done(run(request(dir.path(), "lookup", &params), &mut whole, &Control::new()).unwrap());
    let mut stops = 0;
    for after in (100..1000).step_by(300) {
        let mut rows = RowBatch::default();
        let restless = |control: Control| control.with_pace(Arc::new(Restless::default()));
        let first =
            run(request(dir.path(), "lookup", &params), &mut rows, &restless(Control::stop_after(after)));
        let value = match first.unwrap() {
            Outcome::Done(answer) => answer.value,
            Outcome::Stopped(checkpoint) => {
                stops += 1;
                let checkpoint = Checkpoint::decode(&checkpoint.encode()).unwrap();
                let request = request(dir.path(), "lookup", &params);
                done(resume(request, checkpoint, &mut rows, &restless(Control::new())).unwrap())
            }
        };
        assert_eq!((&value, &rows), (&expected, &whole), "stopped after {after}");
    }
    assert!(stops > 0);
}

#[test]
fn a_failure_at_a_record_ends_the_request() {
    let dir = folder();
    let path = dir.path().join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8 * 700..8 * 701].copy_from_slice(&f64::NAN.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let params = [("nan", "error")];
    let of = |control: Control| {
        run(request(dir.path(), "median", &params), &mut RowBatch::default(), &control).map(done)
    };
    let plain = of(Control::new()).unwrap_err();
    let restless = of(Control::new().with_pace(Arc::new(Restless::default()))).unwrap_err();
    assert_eq!(restless.to_string(), plain.to_string());
    assert!(plain.to_string().contains("700"), "{plain}");
}

/// A pace that panics at a piece after the lanes went on in other threads.
struct Failing(Restless, AtomicUsize);

impl Pace for Failing {
    fn begins(&self, stopped: &dyn Fn() -> bool) -> bool {
        self.0.begins(stopped)
    }

    fn piece(&self) -> u64 {
        7
    }

    fn folded(&self, positions: u64, stopped: &dyn Fn() -> bool) -> bool {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) < 60, "a pace with a fault");
        self.0.folded(positions, stopped)
    }

    fn lower(&self, stopped: &dyn Fn() -> bool) {
        self.0.lower(stopped);
    }

    fn may_rise(&self) -> bool {
        self.0.may_rise()
    }

    fn ends(&self) {
        self.0.ends();
    }
}

#[test]
fn a_panic_in_a_later_thread_is_an_error() {
    let dir = folder();
    for (kernel, params) in [("sum", &[][..]), ("lookup", &[("where", ">= 0")])] {
        let pace = Arc::new(Failing(Restless::default(), AtomicUsize::new(0)));
        let control = Control::new().with_pace(pace.clone());
        let result = run(request(dir.path(), kernel, params), &mut RowBatch::default(), &control);
        assert!(matches!(result, Err(RunError::Panicked)), "{kernel}: {result:?}");
        assert_eq!(pace.0.running.load(Ordering::Relaxed), 0, "{kernel}");
    }
}
