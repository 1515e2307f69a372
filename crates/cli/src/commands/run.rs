//! `gristmill run`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{Cluster, Location, Planned, Url};
use gristmill_kernel::{
    ByteOrder, Input, Kernel, Numerics, Output, RowBatch, RowShape, Spec, Value, catalog,
};
use gristmill_peers::Question;
use gristmill_runtime::{
    Answer, Checkpoint, Control, Options, Outcome, Request, RowOutput, RunError, Selection, resume,
    run as run_request,
};
use gristmill_store::write_atomic;
use gristmill_wire::{InputSpec, Place};

use crate::args::{RunArgs, SelectionArgs};
use crate::commands::connect;
use crate::config::Config;
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::stop_on_signal;
use crate::progress::Watch;
use crate::{human, json};

/// Longest checkpoint that is read, in bytes.
const MAX_CHECKPOINT_BYTES: u64 = 1 << 30;

/// Runs a kernel and prints its answer.
pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let options = Config::load()?.options(&args.tuning);
    let input = input(&args.selection)?;
    let kernel = catalog::bind(&args.kernel, &args.params, &input)?;
    let spec = kernel.spec();
    let job = Job::open(args, kernel.clone(), input, options)?;
    if args.explain {
        eprintln!("{}", job.explanation());
    }
    let control = Arc::new(Control::new());
    if args.checkpoint.is_some() {
        stop_on_signal(&control)?;
    }
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let shape = match spec.output {
        Output::Rows(shape) => Some(shape),
        _ => None,
    };
    let mut printer = Printer::new(&*kernel, args.json, shape, job.folds_here());
    let outcome = match &args.checkpoint {
        Some(path) if path.exists() => {
            let checkpoint = read_checkpoint(path)?;
            // What was printed before the stop is the beginning of one and the same output.
            printer.begun = checkpoint.delivered().is_some();
            job.resume(checkpoint, &mut printer, &control).map_err(|error| match error {
                RunError::BadPartial { .. } => CliError::of_request(path.display(), error),
                other => CliError::of_request(&args.path, other),
            })
        }
        _ => job.run(&mut printer, &control).map_err(|e| CliError::of_request(&args.path, e)),
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
    format!("{} {params:?} {:?} of {}", args.kernel, args.selection, args.path)
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
    Checkpoint::decode(&bytes).map_err(|error| CliError::of_request(path.display(), error))
}

/// What is to be run, and where.
enum Job {
    Here(Box<Request>),
    Cluster { cluster: Cluster, planned: Box<Planned>, options: Options, identity: String },
}

impl Job {
    fn open(
        args: &RunArgs,
        kernel: Arc<dyn Kernel>,
        input: Input,
        options: Options,
    ) -> Result<Job, CliError> {
        let path = match &args.path {
            Location::Remote(url) => return Job::on_cluster(args, url, input, options),
            Location::Local(path) => path,
        };
        if args.place == Place::Storage {
            let text =
                format!("{} is a file of this machine and is folded here; leave --place out", path.display());
            return Err(CliError::Usage(text));
        }
        let mut request = Request::new(kernel, input, gristmill_client::open(path)?);
        request.byte_order = byte_order(&args.selection);
        request.selection = selection(&args.selection);
        request.options = options;
        request.identity = identity(args);
        Ok(Job::Here(Box::new(request)))
    }

    fn on_cluster(args: &RunArgs, url: &Url, input: Input, options: Options) -> Result<Job, CliError> {
        let place = match (args.checkpoint.is_some(), args.place) {
            (true, Place::Storage) => {
                let text = "--checkpoint keeps the state of folds at the client; leave --place storage out";
                return Err(CliError::Usage(text.into()));
            }
            (true, _) => Place::Client,
            (false, place) => place,
        };
        let question = Question {
            kernel: args.kernel.clone(),
            params: args.params.clone(),
            input: InputSpec::of(&input, byte_order(&args.selection)),
            range: args.selection.range.map(|range| (range.start, range.length)),
        };
        let cluster = connect(url)?;
        let planned = Box::new(cluster.plan(&url.path, question, place)?);
        Ok(Job::Cluster { cluster, planned, options, identity: identity(args) })
    }

    fn explanation(&self) -> String {
        match self {
            Job::Here(request) => format!("place: client; {}", request.file.place.why),
            Job::Cluster { planned, .. } => human::plan(planned),
        }
    }

    fn folds_here(&self) -> bool {
        match self {
            Job::Here(_) => true,
            Job::Cluster { planned, .. } => planned.plan.place == Place::Client,
        }
    }

    fn run(self, rows: &mut Printer, control: &Control) -> Result<Outcome, RunError> {
        match self {
            Job::Here(request) => run_request(*request, rows, control),
            Job::Cluster { cluster, planned, options, .. } => cluster.run(&planned, options, rows, control),
        }
    }

    fn resume(self, from: Checkpoint, rows: &mut Printer, control: &Control) -> Result<Outcome, RunError> {
        match self {
            Job::Here(request) => resume(*request, from, rows, control),
            Job::Cluster { cluster, planned, options, identity } => {
                cluster.resume(&planned, identity, from, options, rows, control)
            }
        }
    }
}

fn byte_order(args: &SelectionArgs) -> ByteOrder {
    if args.big_endian { ByteOrder::Big } else { ByteOrder::Little }
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
    /// Lanes of this process folded, and not those of storage nodes.
    folded_here: bool,
}

impl Printer {
    fn new(kernel: &dyn Kernel, json: bool, shape: Option<RowShape>, folded_here: bool) -> Printer {
        let Spec { name: kernel, numerics, .. } = kernel.spec();
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Printer { out, kernel, numerics, json, shape, begun: false, folded_here }
    }

    fn begin(&mut self) -> io::Result<()> {
        let (kernel, numerics) = (self.kernel, self.numerics);
        write!(self.out, "{{\"kernel\":\"{kernel}\",\"numerics\":\"{numerics}\",\"result\":{{\"rows\":[")
    }

    fn finish(mut self, answer: &Answer) -> Result<(), CliError> {
        self.answer(answer).and_then(|()| self.out.flush()).map_err(CliError::Output)?;
        if !self.json {
            eprintln!("{}", human::report(&answer.report, self.folded_here, self.numerics));
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let report = json::report(&answer.report, self.folded_here);
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
