//! Files with variables: what is in them, reductions of variables, and the elements of hyperslabs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_array::{Meaning, Selection, Take};
use gristmill_client::{
    Cluster, Folder, Here, ReductionPlan, RemoteDataset, empty_file, joined_files, joined_parts, meaning_of,
    plan_reduction, read_slab,
};
use gristmill_format::{Attribute, AttributeValue, ChunkTable, Dataset as Parsed, FormatError, Variable};
use gristmill_kernel::{ArrayType, Kernel, Value};
use gristmill_peers::Files;
use gristmill_runtime::{Control, FileParts, Options, Outcome, Report, Request, combine_versions, run};
use gristmill_wire::FoldPlace;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::connection::{Connection, cluster_of, here};
use crate::convert;
use crate::errors::Failure;
use crate::files::{given_up, remote};
use crate::fork_guard::ForkGuard;
use crate::joined_files::JoinedFiles;
use crate::reduction::Reduce;
use crate::rows::Collected;
use crate::variable_location::VariableLocation;
use crate::wait::wait;
use crate::watch::{Progress, Watch, Watched, named};

/// Elements that are decoded at a time.
const DECODED_AT_ONCE: usize = 1 << 16;

/// The selection of an axis: one index, or start, stop and step, which is at least 1.
#[derive(FromPyObject)]
pub enum Taken {
    At(i64),
    Slice(i64, i64, u64),
}

/// The selection of all axes.
pub fn selection(taken: Vec<Taken>) -> Selection {
    let take = |one| match one {
        Taken::At(at) => Take::At(at),
        Taken::Slice(start, stop, step) => Take::Slice { start: Some(start), stop: Some(stop), step },
    };
    Selection(taken.into_iter().map(take).collect())
}

/// A file, or a folder of Zarr, whose description has been read.
#[pyclass(frozen, module = "gristmill._gristmill")]
pub struct Dataset {
    found: ForkGuard<Arc<Found>>,
}

pub struct Found {
    pub parsed: Arc<Parsed>,
    pub place: Where,
}

pub enum Where {
    File(FileParts),
    Folder(Folder),
    Cluster { cluster: Arc<Cluster>, remote: Box<RemoteDataset>, path: String },
    Joined(JoinedFiles),
}

/// The files of a request.
enum Asked<'a> {
    Here(FileParts),
    Cluster(&'a Arc<Cluster>, Files),
}

impl Found {
    fn open(cluster: Option<Arc<Cluster>>, path: &Path) -> Result<Found, Failure> {
        if let Some(cluster) = cluster {
            let path = remote(path)?;
            let remote = cluster.dataset(&path)?;
            let parsed = remote.dataset.clone();
            return Ok(Found { parsed, place: Where::Cluster { cluster, remote: Box::new(remote), path } });
        }
        let location = here(path)?;
        if location.local().is_some_and(Path::is_dir) {
            let folder = Folder::open(path).map_err(gristmill_client::ClientError::from)?;
            return Ok(Found { parsed: folder.dataset.clone(), place: Where::Folder(folder) });
        }
        let found = Here::open(&location, false)?;
        let parsed = found.dataset().map_err(client)?;
        let place = match found {
            Here::File(file) => Where::File(file),
            Here::Folder(folder) => Where::Folder(folder),
        };
        Ok(Found { parsed, place })
    }

    /// The answer, its report, and whether it was folded by this process.
    fn reduce(
        &self,
        plan: &ReductionPlan,
        place: FoldPlace,
        options: Options,
        control: &Control,
        told: &Progress,
    ) -> Result<(Value, Report, bool), Failure> {
        let others = plan.chunks.other_tables().map(|table| table.stored_bytes());
        let bytes = plan.chunks.table().stored_bytes() + others.sum::<u64>();
        let mut none = Collected::new(plan.kernel.spec().output);
        let (outcome, folded_here) = match self.asked(plan)? {
            Asked::Here(file) => {
                told.begins(named(FoldPlace::Client), bytes);
                let request = Request { options: options.clone(), ..plan.request(file) };
                (run(request, &mut none, control)?, true)
            }
            Asked::Cluster(cluster, files) => {
                let planned = cluster.plan_files(files, plan.question()?, place, &options)?;
                told.begins(named(planned.plan.place), bytes);
                let outcome = cluster.run(&planned, options.clone(), &mut none, control)?;
                (outcome, planned.plan.place == FoldPlace::Client)
            }
        };
        match outcome {
            Outcome::Done(answer) => Ok((answer.value, answer.report, folded_here)),
            Outcome::Stopped(_) => Err(given_up()),
        }
    }

    /// The files that a request needs. Without a stored chunk it is an empty file here.
    fn asked(&self, plan: &ReductionPlan) -> Result<Asked<'_>, Failure> {
        let (cluster, files, path) = match &self.place {
            Where::File(file) => return Ok(Asked::Here(file.clone())),
            Where::Folder(folder) => return Ok(Asked::Here(folder.parts(plan.files())?)),
            Where::Joined(JoinedFiles::Here(files)) => {
                return Ok(Asked::Here(joined_parts(files, plan.files())?));
            }
            Where::Cluster { cluster, remote, path } => (cluster, remote.files(plan.files())?, path.as_str()),
            Where::Joined(JoinedFiles::Cluster { cluster, opened }) => {
                let first = opened.first().map_or("", |one| &one.info.file.path);
                (cluster, joined_files(opened, plan.files())?, first)
            }
        };
        Ok(match files {
            Some(files) => Asked::Cluster(cluster, files),
            None => Asked::Here(empty_file(path)?),
        })
    }

    /// Whether the file is still the one whose description was read, as far as that can be told.
    fn unchanged(&self) -> Result<(), Failure> {
        match &self.place {
            Where::File(file) => Ok(file.parts.iter().try_for_each(|part| part.unchanged())?),
            Where::Joined(JoinedFiles::Here(files)) => {
                let mut parts = files.iter().flat_map(|file| &file.parts);
                Ok(parts.try_for_each(|part| part.unchanged())?)
            }
            _ => Ok(()),
        }
    }
}

#[pymethods]
impl Dataset {
    /// Reads what a file says about itself.
    #[new]
    fn new(py: Python<'_>, connection: Option<&Bound<'_, Connection>>, path: PathBuf) -> PyResult<Dataset> {
        let cluster = cluster_of(connection)?;
        let found = wait(py, &Arc::new(Control::new()), None, move || Found::open(cluster, &path))?;
        Ok(Dataset { found: ForkGuard::new(Arc::new(found)) })
    }

    /// Several opened files as one, along a dimension. It has the variables that all files have alike.
    #[staticmethod]
    fn join(py: Python<'_>, parts: Vec<Py<Dataset>>, dimension: String) -> PyResult<Dataset> {
        let parts =
            parts.iter().map(|part| Ok(part.get().found.get()?.clone())).collect::<PyResult<Vec<_>>>()?;
        let found = wait(py, &Arc::new(Control::new()), None, move || JoinedFiles::open(&parts, &dimension))?;
        Ok(Dataset { found: ForkGuard::new(Arc::new(found)) })
    }

    /// The name of its format.
    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        Ok(self.found.get()?.parsed.format.name())
    }

    /// Which state of a file of a cluster it is.
    #[getter]
    fn id(&self) -> PyResult<Option<String>> {
        Ok(match &self.found.get()?.place {
            Where::Cluster { remote, .. } => remote.opened.as_ref().map(|opened| opened.info.file.id.clone()),
            Where::Joined(joined) => joined.id(),
            _ => None,
        })
    }

    /// A text that differs between states of the file: its id in a cluster, or a number of its length and its time of modification.
    /// It is empty for a folder and for several files.
    #[getter]
    fn state(&self) -> PyResult<String> {
        let versions = |file: &FileParts| combine_versions(file.parts.iter().map(|part| part.version()));
        Ok(match &self.found.get()?.place {
            Where::File(file) => format!("{:016x}", versions(file)),
            Where::Cluster { remote, .. } => {
                remote.opened.as_ref().map(|opened| opened.info.file.id.clone()).unwrap_or_default()
            }
            Where::Folder(_) | Where::Joined(_) => String::new(),
        })
    }

    /// Its own attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        attributes(py, &self.found.get()?.parsed.attributes)
    }

    /// Its dimensions: name, length, whether it may grow.
    fn dimensions(&self) -> PyResult<Vec<(String, u64, bool)>> {
        let each = self.found.get()?.parsed.dimensions.iter();
        Ok(each.map(|one| (one.name.clone(), one.length, one.unlimited)).collect())
    }

    /// Its groups below the root.
    fn groups(&self) -> PyResult<Vec<String>> {
        Ok(self.found.get()?.parsed.groups.clone())
    }

    /// Its variables, each as a dictionary.
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = self.found.get()?.clone();
        let list = PyList::empty(py);
        for variable in &found.parsed.variables {
            list.append(described(py, variable, &table_of(py, &found, &variable.path)?)?)?;
        }
        Ok(list)
    }

    /// One variable, as in [`variables`](Dataset::variables); `None` if there is none of this name.
    fn variable<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.found.get()?.clone();
        let Ok(variable) = found.parsed.variable(name).cloned() else { return Ok(None) };
        described(py, &variable, &table_of(py, &found, &variable.path)?).map(Some)
    }

    /// The location of a variable: its file or folder, and the share of each target.
    fn layout<'py>(&self, py: Python<'py>, variable: String) -> PyResult<Bound<'py, PyDict>> {
        let found = self.found.get()?.clone();
        let location =
            wait(py, &Arc::new(Control::new()), None, move || VariableLocation::find(&found, &variable))?;
        location.into_python(py)
    }

    /// Reduces variables, or what is computed of them: arrays by name, and a report.
    #[pyo3(signature = (asked, watch=None))]
    fn reduce<'py>(
        &self,
        py: Python<'py>,
        asked: Reduce,
        watch: Option<&Bound<'py, Watch>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let found = self.found.get()?.clone();
        let limit = asked.limit()?;
        let watched = Watched::by(py, watch);
        let (control, told) = (watched.control.clone(), watched.progress.clone());
        let (value, report, folded_here) = watched.wait(limit, move || {
            let (place, mut options) = (asked.place()?, Options::default());
            options.lanes = asked.lanes.unwrap_or(options.lanes);
            let (operands, reduction) = asked.reduction()?;
            let plan = plan_reduction(&found.parsed, operands, reduction)?;
            found.reduce(&plan, place, options, &control, &told)
        })?;
        Ok((convert::value(py, &value)?, convert::report(py, &report, folded_here)?))
    }

    /// The elements of a hyperslab, as stored or decoded: type, shape, bytes, and how many stored bytes were read.
    #[pyo3(signature = (variable, taken, decoded, watch=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        variable: String,
        taken: Vec<Taken>,
        decoded: bool,
        watch: Option<&Bound<'py, Watch>>,
    ) -> PyResult<(&'static str, Vec<u64>, Bound<'py, PyBytes>, u64)> {
        let found = self.found.get()?.clone();
        let watched = Watched::by(py, watch);
        let control = watched.control.clone();
        let (dtype, shape, bytes, read) = watched.wait(None, move || {
            let meaning = meaning_of(found.parsed.variable(&variable).map_err(client)?, decoded)?;
            let slab = read_slab(&found.parsed, &variable, &selection(taken), &control)?;
            if control.stopped() {
                return Err(given_up());
            }
            found.unchanged()?;
            let dtype = meaning.decoded().name();
            Ok((dtype, slab.shape, decode(&meaning, slab.bytes)?, slab.bytes_read))
        })?;
        Ok((dtype, shape, PyBytes::new(py, &bytes), read))
    }
}

fn client(error: gristmill_format::FormatError) -> Failure {
    gristmill_client::ClientError::from(error).into()
}

/// Stored elements as what they mean, little-endian.
fn decode(meaning: &Meaning, raw: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let plain = !meaning.masks() && meaning.scale.is_none() && meaning.offset.is_none();
    let size = match meaning.decoded() {
        ArrayType::Number(dtype) if !plain => dtype.size(),
        // With or without a sign the bits are the same.
        _ => return Ok(raw),
    };
    let mut out = Vec::with_capacity(raw.len() / meaning.raw.size() * size);
    for part in raw.chunks(DECODED_AT_ONCE * meaning.raw.size()) {
        meaning.decode(part).map_err(gristmill_client::ClientError::from)?.append_le(&mut out);
    }
    Ok(out)
}

/// The table of a variable. It may have to be read over a network, and the table of many files takes long to make.
fn table_of(py: Python<'_>, found: &Arc<Found>, path: &str) -> PyResult<Result<ChunkTable, FormatError>> {
    let (found, path) = (found.clone(), path.to_owned());
    wait(py, &Arc::new(Control::new()), None, move || Ok(found.parsed.table(&path)))
}

fn described<'py>(
    py: Python<'py>,
    variable: &Variable,
    table: &Result<ChunkTable, FormatError>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &variable.path)?;
    dict.set_item("dims", &variable.dimensions)?;
    dict.set_item("shape", &variable.shape)?;
    dict.set_item("kind", variable.kind.to_string())?;
    dict.set_item("attributes", attributes(py, &variable.attributes)?)?;
    dict.set_item("chunks", &variable.chunk)?;
    dict.set_item("filters", &variable.filters)?;
    dict.set_item("dtype", variable.dtype().ok().map(|dtype| dtype.name()))?;
    let decoded = meaning_of(variable, true).map(|meaning| meaning.decoded().name());
    dict.set_item("decoded", decoded.as_ref().ok())?;
    dict.set_item("refused", table.as_ref().err().map(ToString::to_string))?;
    if let Ok(table) = table {
        dict.set_item("chunks", &table.array.chunk)?;
        dict.set_item("stored_bytes", table.stored_bytes())?;
    }
    Ok(dict)
}

/// Attributes: text, a list of texts, or numbers as `(type, bytes, whether it is one number, whether the file says
/// their type)`. Of what is neither, what it is: `(words,)`.
fn attributes<'py>(py: Python<'py>, all: &[Attribute]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for attribute in all {
        match &attribute.value {
            AttributeValue::Text(text) => dict.set_item(&attribute.name, text)?,
            AttributeValue::Texts(texts) => dict.set_item(&attribute.name, texts)?,
            AttributeValue::Numbers { dtype, bytes, scalar, typed } => {
                dict.set_item(&attribute.name, (dtype.name(), PyBytes::new(py, bytes), *scalar, *typed))?;
            }
            AttributeValue::Other(what) => dict.set_item(&attribute.name, (what,))?,
        }
    }
    Ok(dict)
}
