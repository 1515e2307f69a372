//! Requests over plain files: stops and resumption, files that change, and rows that cannot be written.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_kernel::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, RowBatch, Sink, Spec, Step, Value, catalog,
};
use gristmill_runtime::{
    Checkpoint, Control, Discard, FileParts, MAX_LANES, Options, Outcome, Request, RowOutput, RunError,
    Selection, resume, run,
};

fn write(dir: &Path, count: u32) -> PathBuf {
    let path = dir.join("data.f64");
    let bytes: Vec<u8> = (0..count).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    fs::write(&path, bytes).unwrap();
    path
}

fn request(path: &Path, kernel: &str, params: &[(&str, &str)]) -> Request {
    let input = Input::elements(DType::F64);
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let kernel = catalog::bind(kernel, &params, &input).unwrap();
    let mut request = Request::new(kernel, input, FileParts::plain(path).unwrap());
    request.options =
        Options { lanes: 3, block_bytes: 64, unit_bytes: 256, row_bytes: 100, ..Options::default() };
    request
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(answer) => answer.value,
        Outcome::Stopped(_) => panic!("it stopped by itself"),
    }
}

#[test]
fn a_request_that_stops_anywhere_resumes_to_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 1000);
    let params = [("where", "> 100.5")];
    let mut whole = RowBatch::default();
    let expected = done(run(request(&path, "lookup", &params), &mut whole, &Control::new()).unwrap());
    assert_eq!(whole.len(), 899);
    let mut stops = 0;
    for after in (0..1000).step_by(90) {
        let mut rows = RowBatch::default();
        let first = run(request(&path, "lookup", &params), &mut rows, &Control::stop_after(after)).unwrap();
        let value = match first {
            Outcome::Done(answer) => answer.value,
            Outcome::Stopped(checkpoint) => {
                stops += 1;
                assert!(rows.len() < whole.len());
                assert_eq!(checkpoint.delivered(), rows.last());
                let checkpoint = Checkpoint::decode(&checkpoint.encode()).unwrap();
                done(
                    resume(request(&path, "lookup", &params), checkpoint, &mut rows, &Control::new())
                        .unwrap(),
                )
            }
        };
        assert_eq!((&value, &rows), (&expected, &whole), "stopped after {after}");
    }
    assert!(stops > 5, "{stops} stops");
}

#[test]
fn a_checkpoint_fits_only_its_own_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 1000);
    let Outcome::Stopped(checkpoint) =
        run(request(&path, "sum", &[]), &mut Discard, &Control::stop_after(10)).unwrap()
    else {
        panic!("it did not stop")
    };
    let other = resume(request(&path, "mean", &[]), checkpoint.clone(), &mut Discard, &Control::new());
    assert!(matches!(other, Err(RunError::OtherRequest { .. })), "{other:?}");
    let mut less = request(&path, "sum", &[]);
    less.selection = Selection { skip: 8, range: None };
    let other = resume(less, checkpoint.clone(), &mut Discard, &Control::new());
    assert!(matches!(other, Err(RunError::OtherRequest { .. })), "{other:?}");
    // The file gets other bytes of the same length.
    fs::write(&path, vec![1u8; 8000]).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    let other = resume(request(&path, "sum", &[]), checkpoint, &mut Discard, &Control::new());
    assert!(matches!(other, Err(RunError::ChangedSince { .. })), "{other:?}");
}

/// An output that changes the file when the first rows arrive.
struct ChangeFile<'a>(Option<Box<dyn FnOnce() + 'a>>);

impl RowOutput for ChangeFile<'_> {
    fn rows(&mut self, _: &RowBatch) -> io::Result<()> {
        if let Some(change) = self.0.take() {
            change();
        }
        Ok(())
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 100_000);
    let cut = || fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let result = run(
        request(&path, "lookup", &[("where", ">= 0")]),
        &mut ChangeFile(Some(Box::new(cut))),
        &Control::new(),
    );
    assert!(matches!(result, Err(RunError::Truncated { length: 800_000, .. })), "{result:?}");
}

#[test]
fn a_file_that_is_written_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 1000);
    let grow = || {
        use std::io::Write;
        fs::File::options().append(true).open(&path).unwrap().write_all(&[0; 8]).unwrap();
    };
    let result = run(
        request(&path, "lookup", &[("where", ">= 0")]),
        &mut ChangeFile(Some(Box::new(grow))),
        &Control::new(),
    );
    assert!(matches!(result, Err(RunError::Changed { .. })), "{result:?}");
}

#[test]
fn a_line_is_too_long_wherever_units_and_blocks_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    fs::write(&path, ["short", "a line of 21 letters", "short", "end"].join("\n")).unwrap();
    let input = Input::lines();
    for count_only in ["true", "false"] {
        let params =
            [("pattern".to_owned(), "o".to_owned()), ("count_only".to_owned(), count_only.to_owned())];
        let kernel = catalog::bind("grep", &params, &input).unwrap();
        for unit_bytes in 1..40 {
            for max_record in [20, 21] {
                let mut request = Request::new(kernel.clone(), input, FileParts::plain(&path).unwrap());
                request.options = Options { unit_bytes, block_bytes: 7, max_record, ..request.options };
                let result = run(request, &mut Discard, &Control::new());
                match result {
                    Err(RunError::Kernel(KernelError::LineTooLong { .. })) => assert_eq!(max_record, 20),
                    result => assert_eq!(
                        (max_record, done(result.unwrap()).get("count")),
                        (21, Some(&Value::Int(3)))
                    ),
                }
            }
        }
    }
}

/// An output that takes no rows until all records are folded.
struct SlowOutput<'a>(&'a Control);

impl RowOutput for SlowOutput<'_> {
    fn rows(&mut self, _: &RowBatch) -> io::Result<()> {
        let begun = Instant::now();
        while self.0.progress().0 < self.0.progress().1 {
            if begun.elapsed() > Duration::from_secs(20) {
                return Err(io::Error::other("the lanes wait for this output"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[test]
fn lanes_whose_rows_are_all_their_records_do_not_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 96);
    let request = request(&path, "lookup", &[("where", ">= 0")]);
    assert_eq!((request.options.lanes as u64, request.options.unit_bytes), (3, 96 * 8 / 3));
    let control = Control::new();
    done(run(request, &mut SlowOutput(&control), &control).unwrap());
}

/// An output on a full disk.
struct FullDisk;

impl RowOutput for FullDisk {
    fn rows(&mut self, _: &RowBatch) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
}

#[test]
fn rows_that_cannot_be_written_end_the_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 100_000);
    let result = run(request(&path, "lookup", &[("where", ">= 0")]), &mut FullDisk, &Control::new());
    assert!(
        matches!(&result, Err(RunError::Rows(e)) if e.kind() == io::ErrorKind::StorageFull),
        "{result:?}"
    );
}

struct PanickingKernel(gristmill_kernel::Output);
struct PanickingFold;

impl Kernel for PanickingKernel {
    fn spec(&self) -> Spec {
        Spec { output: self.0, ..Spec::fixed("panicking", 8) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(PanickingFold))
    }
    fn advance(&self, _: &Ctx, _: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::Int(0)))
    }
}

impl Fold for PanickingFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        assert!(block.first() < 500, "a kernel with a fault");
        Ok(Step::Took(block.count()))
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn merge(&mut self, _: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        Ok(())
    }
}

#[test]
fn a_kernel_that_panics_is_an_error_of_its_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 1000);
    for output in [gristmill_kernel::Output::Value, gristmill_kernel::Output::Bytes] {
        let mut request = request(&path, "sum", &[]);
        request.kernel = Arc::new(PanickingKernel(output));
        let result = run(request, &mut Discard, &Control::new());
        assert!(matches!(result, Err(RunError::Panicked)), "{result:?}");
    }
}

#[test]
fn first_reads_little_of_a_long_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 1_000_000);
    let Outcome::Done(answer) = run(request(&path, "first", &[]), &mut Discard, &Control::new()).unwrap()
    else {
        panic!("it stopped")
    };
    assert_eq!(answer.value.get("first"), Some(&Value::Float(0.0)));
    // Each of the three lanes may be one unit ahead.
    assert!(answer.report.bytes_read <= 3 * 256, "{} bytes", answer.report.bytes_read);
}

#[test]
fn what_is_behind_enough_never_decides() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    // Short lines, then one that is too long for the bound.
    fs::write(&path, ["short\n".repeat(100), "x".repeat(3000)].concat()).unwrap();
    for _ in 0..200 {
        let kernel = catalog::bind("first", &[], &Input::lines()).unwrap();
        let mut request = Request::new(kernel, Input::lines(), FileParts::plain(&path).unwrap());
        request.options =
            Options { lanes: 4, block_bytes: 64, unit_bytes: 128, max_record: 200, ..request.options };
        let value = done(run(request, &mut Discard, &Control::new()).unwrap());
        assert_eq!(value.get("first"), Some(&Value::Text("short".into())));
    }
}

#[test]
fn the_first_failure_in_the_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.f64");
    let values = (0..2000).map(|i| if i >= 700 && i % 100 == 0 { f64::NAN } else { 1.0 });
    fs::write(&path, values.flat_map(f64::to_le_bytes).collect::<Vec<_>>()).unwrap();
    for _ in 0..100 {
        let result = run(request(&path, "sum", &[("nan", "error")]), &mut Discard, &Control::new());
        let Err(RunError::Kernel(KernelError::NotANumber { index })) = result else { panic!("{result:?}") };
        assert_eq!(index, 700);
    }
}

#[test]
fn a_kernel_bound_to_other_records_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 10);
    let mut request = request(&path, "sum", &[]);
    request.input = Input::elements(DType::F32);
    let result = run(request, &mut Discard, &Control::new());
    assert!(matches!(result, Err(RunError::Kernel(KernelError::Contract { .. }))), "{result:?}");
}

#[test]
fn a_file_that_only_says_that_it_is_empty_is_refused() {
    let result = FileParts::plain(Path::new("/proc/self/status"));
    assert!(matches!(result, Err(RunError::Open { usage: true, .. })));
}

#[test]
fn the_number_of_lanes_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), 10);
    for lanes in [0, MAX_LANES + 1] {
        let mut request = request(&path, "sum", &[]);
        request.options.lanes = lanes;
        let result = run(request, &mut Discard, &Control::new());
        assert!(matches!(result, Err(RunError::Lanes { .. })), "{result:?}");
    }
}
