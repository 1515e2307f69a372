//! A request that `gristmill run` was asked for, and the place where it runs.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_client::{Cluster, Planned, Url, growing_records};
use gristmill_kernel::{ByteOrder, Input, Kernel, MAX_FILE_PARAM, catalog, inline_files};
use gristmill_peers::{Files, Question};
use gristmill_runtime::{
    Checkpoint, Control, Options, Outcome, Request, RowOutput, RunError, Selection, resume,
    run as run_request,
};
use gristmill_wire::{FoldPlace, InputSpec};

use crate::args::{Element, RunArgs, SelectionArgs};
use crate::commands::connect_to_read;
use crate::error::CliError;
use crate::human;

/// A request, and the place where it runs.
pub(super) enum Job {
    Local(Box<Request>),
    Cluster { cluster: Box<Cluster>, planned: Box<Planned>, options: Box<Options> },
}

impl Job {
    pub fn open(
        args: &RunArgs,
        params: Vec<(String, String)>,
        kernel: Arc<dyn Kernel>,
        input: Input,
        options: Options,
    ) -> Result<Job, CliError> {
        if let Some(url) = args.path.cluster() {
            return Job::on_cluster(args, params, url, input, options);
        }
        refuse_storage(args)?;
        let file = match args.growing {
            true => gristmill_client::open_growing(&args.path, growing_records(&input))?,
            false => gristmill_client::open_file(&args.path, args.check.verify)?,
        };
        let mut request = Request::new(kernel, input, file);
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
            (true, FoldPlace::Storage | FoldPlace::Osd) => {
                let text = "--checkpoint keeps the state of folds at the client; omit --place";
                return Err(CliError::Usage(text.into()));
            }
            (true, _) => FoldPlace::Client,
            (false, place) => place,
        };
        let question = Question {
            kernel: args.kernel.clone(),
            params: params.clone(),
            input: InputSpec::new(&input, byte_order(&args.selection)),
            range: args.selection.range.map(|range| (range.start, range.length)),
            array: None,
        };
        let cluster = connect_to_read(url, args.reach, args.check.verify)?;
        let planned = match args.growing {
            true => {
                let files = Files::from(&cluster.open_growing(&url.path, growing_records(&input))?);
                cluster.plan_files(files, question, place, &options)?
            }
            false => cluster.plan(&url.path, question, place, &options)?,
        };
        let mut planned = Box::new(planned);
        let file = Url { entry: Some(cluster.entry().to_owned()), path: url.path.clone() };
        planned.identity = identity(args, params, file);
        Ok(Job::Cluster { cluster: Box::new(cluster), planned, options: Box::new(options) })
    }

    pub fn explanation(&self, stays: bool) -> String {
        match self {
            Job::Local(request) => format!("place: client; {}", request.file.place.why),
            Job::Cluster { planned, .. } => human::plan(planned, stays),
        }
    }

    pub fn folds_locally(&self) -> bool {
        match self {
            Job::Local(_) => true,
            Job::Cluster { planned, .. } => planned.plan.place == FoldPlace::Client,
        }
    }

    pub fn run(self, rows: &mut dyn RowOutput, control: &Control) -> Result<Outcome, RunError> {
        match self {
            Job::Local(request) => run_request(*request, rows, control),
            Job::Cluster { cluster, planned, options, .. } => cluster.run(&planned, *options, rows, control),
        }
    }

    pub fn resume(
        self,
        from: Checkpoint,
        rows: &mut dyn RowOutput,
        control: &Control,
    ) -> Result<Outcome, RunError> {
        match self {
            Job::Local(request) => resume(*request, from, rows, control),
            Job::Cluster { cluster, planned, options } => {
                cluster.resume(&planned, from, *options, rows, control)
            }
        }
    }
}

/// Refuses `--place storage` and `--place osd` for a file that no storage node has.
///
/// # Errors
/// The error is [`CliError::Usage`].
pub(super) fn refuse_storage(args: &RunArgs) -> Result<(), CliError> {
    if !matches!(args.place, FoldPlace::Storage | FoldPlace::Osd) {
        return Ok(());
    }
    let which = if args.path.local().is_some() { "of this machine" } else { "of no cluster" };
    Err(CliError::Usage(format!("{} is a file {which} and is folded here; omit --place", args.path)))
}

/// The input of a kernel: the type and size of records.
pub(super) fn input(args: &SelectionArgs) -> Result<Input, CliError> {
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
pub(super) fn params(args: &RunArgs) -> Result<Vec<(String, String)>, CliError> {
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

fn byte_order(args: &SelectionArgs) -> ByteOrder {
    let named = args.dtype.and_then(|element| element.order).unwrap_or_default();
    if args.big_endian { ByteOrder::Big } else { named }
}
