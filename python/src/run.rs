//! Running a kernel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill_client::{Cluster, growing_records};
use gristmill_kernel::{Input, MAX_FILE_PARAM, ParamKind, Value, catalog, inline_files};
use gristmill_peers::{Files, Question};
use gristmill_runtime::{Control, ErrorKind, Options, Outcome, Report, Request, Selection};
use gristmill_wire::{FoldPlace, InputSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::connection::{Connection, cluster_of, here};
use crate::convert;
use crate::errors::Failure;
use crate::rows::Collected;
use crate::watch::{Progress, Watch, Watched, named};

/// The arguments of `gristmill.run`, as the Python side passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct KernelRequest {
    kernel: String,
    params: Vec<(String, String)>,
    r#type: Option<String>,
    record: Option<u64>,
    skip: u64,
    big_endian: bool,
    range: Option<(u64, Option<u64>)>,
    place: String,
    lanes: Option<usize>,
    max_record: Option<u64>,
    timeout: Option<f64>,
    growing: bool,
}

/// `(result, rows or None, report, numerics)`.
type PyAnswer<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Bound<'py, PyDict>, String);

/// An answer before its conversion to Python values.
struct Found {
    value: Value,
    rows: Collected,
    report: Report,
    folded_here: bool,
    numerics: String,
}

/// Names of a kernel's parameters, and whether each may be a file.
#[pyfunction]
pub fn parameters(kernel: &str) -> PyResult<Vec<(&'static str, bool)>> {
    let declaration = catalog::find(kernel).map_err(Failure::from)?;
    let may_be_file = |kind| matches!(kind, ParamKind::WordOrFile(_));
    Ok(declaration.params.iter().map(|param| (param.name, may_be_file(param.kind))).collect())
}

/// Runs a kernel.
#[pyfunction]
#[pyo3(signature = (connection, path, asked, watch=None))]
pub fn run<'py>(
    py: Python<'py>,
    connection: Option<&Bound<'py, Connection>>,
    path: PathBuf,
    asked: KernelRequest,
    watch: Option<&Bound<'py, Watch>>,
) -> PyResult<PyAnswer<'py>> {
    let place = place(&asked.place)?;
    let limit = limit(asked.timeout)?;
    let mut options = Options::default();
    options.lanes = asked.lanes.unwrap_or(options.lanes);
    options.max_record = asked.max_record.unwrap_or(options.max_record);
    let mut params = asked.params;
    inline_files(catalog::find(&asked.kernel).map_err(Failure::from)?.params, &mut params, file)?;
    let question = Question {
        kernel: asked.kernel,
        params,
        input: InputSpec {
            dtype: asked.r#type,
            record: asked.record,
            skip: asked.skip,
            big_endian: asked.big_endian,
        },
        range: asked.range,
        array: None,
    };
    let cluster = cluster_of(connection)?;
    let growing = asked.growing;
    let watched = Watched::by(py, watch);
    let (control, told) = (watched.control.clone(), watched.progress.clone());
    let found = watched.wait(limit, move || {
        let job = Job { question, options, control, told, growing };
        match cluster {
            Some(cluster) => job.on_cluster(&cluster, &path, place),
            None => job.here(&path, place),
        }
    })?;
    let rows = found.rows.into_python(py)?;
    let report = convert::report(py, &found.report, found.folded_here)?;
    Ok((convert::value(py, &found.value)?, rows, report, found.numerics))
}

/// The bytes of a file that is a parameter.
fn file(name: &str) -> Result<Vec<u8>, Failure> {
    let refuse = |why: String| {
        Failure::usage(format!("the parameter names the file {name}, which cannot be read: {why}"))
    };
    let length = std::fs::metadata(name).map_err(|e| refuse(e.to_string()))?.len();
    if length > MAX_FILE_PARAM as u64 {
        return Err(refuse(format!("it may have at most {MAX_FILE_PARAM} bytes")));
    }
    std::fs::read(name).map_err(|e| refuse(e.to_string()))
}

/// The time limit of a request.
pub fn limit(timeout: Option<f64>) -> Result<Option<Duration>, Failure> {
    let Some(seconds) = timeout else { return Ok(None) };
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
        Failure::usage(format!("timeout={seconds} is no number of seconds; give 10 or 0.5, or None"))
    })
}

/// The place where a request runs.
pub fn place(text: &str) -> Result<FoldPlace, Failure> {
    match text {
        "storage" => Ok(FoldPlace::Storage),
        "client" => Ok(FoldPlace::Client),
        "osd" => Ok(FoldPlace::Osd),
        "auto" => Ok(FoldPlace::Auto),
        _ => Err(Failure::usage(format!(
            "place={text:?} is no place; use 'storage', 'client', 'osd' or 'auto'"
        ))),
    }
}

struct Job {
    question: Question,
    options: Options,
    control: Arc<Control>,
    told: Arc<Progress>,
    /// Whether programs may append to the file meanwhile.
    growing: bool,
}

impl Job {
    fn on_cluster(
        self,
        cluster: &Cluster,
        path: &std::path::Path,
        place: FoldPlace,
    ) -> Result<Found, Failure> {
        let (mut rows, numerics) = self.output()?;
        let (path, question) = (crate::files::remote(path)?, self.question.clone());
        let planned = match self.growing {
            true => {
                let files = Files::from(&cluster.open_growing(&path, growing_records(&self.input()?))?);
                cluster.plan_files(files, question, place, &self.options)?
            }
            false => cluster.plan(&path, question, place, &self.options)?,
        };
        self.told.begins(named(planned.plan.place), selected(&self.question, planned.files.map().length));
        let outcome = cluster.run(&planned, self.options, &mut rows, &self.control)?;
        found(outcome, rows, planned.plan.place == FoldPlace::Client, numerics)
    }

    fn here(self, path: &std::path::Path, place: FoldPlace) -> Result<Found, Failure> {
        if matches!(place, FoldPlace::Storage | FoldPlace::Osd) {
            let text =
                format!("{} is a file of this machine and is folded here; leave place out", path.display());
            return Err(Failure::usage(text));
        }
        let (mut rows, numerics) = self.output()?;
        let (input, byte_order) = self.question.input.input()?;
        let kernel = self.question.bind()?;
        let input = input.for_kernel(&kernel.spec());
        let file = match self.growing {
            true => gristmill_client::open_growing(&here(path)?, growing_records(&input))?,
            false => gristmill_client::open_file(&here(path)?, false)?,
        };
        let mut request = Request::new(kernel, input, file);
        request.byte_order = byte_order;
        request.selection = Selection { skip: self.question.input.skip, range: self.question.range };
        request.options = self.options;
        self.told.begins("client", selected(&self.question, request.file.length));
        let outcome = gristmill_runtime::run(request, &mut rows, &self.control)?;
        found(outcome, rows, true, numerics)
    }

    /// The records that the kernel reads.
    fn input(&self) -> Result<Input, Failure> {
        Ok(self.question.input.input()?.0.for_kernel(&self.question.bind()?.spec()))
    }

    /// The collector of the rows, and the guarantee about the bits.
    fn output(&self) -> Result<(Collected, String), Failure> {
        let spec = self.question.bind()?.spec();
        Ok((Collected::new(spec.output), spec.numerics.to_string()))
    }
}

/// The approximate number of bytes that a question reads of a file of this length.
fn selected(question: &Question, length: u64) -> u64 {
    let all = length.saturating_sub(question.input.skip);
    match question.range {
        None => all,
        Some((start, most)) => all.saturating_sub(start).min(most.unwrap_or(u64::MAX)),
    }
}

fn found(outcome: Outcome, rows: Collected, folded_here: bool, numerics: String) -> Result<Found, Failure> {
    match outcome {
        Outcome::Done(answer) => {
            Ok(Found { value: answer.value, report: answer.report, rows, folded_here, numerics })
        }
        Outcome::Stopped(_) => {
            Err(Failure::new(ErrorKind::Failed, "the request was given up before its answer"))
        }
    }
}
