//! Copying files to and from targets.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gristmill_client::{Cluster, DEFAULT_UNIT, PutOptions, RemotePut, chunk_unit};
use gristmill_runtime::{Control, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::connection::{Connection, cluster_of, here};
use crate::errors::Failure;
use crate::files::{info, remote};
use crate::source::Source;
use crate::wait::wait;
use crate::watch::{Watch, Watched};

/// Permission bits of a copy of a file that has none, before the umask.
const NEW_FILE: u32 = 0o666;

/// The layout that the Python side asks for a new file.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PutRequest {
    /// Bytes of a stripe. `None` selects whole chunks of a scientific file.
    unit: Option<u64>,
    record: Option<u64>,
    targets: Option<u32>,
    on: Option<Vec<u32>>,
    mode: Option<u16>,
}

/// The source of a put: a path of this machine, or an object with `read(n)` that returns bytes.
#[derive(FromPyObject)]
pub enum PutSource {
    Path(PathBuf),
    Object(Py<PyAny>),
}

impl PutRequest {
    /// Bytes of a stripe, if the request fixes them. A request with records and no unit gets the default.
    pub fn unit(&self) -> Option<u64> {
        self.unit.or_else(|| self.record.map(|_| DEFAULT_UNIT))
    }
}

/// The put for the cluster, with `unit` if the request names none.
pub fn planned(how: &PutRequest, unit: u64) -> RemotePut {
    RemotePut {
        unit: how.unit.unwrap_or(unit),
        record: how.record,
        targets: how.targets,
        on: how.on.clone(),
        mode: how.mode,
    }
}

/// Copies to a cluster. `total` is the number of bytes, if it is known. A put that is given up leaves nothing visible.
#[pyfunction]
#[pyo3(signature = (connection, source, path, how, total=None, watch=None))]
pub fn put<'py>(
    py: Python<'py>,
    connection: &Bound<'py, Connection>,
    source: PutSource,
    path: String,
    how: PutRequest,
    total: Option<u64>,
    watch: Option<&Bound<'py, Watch>>,
) -> PyResult<Bound<'py, PyDict>> {
    let cluster = connection.get().cluster()?;
    let watched = Watched::by(py, watch);
    let (stop, told) = (watched.control.clone(), watched.progress.clone());
    let put = watched.wait_confirming(None, move |confirm| {
        let unit = match (how.unit(), &source) {
            (Some(unit), _) => unit,
            (None, PutSource::Path(path)) => fitting(path, targets(&cluster, &how)),
            (None, PutSource::Object(_)) => DEFAULT_UNIT,
        };
        let how = planned(&how, unit);
        let total = match &source {
            PutSource::Path(path) => std::fs::metadata(path).ok().map(|meta| meta.len()),
            PutSource::Object(_) => total,
        };
        if let Some(total) = total {
            told.copies(total);
        }
        let source = match source {
            PutSource::Path(path) => Source::file(&path, &stop)?,
            PutSource::Object(object) => Source::object(object, &stop),
        };
        let why = source.why();
        cluster.put_from(source, &path, &how, &mut |at| told.copied(at), confirm).map_err(|error| {
            let said = why.lock().unwrap_or_else(PoisonError::into_inner).take();
            said.unwrap_or_else(|| error.into())
        })
    })?;
    info(py, &put)
}

/// The default stripe unit for a file on this number of targets.
pub fn fitting(path: &Path, targets: u64) -> u64 {
    chunk_unit(path, targets).unwrap_or(DEFAULT_UNIT)
}

/// The number of targets of a new file. If the cluster does not answer, the put itself fails with a better message.
pub fn targets(cluster: &Cluster, how: &PutRequest) -> u64 {
    match (how.targets, &how.on) {
        (Some(targets), _) => u64::from(targets),
        (None, Some(on)) => on.len() as u64,
        (None, None) => cluster
            .nodes()
            .map_or(1, |nodes| nodes.iter().filter(|node| !node.without_store).count().max(1) as u64),
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
    // This cannot be given up, so it runs to its end.
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
                let location = here(&path)?;
                let file = gristmill_client::open_file(&location, false)?;
                let mode = location.local().map_or(Ok(NEW_FILE), |path| {
                    let about = std::fs::metadata(path).map_err(|e| Failure::of_file("read", path, &e))?;
                    Ok::<u32, Failure>(about.permissions().mode())
                })?;
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
            let file = gristmill_client::open_file(&here(&path)?, false)?;
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
