//! Copying files to and from targets.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gristmill_client::{Cluster, DEFAULT_UNIT, PutOptions, RemotePut, chunk_unit};
use gristmill_runtime::{Control, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::connection::{Connection, cluster_of};
use crate::errors::Failure;
use crate::files::{info, remote};
use crate::source::Source;
use crate::wait::wait;

/// How a file is to lie on the targets, as the Python side puts it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct How {
    /// Where nothing is said, whole chunks of a scientific file.
    unit: Option<u64>,
    record: Option<u64>,
    targets: Option<u32>,
    on: Option<Vec<u32>>,
    mode: Option<u16>,
}

/// What is copied: a path of this machine, or an object with `read(n)` that gives bytes.
#[derive(FromPyObject)]
pub enum What {
    Path(PathBuf),
    Object(Py<PyAny>),
}

/// Copies to a cluster. Given up, it leaves nothing visible.
#[pyfunction]
pub fn put<'py>(
    py: Python<'py>,
    connection: &Bound<'py, Connection>,
    source: What,
    path: String,
    how: How,
) -> PyResult<Bound<'py, PyDict>> {
    let cluster = connection.get().cluster()?;
    let stop = Arc::new(Control::new());
    let told = stop.clone();
    let put = wait(py, &stop, None, move || {
        let how = RemotePut {
            unit: match (how.unit, &source) {
                (Some(unit), _) => unit,
                (None, What::Path(path)) if how.record.is_none() => fitting(path, targets(&cluster, &how)),
                (None, _) => DEFAULT_UNIT,
            },
            record: how.record,
            targets: how.targets,
            on: how.on,
            mode: how.mode,
        };
        let source = match source {
            What::Path(path) => Source::file(&path, &told)?,
            What::Object(object) => Source::object(object, &told),
        };
        let why = source.why();
        cluster.put_from(source, &path, &how, &mut |_| ()).map_err(|error| {
            let said = why.lock().unwrap_or_else(PoisonError::into_inner).take();
            said.unwrap_or_else(|| error.into())
        })
    })?;
    info(py, &put)
}

/// The stripe unit for a file on so many targets, of which nothing was said.
fn fitting(path: &Path, targets: u64) -> u64 {
    chunk_unit(path, targets).unwrap_or(DEFAULT_UNIT)
}

/// Targets that a file gets. A cluster that cannot be asked refuses the put itself, with a better word.
fn targets(cluster: &Cluster, how: &How) -> u64 {
    match (how.targets, &how.on) {
        (Some(targets), _) => u64::from(targets),
        (None, Some(on)) => on.len() as u64,
        (None, None) => cluster.nodes().map_or(1, |nodes| nodes.len() as u64),
    }
}

/// Stripes a file over directories of this machine and makes it visible as the layout file `path`.
#[pyfunction]
pub fn put_local(
    py: Python<'_>,
    source: PathBuf,
    path: PathBuf,
    targets: Vec<PathBuf>,
    unit: Option<u64>,
    record: Option<u64>,
) -> PyResult<()> {
    let unit = match unit {
        Some(unit) => unit,
        None if record.is_none() => py.detach(|| fitting(&source, targets.len() as u64)),
        None => DEFAULT_UNIT,
    };
    let options = PutOptions { targets, unit, record };
    // To its end, for it cannot be given up half-way.
    let put = py.detach(|| gristmill_client::put(&source, &path, &options, &mut |_| ()));
    put.map(|_| ()).map_err(|error| Failure::from(error).into())
}

/// Copies a file to a new one of this machine, which appears under its name only when it is whole and durable.
#[pyfunction]
pub fn get(
    py: Python<'_>,
    connection: Option<&Bound<'_, Connection>>,
    path: PathBuf,
    destination: PathBuf,
) -> PyResult<()> {
    let cluster = cluster_of(connection)?;
    let stop = Arc::new(Control::new());
    let told = stop.clone();
    wait(py, &stop, None, move || {
        match cluster {
            Some(cluster) => {
                let opened = cluster.open(&remote(&path)?)?;
                cluster.get_unless(&opened, &destination, &told, &mut |_| ())?;
            }
            None => {
                let file = gristmill_client::open(&path)?;
                let about = std::fs::metadata(&path).map_err(|e| Failure::of_file("read", &path, &e))?;
                let mode = about.permissions().mode();
                gristmill_client::get(&file, mode, &destination, &told, &mut |_| ())?;
            }
        }
        Ok(())
    })
}

/// All bytes of a file.
#[pyfunction]
pub fn get_bytes<'py>(
    py: Python<'py>,
    connection: Option<&Bound<'py, Connection>>,
    path: PathBuf,
) -> PyResult<Bound<'py, PyBytes>> {
    let cluster = cluster_of(connection)?;
    let stop = Arc::new(Control::new());
    let told = stop.clone();
    let bytes = wait(py, &stop, None, move || match cluster {
        Some(cluster) => {
            let opened = cluster.open(&remote(&path)?)?;
            let mut all = All::new(opened.info.file.length, told)?;
            cluster.read_to(&opened, &mut all, &mut |_| ())?;
            Ok(all.bytes)
        }
        None => {
            let file = gristmill_client::open(&path)?;
            let mut all = All::new(file.length, told)?;
            gristmill_client::read_to(&file, &mut all, &mut |_| ())?;
            Ok(all.bytes)
        }
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// A whole file in memory.
struct All {
    bytes: Vec<u8>,
    stop: Arc<Control>,
}

impl All {
    fn new(length: u64, stop: Arc<Control>) -> Result<All, Failure> {
        let mut bytes = Vec::new();
        let room = usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok());
        room.ok_or_else(|| {
            let text = format!("{length} bytes do not fit into memory; give a path to copy them to");
            Failure::new(ErrorKind::Failed, text)
        })?;
        Ok(All { bytes, stop })
    }
}

impl std::io::Write for All {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.stop.stopped() {
            return Err(std::io::Error::other("given up"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
