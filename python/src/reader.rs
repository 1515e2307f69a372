//! An open file, read by position.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_client::Cluster;
use gristmill_runtime::{Control, ErrorKind, FileParts, combine_versions};
use gristmill_wire::action::Opened;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::connection::{Connection, cluster_of, here};
use crate::errors::Failure;
use crate::files::remote;
use crate::fork_guard::ForkGuard;
use crate::wait::wait;

/// Most bytes of one read; whoever wants more reads again.
const MAX_READ: u64 = 16 << 20;

/// An open file, as one state of it: if it is changed or replaced, reading it fails.
#[pyclass(frozen, module = "gristmill._gristmill")]
pub struct Reader {
    file: ForkGuard<Arc<File>>,
    path: PathBuf,
    /// Id of the file in its cluster.
    id: Option<String>,
    length: u64,
    /// The state of a file that this process reads itself; `None` for a file of a cluster, which has an id.
    version: Option<u64>,
}

enum File {
    Local(FileParts),
    Remote { cluster: Arc<Cluster>, now: Mutex<(Opened, FileParts)> },
}

impl File {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        let range = offset..offset + buffer.len() as u64;
        let (cluster, now) = match self {
            File::Local(parts) => {
                parts.read(range, buffer)?;
                return Ok(parts.parts.iter().try_for_each(|part| part.unchanged())?);
            }
            File::Remote { cluster, now } => (cluster, now),
        };
        let (opened, parts) = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = match parts.read(range.clone(), buffer) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if error.kind() != ErrorKind::Denied {
            return Err(cluster.explain(&opened.info.file, error).into());
        }
        // Grants run out after some hours. A new one is as good if it is for the same state of the file.
        let again = cluster.open(&opened.info.file.path)?;
        if again.info.file.id != opened.info.file.id {
            return Err(replaced(&opened.info.file.path));
        }
        let parts = cluster.parts(&again)?;
        parts.read(range, buffer)?;
        *now.lock().unwrap_or_else(PoisonError::into_inner) = (again, parts);
        Ok(())
    }
}

fn replaced(path: &str) -> Failure {
    Failure::new(ErrorKind::Stale, format!("{path} was replaced while it was read; open it again"))
}

#[pymethods]
impl Reader {
    /// Opens a file of a cluster, or of this machine.
    #[new]
    fn new(py: Python<'_>, connection: Option<&Bound<'_, Connection>>, path: PathBuf) -> PyResult<Reader> {
        let cluster = cluster_of(connection)?;
        let name = path.clone();
        let (file, id, length, version) = wait(py, &Arc::new(Control::new()), None, move || {
            let Some(cluster) = cluster else {
                let parts = gristmill_client::open_file(&here(&name)?, false)?;
                let length = parts.length;
                let version = combine_versions(parts.parts.iter().map(|part| part.version()));
                return Ok((File::Local(parts), None, length, Some(version)));
            };
            let opened = cluster.open(&remote(&name)?)?;
            let (parts, length) = (cluster.parts(&opened)?, opened.info.file.length);
            let id = opened.info.file.id.clone();
            Ok((File::Remote { cluster, now: Mutex::new((opened, parts)) }, Some(id), length, None))
        })?;
        Ok(Reader { file: ForkGuard::new(Arc::new(file)), path, id, length, version })
    }

    /// The same state of the file over another connection: for a forked child.
    fn reopened(&self, py: Python<'_>, connection: Option<&Bound<'_, Connection>>) -> PyResult<Reader> {
        let again = Reader::new(py, connection, self.path.clone())?;
        if again.id != self.id || again.length != self.length || again.version != self.version {
            return Err(replaced(&self.path.to_string_lossy()).into());
        }
        Ok(again)
    }

    /// Bytes of the file.
    #[getter]
    fn length(&self) -> u64 {
        self.length
    }

    /// Which state of a file of a cluster it is.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Up to `size` bytes from `offset` on; none at the end, and at most 16 MiB at once.
    fn read_at<'py>(&self, py: Python<'py>, offset: u64, size: u64) -> PyResult<Bound<'py, PyBytes>> {
        let size = size.min(self.length.saturating_sub(offset)).min(MAX_READ);
        if size == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        let file = self.file.get()?.clone();
        let bytes = wait(py, &Arc::new(Control::new()), None, move || {
            let mut buffer = vec![0; size as usize];
            file.read(offset, &mut buffer)?;
            Ok(buffer)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}
