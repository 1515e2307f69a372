//! `gristmill run`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_kernel::{ByteOrder, Input, Kernel, Numerics, Output, RowBatch, RowShape, Value, catalog};
use gristmill_runtime::{
    Answer, Checkpoint, Control, Outcome, Request, RowOutput, RunError, Selection, resume, run as run_request,
};
use gristmill_store::write_atomic;

use crate::args::{RunArgs, SelectionArgs};
use crate::config::Config;
use crate::error::CliError;
use crate::progress::Watch;
use crate::{human, json};

/// Longest checkpoint that is read, in bytes.
const MAX_CHECKPOINT_BYTES: u64 = 1 << 30;

/// Exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Runs a kernel and prints its answer.
pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let options = Config::load()?.options(&args.tuning);
    let input = input(&args.selection)?;
    let kernel = catalog::bind(&args.kernel, &args.params, &input)?;
    let spec = kernel.spec();
    let file = gristmill_client::open(&args.path)?;
    let mut request = Request::new(kernel.clone(), input, file);
    request.byte_order = if args.selection.big_endian { ByteOrder::Big } else { ByteOrder::Little };
    request.selection = selection(&args.selection);
    request.options = options;
    request.identity = identity(args);

    let control = Arc::new(Control::new());
    if args.checkpoint.is_some() {
        let stop = control.clone();
        let heard = ctrlc::set_handler(move || {
            if stop.stopped() {
                // Asked twice: something does not come to an end by itself.
                std::process::exit(i32::from(INTERRUPTED));
            }
            stop.stop();
        });
        heard
            .map_err(|e| CliError::Usage(format!("cannot listen for Ctrl-C: {e}; leave --checkpoint out")))?;
    }
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let shape = match spec.output {
        Output::Rows(shape) => Some(shape),
        _ => None,
    };
    let mut printer = Printer::new(&*kernel, args.json, shape);
    let outcome = match &args.checkpoint {
        Some(path) if path.exists() => {
            let checkpoint = read_checkpoint(path)?;
            // What was printed before the stop is the beginning of one and the same output.
            printer.begun = checkpoint.delivered().is_some();
            resume(request, checkpoint, &mut printer, &control).map_err(|error| match error {
                RunError::BadPartial { .. } => CliError::of_request(path, error),
                other => CliError::of_request(&args.path, other),
            })
        }
        _ => run_request(request, &mut printer, &control).map_err(|e| CliError::of_request(&args.path, e)),
    };
    drop(watch);
    match outcome? {
        Outcome::Done(answer) => {
            printer.finish(&answer)?;
            if let Some(path) = args.checkpoint.as_ref().filter(|path| path.exists()) {
                let gone = std::fs::remove_file(path);
                gone.map_err(|source| CliError::File { verb: "remove", path: path.clone(), source })?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Stopped(checkpoint) => {
            printer.out.flush().map_err(CliError::Output)?;
            if let Some(path) = &args.checkpoint {
                write_atomic(path, &checkpoint.encode())?;
                eprintln!("gristmill: stopped; the same command goes on from {}", path.display());
            }
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// What the records are.
pub fn input(args: &SelectionArgs) -> Result<Input, CliError> {
    let input = match (args.dtype, args.record) {
        (Some(dtype), None) => Input::elements(dtype),
        (Some(dtype), Some(record)) => Input::typed_records(dtype, record.0)?,
        (None, Some(record)) => Input::records(record.0)?,
        (None, None) => Input::lines(),
    };
    Ok(input.with_header(args.skip.0))
}

/// What is asked, for a checkpoint that must not go on with another question.
fn identity(args: &RunArgs) -> String {
    let mut params = args.params.clone();
    params.sort();
    format!("{} {params:?} {:?} of {}", args.kernel, args.selection, args.path.display())
}

fn selection(args: &SelectionArgs) -> Selection {
    Selection { skip: args.skip.0, range: args.range.map(|range| (range.start, range.length)) }
}

fn read_checkpoint(path: &Path) -> Result<Checkpoint, CliError> {
    let fail = |source| CliError::File { verb: "read", path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > MAX_CHECKPOINT_BYTES {
        return Err(fail(io::Error::other(format!("it is longer than {MAX_CHECKPOINT_BYTES} bytes"))));
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    Checkpoint::decode(&bytes).map_err(|error| CliError::of_request(path, error))
}

/// Prints rows as they come and then the value.
struct Printer {
    out: BufWriter<io::Stdout>,
    kernel: &'static str,
    numerics: Numerics,
    json: bool,
    shape: Option<RowShape>,
    /// A row has been printed.
    begun: bool,
}

impl Printer {
    fn new(kernel: &dyn Kernel, json: bool, shape: Option<RowShape>) -> Printer {
        let spec = kernel.spec();
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Printer { out, kernel: spec.name, numerics: spec.numerics, json, shape, begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        let (kernel, numerics) = (self.kernel, self.numerics);
        write!(self.out, "{{\"kernel\":\"{kernel}\",\"numerics\":\"{numerics}\",\"result\":{{\"rows\":[")
    }

    fn finish(mut self, answer: &Answer) -> Result<(), CliError> {
        self.answer(answer).and_then(|()| self.out.flush()).map_err(CliError::Output)?;
        if !self.json {
            eprintln!("{}", human::report(&answer.report, self.numerics));
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let report = json::report(&answer.report);
        match (self.json, self.shape, &answer.value) {
            (false, None, value) => human::value(&mut self.out, value),
            (false, Some(_), value) => {
                // Rows are the answer; what there is beside them goes where it does not mix with them.
                self.out.flush()?;
                human::value(&mut io::stderr(), value)
            }
            (true, None, value) => {
                let (kernel, numerics) = (self.kernel, self.numerics);
                let result = json::value(value);
                writeln!(
                    self.out,
                    "{{\"kernel\":\"{kernel}\",\"numerics\":\"{numerics}\",\"result\":{result},\"report\":{report}}}"
                )
            }
            (true, Some(_), value) => {
                if !self.begun {
                    self.begin()?;
                }
                write!(self.out, "]")?;
                if let Value::Map(entries) = value {
                    for (key, value) in entries {
                        write!(self.out, ",\"{key}\":{}", json::value(value))?;
                    }
                }
                writeln!(self.out, "}},\"report\":{report}}}")
            }
        }
    }
}

impl RowOutput for Printer {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        let Some(shape) = self.shape else { return Ok(()) };
        for (at, row) in batch.iter() {
            if !self.json {
                human::row(&mut self.out, &shape, at, row)?;
            } else {
                if self.begun {
                    write!(self.out, ",")?;
                } else {
                    self.begin()?;
                }
                write!(self.out, "{}", json::row(&shape, at, row))?;
            }
            self.begun = true;
        }
        Ok(())
    }
}
