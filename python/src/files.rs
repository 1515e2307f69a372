//! Descriptions of files, by path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_client::{Location, OutsideContent, OutsideEntry};
use gristmill_layout::Layout;
use gristmill_runtime::{Control, ErrorKind};
use gristmill_wire::action::FileInfo;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::connection::{Connection, cluster_of, here};
use crate::errors::Failure;
use crate::wait::wait;

/// A path of a cluster, which is text.
pub fn remote(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{} is not UTF-8, as names of a cluster are; choose another", path.display()))
    })
}

/// A file's description under the names of the Python class `FileInfo`.
pub fn info<'py>(py: Python<'py>, info: &FileInfo) -> PyResult<Bound<'py, PyDict>> {
    let file = &info.file;
    let dict = PyDict::new(py);
    dict.set_item("path", &file.path)?;
    dict.set_item("length", file.length)?;
    dict.set_item("stripe_unit", (!file.has_components()).then_some(file.unit))?;
    dict.set_item("record", file.record)?;
    let numbers: Vec<u32> = file.targets.iter().map(|target| target.number).collect();
    dict.set_item("targets", numbers)?;
    dict.set_item("owner", &info.owner)?;
    dict.set_item("mode", info.mode)?;
    // A file of an attached tree has no known time.
    dict.set_item("created", (info.created > 0).then_some(info.created))?;
    dict.set_item("id", &file.id)?;
    Ok(dict)
}

/// The description of a file. For a file of this machine it has only the layout.
#[pyfunction]
pub fn stat<'py>(
    py: Python<'py>,
    connection: Option<&Bound<'py, Connection>>,
    path: PathBuf,
) -> PyResult<Bound<'py, PyDict>> {
    let stop = Arc::new(Control::new());
    if let Some(cluster) = cluster_of(connection)? {
        let found = wait(py, &stop, None, move || Ok(cluster.stat(&remote(&path)?)?))?;
        return info(py, &found);
    }
    let (file, path) =
        wait(py, &stop, None, move || Ok((gristmill_client::open_file(&here(&path)?, false)?, path)))?;
    let dict = PyDict::new(py);
    let targets: Vec<String> = file.parts.iter().map(|part| part.describe()).collect();
    let unit = match &file.layout {
        Layout::Striped(striped) if path.extension().is_some_and(|e| e == gristmill_client::EXTENSION) => {
            Some(striped.unit())
        }
        _ => None,
    };
    dict.set_item("path", path)?;
    dict.set_item("length", file.length)?;
    dict.set_item("stripe_unit", unit)?;
    dict.set_item("targets", targets)?;
    Ok(dict)
}

/// A name, the description of a file, and why it cannot be read. A directory has neither.
type Name<'py> = (String, Option<Bound<'py, PyDict>>, Option<String>);

/// Names in a directory, in ascending order, with the descriptions of files; `None` for a directory.
#[pyfunction]
pub fn ls<'py>(
    py: Python<'py>,
    connection: &Bound<'py, Connection>,
    path: String,
) -> PyResult<Vec<Name<'py>>> {
    let cluster = connection.get().cluster()?;
    let entries = wait(py, &Arc::new(Control::new()), None, move || match cluster.list(&path) {
        Ok(entries) => {
            Ok(entries.into_iter().map(|entry| (entry.name, entry.info, entry.unreadable)).collect())
        }
        // The path may name a file.
        Err(error) => match cluster.stat(&path) {
            Ok(info) => {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(vec![(name, Some(info), None)])
            }
            Err(_) => Err(Failure::from(error)),
        },
    })?;
    entries
        .into_iter()
        .map(|(name, found, why)| Ok((name, found.map(|found| info(py, &found)).transpose()?, why)))
        .collect()
}

/// A name, its URL, the length of a file, and why it cannot be read. A folder has neither of the last two.
type OutsideName = (String, String, Option<u64>, Option<String>);

/// The names of a folder of an object store or of a web server, and whether the URL is that of a file.
#[pyfunction]
pub fn list_outside(py: Python<'_>, url: String) -> PyResult<(Vec<OutsideName>, bool)> {
    let listed = wait(py, &Arc::new(Control::new()), None, move || match here(Path::new(&url))? {
        Location::Outside(url) => Ok(gristmill_client::list_outside(&url)?),
        other => Err(Failure::usage(format!("{other} is no folder of an object store or of a web server"))),
    })?;
    let named = |(url, entry): (gristmill_client::SourceUrl, OutsideEntry)| {
        let (length, why) = match entry.content {
            OutsideContent::Folder => (None, None),
            OutsideContent::File(found) => (Some(found.length), None),
            OutsideContent::Unreadable { why } => (None, Some(why)),
        };
        (entry.name, url.to_string(), length, why)
    };
    Ok((listed.entries.into_iter().map(named).collect(), listed.is_file))
}

/// Whether a directory has this name, which is whether there are files in it.
#[pyfunction]
pub fn is_directory(py: Python<'_>, connection: &Bound<'_, Connection>, path: String) -> PyResult<bool> {
    let cluster = connection.get().cluster()?;
    wait(py, &Arc::new(Control::new()), None, move || Ok(cluster.is_directory(&path)?))
}

/// Removes a file.
#[pyfunction]
pub fn remove(py: Python<'_>, connection: Option<&Bound<'_, Connection>>, path: PathBuf) -> PyResult<()> {
    let cluster = cluster_of(connection)?;
    wait(py, &Arc::new(Control::new()), None, move || match cluster {
        Some(cluster) => Ok(cluster.remove(&remote(&path)?)?),
        None => Ok(gristmill_client::remove(&path)?),
    })
}

/// The failure of work that was stopped. Only the work itself sees it.
pub fn given_up() -> Failure {
    Failure::new(ErrorKind::Failed, "given up")
}
