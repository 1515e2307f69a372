//! `gristmill run`.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{Cluster, Location, Planned, Url};
use gristmill_kernel::{ByteOrder, Input, Kernel, MAX_FILE_PARAM, catalog, inline_files};
use gristmill_peers::Question;
use gristmill_runtime::{
    Checkpoint, Control, Options, Outcome, Request, RunError, Selection, resume, run as run_request,
};
use gristmill_store::write_atomic_private;
use gristmill_wire::{InputSpec, Place};
use rustix::fs::{Access, access};

use crate::args::{Element, RunArgs, SelectionArgs};
use crate::commands::run_output::{ByteDestination, Printer};
use crate::commands::{connect_to_read, run_array, run_variable};
use crate::config::Config;
use crate::error::{CliError, INTERRUPTED};
use crate::human;
use crate::interrupt::{clear_on_signal, stop_on_signal};
use crate::progress::Watch;

/// Longest checkpoint that is read, in bytes.
const MAX_CHECKPOINT_BYTES: u64 = 1 << 30;

/// Runs a kernel and prints its answer.
pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let options = Config::load()?.options(&args.tuning);
    if let Some(variable) = run_variable::find(args)? {
        return run_array::run(args, &variable, options);
    }
    let input = input(&args.selection)?;
    if catalog::find(&args.kernel).is_err() && run_variable::is_operation(&args.kernel) {
        return Err(CliError::Usage(format!(
            "'{}' is computed of a variable of a netCDF, HDF5, Zarr, .npy or .csv file; name it with --var",
            args.kernel
        )));
    }
    let params = params(args)?;
    let kernel = catalog::bind(&args.kernel, &params, &input)?;
    let spec = kernel.spec();
    let input = input.for_kernel(&spec);
    let to = ByteDestination::new(args, &spec)?;
    if let Some(path) = &args.checkpoint {
        is_writable(path)?;
    }
    let job = Job::open(args, params, kernel.clone(), input, options)?;
    if args.explain {
        crate::notice(format_args!("{}", job.explanation(to.stays(&job)?)));
    }
    let control = Arc::new(Control::new());
    if args.checkpoint.is_some() || to.is_file() {
        stop_on_signal(&control)?;
    } else {
        clear_on_signal(None)?;
    }
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let mut printer = Printer::new(&*kernel, args.json, job.folds_locally());
    printer.taken = matches!(to, ByteDestination::Stdout);
    if args.checkpoint.is_some() {
        // Rows that were delivered are not printed again.
        printer.room = None;
    }
    let outcome = match &args.checkpoint {
        _ if to.is_file() => to.write(&args.path, job, &mut printer, &control),
        Some(path) if path.exists() => {
            let checkpoint = read_checkpoint(path)?;
            // The rows before the stop and the rows from now on are one output.
            printer.begun = checkpoint.delivered().is_some();
            job.resume(checkpoint, &mut printer, &control).map_err(|error| match error {
                RunError::BadPartial { .. } | RunError::OtherRequest { .. } => {
                    CliError::for_request(path.display(), error)
                }
                other => CliError::for_request(&args.path, other),
            })
        }
        _ => job.run(&mut printer, &control).map_err(|e| CliError::for_request(&args.path, e)),
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
                // Private, because it may have contents of a file that others may not read.
                write_atomic_private(path, &checkpoint.encode())?;
                crate::notice(format_args!(
                    "gristmill: stopped; the same command goes on from {}",
                    path.display()
                ));
            }
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// The input of a kernel: the type and size of records.
pub fn input(args: &SelectionArgs) -> Result<Input, CliError> {
    if let Some(Element { order: Some(ByteOrder::Little), .. }) = args.dtype.filter(|_| args.big_endian) {
        return Err(CliError::Usage(
            "--type is little-endian, which contradicts --big-endian; omit one".into(),
        ));
    }
    let input = match (args.dtype.map(|element| element.dtype), args.record) {
        (Some(dtype), None) => Input::elements(dtype),
        (Some(dtype), Some(record)) => Input::typed_records(dtype, record.0)?,
        (None, Some(record)) => Input::records(record.0)?,
        (None, None) => Input::lines(),
    };
    Ok(input.with_header(args.skip.0))
}

/// The parameters of the kernel. Names of files are replaced by the bytes of the files.
fn params(args: &RunArgs) -> Result<Vec<(String, String)>, CliError> {
    let mut params = args.named.merged(&args.params)?;
    inline_files(catalog::find(&args.kernel)?.params, &mut params, |name| {
        let path = PathBuf::from(name);
        let fail = |source| CliError::File { verb: "read", path: path.clone(), source };
        let length = std::fs::metadata(&path).map_err(fail)?.len();
        if length > MAX_FILE_PARAM as u64 {
            return Err(fail(io::Error::other(format!(
                "a parameter may have at most {MAX_FILE_PARAM} bytes"
            ))));
        }
        std::fs::read(&path).map_err(fail)
    })?;
    Ok(params)
}

/// The identity of a request. A checkpoint resumes only a request with the same identity.
fn identity(args: &RunArgs, mut params: Vec<(String, String)>, file: impl Display) -> String {
    params.sort();
    format!("{} {params:?} {:?} of {file}", args.kernel, args.selection)
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
    Checkpoint::decode(&bytes).map_err(|error| CliError::for_request(path.display(), error))
}

/// Checks that a checkpoint could be written later.
///
/// # Errors
/// Returns an error if its folder cannot be written.
fn is_writable(path: &Path) -> Result<(), CliError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let writable = access(parent, Access::WRITE_OK | Access::EXEC_OK);
    writable.map_err(|error| CliError::File {
        verb: "write a checkpoint to",
        path: path.to_owned(),
        source: error.into(),
    })
}

/// A request, and the place where it runs.
pub(super) enum Job {
    Local(Box<Request>),
    Cluster { cluster: Box<Cluster>, planned: Box<Planned>, options: Box<Options> },
}

impl Job {
    fn open(
        args: &RunArgs,
        params: Vec<(String, String)>,
        kernel: Arc<dyn Kernel>,
        input: Input,
        options: Options,
    ) -> Result<Job, CliError> {
        let path = match &args.path {
            Location::Remote(url) => return Job::on_cluster(args, params, url, input, options),
            Location::Local(path) => path,
        };
        if args.place == Place::Storage {
            let text =
                format!("{} is a file of this machine and is folded here; omit --place", path.display());
            return Err(CliError::Usage(text));
        }
        let mut request = Request::new(kernel, input, gristmill_client::open_with(path, args.check.verify)?);
        request.byte_order = byte_order(&args.selection);
        request.selection = selection(&args.selection);
        request.options = options;
        request.identity = identity(args, params, &args.path);
        Ok(Job::Local(Box::new(request)))
    }

    fn on_cluster(
        args: &RunArgs,
        params: Vec<(String, String)>,
        url: &Url,
        input: Input,
        options: Options,
    ) -> Result<Job, CliError> {
        let place = match (args.checkpoint.is_some(), args.place) {
            (true, Place::Storage) => {
                let text = "--checkpoint keeps the state of folds at the client; omit --place storage";
                return Err(CliError::Usage(text.into()));
            }
            (true, _) => Place::Client,
            (false, place) => place,
        };
        let question = Question {
            kernel: args.kernel.clone(),
            params: params.clone(),
            input: InputSpec::of(&input, byte_order(&args.selection)),
            range: args.selection.range.map(|range| (range.start, range.length)),
            array: None,
        };
        let cluster = connect_to_read(url, args.reach, args.check.verify)?;
        let mut planned = Box::new(cluster.plan(&url.path, question, place, &options)?);
        let file = Url { entry: Some(cluster.entry().to_owned()), path: url.path.clone() };
        planned.identity = identity(args, params, file);
        Ok(Job::Cluster { cluster: Box::new(cluster), planned, options: Box::new(options) })
    }

    pub(super) fn explanation(&self, stays: bool) -> String {
        match self {
            Job::Local(request) => format!("place: client; {}", request.file.place.why),
            Job::Cluster { planned, .. } => human::plan(planned, stays),
        }
    }

    pub(super) fn folds_locally(&self) -> bool {
        match self {
            Job::Local(_) => true,
            Job::Cluster { planned, .. } => planned.plan.place == Place::Client,
        }
    }

    pub(super) fn run(self, rows: &mut Printer, control: &Control) -> Result<Outcome, RunError> {
        match self {
            Job::Local(request) => run_request(*request, rows, control),
            Job::Cluster { cluster, planned, options, .. } => cluster.run(&planned, *options, rows, control),
        }
    }

    fn resume(self, from: Checkpoint, rows: &mut Printer, control: &Control) -> Result<Outcome, RunError> {
        match self {
            Job::Local(request) => resume(*request, from, rows, control),
            Job::Cluster { cluster, planned, options } => {
                cluster.resume(&planned, from, *options, rows, control)
            }
        }
    }
}

fn byte_order(args: &SelectionArgs) -> ByteOrder {
    let named = args.dtype.and_then(|element| element.order).unwrap_or_default();
    if args.big_endian { ByteOrder::Big } else { named }
}
