//! Folders, and files and directories of a cluster as wholes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gristmill_client::{Cluster, RemotePut, files_below};
use gristmill_runtime::{Control, ErrorKind};
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::copy::{PutRequest, fitting, planned, targets};
use crate::errors::Failure;
use crate::files::given_up;
use crate::source::Source;
use crate::wait::wait;
use crate::watch::{Watch, Watched};

/// Files up to this length are put many at a time.
const SMALL: u64 = 128 << 10;

/// Files and bytes.
type Amount = (u64, u64);

/// Gives a file or a directory another path, and says where it is then.
#[pyfunction]
pub fn rename(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    from: String,
    to: String,
) -> PyResult<String> {
    let cluster = connection.get().cluster()?;
    wait(py, &Default::default(), None, move || Ok(cluster.rename(&from, &to)?.path))
}

/// Removes a file, or all that lies in a directory.
#[pyfunction]
pub fn remove_all(py: Python<'_>, connection: &Bound<'_, Connection>, path: String) -> PyResult<()> {
    let cluster = connection.get().cluster()?;
    wait(py, &Default::default(), None, move || Ok(cluster.remove_all(&path).map(|_| ())?))
}

/// Files and bytes of a file or a directory, when the newest file became visible (`None` if it is not known), whether it is a
/// directory, and the number of files that may not be read.
#[pyfunction]
pub fn usage(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    path: String,
) -> PyResult<(u64, u64, Option<u64>, bool, u64)> {
    let cluster = connection.get().cluster()?;
    let all = wait(py, &Default::default(), None, move || Ok(cluster.usage(&path)?))?;
    let changed = (all.changed > 0).then_some(all.changed);
    Ok((all.files, all.bytes, changed, all.directory, all.unread))
}

/// Copies a directory of a cluster to a new folder of this machine.
#[pyfunction]
#[pyo3(signature = (connection, path, destination, watch=None))]
pub fn get_folder(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    path: String,
    destination: PathBuf,
    watch: Option<&Bound<'_, Watch>>,
) -> PyResult<Amount> {
    let cluster = connection.get().cluster()?;
    let watched = Watched::by(py, watch);
    let (stop, told) = (watched.control.clone(), watched.progress.clone());
    watched.wait(None, move || {
        told.copies(cluster.usage(&path)?.bytes);
        let copied = cluster.get_folder(&path, &destination, &stop, &mut |at| told.copied(at))?;
        Ok((copied.files, copied.bytes))
    })
}

/// Copies a file, or with `recursive` a directory, within a cluster or to another; says where the copy is.
#[pyfunction]
#[pyo3(signature = (connection, path, to, destination, recursive, watch=None))]
pub fn copy(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    path: String,
    to: &Bound<'_, Connection>,
    destination: String,
    recursive: bool,
    watch: Option<&Bound<'_, Watch>>,
) -> PyResult<String> {
    let (from, to) = (connection.get().cluster()?, to.get().cluster()?);
    let watched = Watched::by(py, watch);
    let (stop, told) = (watched.control.clone(), watched.progress.clone());
    watched.wait(None, move || {
        let destination = to.copy_goes_to(&destination, &path)?;
        let amount = from.usage(&path)?;
        told.copies(amount.bytes);
        if !amount.directory {
            from.copy_file(&from.open(&path)?, &to, &destination, &mut |at| told.copied(at))?;
        } else if recursive {
            from.copy_folder(&path, &to, &destination, &stop, &mut |at| told.copied(at))?;
        } else {
            let text = format!("{path} is a directory; copy all that lies in it with recursive=True");
            return Err(Failure::usage(text));
        }
        Ok(destination)
    })
}

/// Copies a folder of this machine to a directory of a cluster; says where it is, files and bytes.
#[pyfunction]
#[pyo3(signature = (connection, source, path, how, watch=None))]
pub fn put_folder(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    source: PathBuf,
    path: String,
    how: PutRequest,
    watch: Option<&Bound<'_, Watch>>,
) -> PyResult<(String, u64, u64)> {
    let cluster = connection.get().cluster()?;
    let watched = Watched::by(py, watch);
    let (stop, told) = (watched.control.clone(), watched.progress.clone());
    watched.wait(None, move || {
        let into = into(&source, path)?;
        let names = files_below(&source)?;
        let mode = planned(&how, gristmill_client::DEFAULT_UNIT).mode;
        let staged = cluster.stage_folder(&into, names.iter().map(|(_, name)| name.as_str()), mode)?;
        let files: Vec<(PathBuf, String, u64)> = names
            .into_iter()
            .map(|(path, name)| {
                let length = path.metadata().map_or(0, |meta| meta.len());
                (path, format!("{}/{name}", staged.path()), length)
            })
            .collect();
        let total = files.iter().fold(0, |sum: u64, (_, _, length)| sum.saturating_add(*length));
        told.copies(total);
        let count = files.len() as u64;
        if let Err(failure) = put_files(&cluster, files, &how, &stop, &mut |at| told.copied(at)) {
            staged.discard(&cluster);
            return Err(failure);
        }
        staged.publish(&cluster)?;
        Ok((into, count, total))
    })
}

/// Copies files of these lengths. `progress` gets the bytes that were copied so far. Ends with the first failure.
fn put_files(
    cluster: &Cluster,
    files: Vec<(PathBuf, String, u64)>,
    how: &PutRequest,
    stop: &Arc<Control>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let (small, large): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, _, length)| *length <= SMALL);
    let mut done = 0u64;
    let small = small.into_iter().map(|(path, to, _)| (path, to)).collect();
    let (mut failed, over) = (None, Control::part_of(stop.clone()));
    cluster.put_many(small, &planned(how, gristmill_client::DEFAULT_UNIT), &over, &mut |_, result| {
        match result {
            Ok(info) => {
                done = done.saturating_add(info.file.length);
                progress(done);
            }
            Err(error) => {
                over.stop();
                failed.get_or_insert(error);
            }
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    if stop.stopped() {
        return Err(given_up());
    }
    let on = targets(cluster, how);
    for (file, to, length) in large {
        let unit = how.unit().unwrap_or_else(|| fitting(&file, on));
        let from = Source::file(&file, stop)?;
        let confirm = || !stop.stopped();
        let progress = &mut |at| progress(done.saturating_add(at));
        put_one(cluster, from, &to, &planned(how, unit), progress, &confirm)?;
        done = done.saturating_add(length);
    }
    Ok(())
}

fn put_one(
    cluster: &Cluster,
    source: Source,
    to: &str,
    how: &RemotePut,
    progress: &mut dyn FnMut(u64),
    confirm: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let why = source.why();
    cluster.put_from(source, to, how, progress, confirm).map_err(|error| {
        let said = why.lock().unwrap_or_else(PoisonError::into_inner).take();
        said.unwrap_or_else(|| error.into())
    })?;
    Ok(())
}

/// Below a directory that ends with a slash a folder keeps its name.
fn into(folder: &Path, path: String) -> Result<String, Failure> {
    let Some(directory) = path.strip_suffix('/') else { return Ok(path) };
    let whole = folder.canonicalize().map_err(|error| Failure::of_file("read", folder, &error))?;
    match whole.file_name().and_then(|name| name.to_str()) {
        Some(name) => Ok(format!("{directory}/{name}")),
        None => Err(Failure::new(ErrorKind::Usage, format!("{} has no name; give one", folder.display()))),
    }
}
