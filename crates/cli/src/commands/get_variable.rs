//! `gristmill get --var`: one variable of a scientific file as `.npy`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_client::{ClientError, Location, VariableError, write_variable, write_whole};
use gristmill_format::{Dataset, FormatError, open_path};
use gristmill_runtime::Control;

use crate::commands::DASH;
use crate::commands::variables::{failed, open_here};
use crate::error::CliError;

/// Permission bits of a new file, before the umask.
const MODE: u32 = 0o644;

/// Most variables of a group that a message lists.
const MAX_LISTED: usize = 12;

/// Writes a variable of a file that this process reads, or of a folder with Zarr.
pub fn get(
    location: &Location,
    name: &str,
    destination: &Path,
    verify: bool,
    stop: &Control,
) -> Result<(), CliError> {
    let shown = PathBuf::from(location.to_string());
    let dataset = match location.local().filter(|path| path.is_dir()) {
        Some(path) => open_path(path).map(Arc::new),
        None => open_here(location, verify)?.dataset(),
    };
    let dataset = dataset.map_err(|error| no_variables(&shown, error))?;
    get_from(&dataset, &shown, name, destination, stop)
}

/// The error for a file without variables: it is copied without `--var`.
pub fn no_variables(path: &Path, error: FormatError) -> CliError {
    match error {
        FormatError::Unrecognised { why } => CliError::Usage(format!(
            "{} has no variables, because it is not a netCDF, HDF5, Zarr, .npy, .csv or .tsv file ({why}); omit --var to copy \
             the file unchanged",
            path.display()
        )),
        error => failed(&path.display())(error),
    }
}

/// Writes a variable of an opened file. Error messages name the file `path`.
pub fn get_from(
    dataset: &Dataset,
    path: &Path,
    name: &str,
    destination: &Path,
    stop: &Control,
) -> Result<(), CliError> {
    let group = name.trim_matches('/');
    if dataset.variable(name).is_err() && dataset.groups.iter().any(|known| known == group) {
        let inside = |path: &&str| path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'));
        let names = dataset.variables.iter().map(|variable| &*variable.path).filter(inside);
        let names: Vec<&str> = names.take(MAX_LISTED).collect();
        return Err(CliError::Usage(format!(
            "{}: {group} is a group; name one of its variables: {}",
            path.display(),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        )));
    }
    dataset.table(name).map_err(failed(&path.display()))?;
    if destination == Path::new(DASH) {
        let mut out = io::stdout().lock();
        write_variable(dataset, name, stop, &mut out)
            .map_err(|error| copy_error(error, path, destination))?;
        return out.flush().map_err(CliError::Output);
    }
    let mut failure = None;
    let done = write_whole(destination, MODE, stop, &mut |file| {
        let mut out = io::BufWriter::new(file);
        let written = write_variable(dataset, name, stop, &mut out)
            .and_then(|()| out.flush().map_err(VariableError::Write));
        written.map_err(|error| {
            let stopped = ClientError::Stopped { path: destination.to_owned() };
            failure = Some(error);
            stopped
        })
    });
    match failure {
        Some(error) => Err(copy_error(error, path, destination)),
        None => Ok(done?),
    }
}

fn copy_error(failure: VariableError, path: &Path, destination: &Path) -> CliError {
    match failure {
        VariableError::Format(error) => failed(&path.display())(error),
        VariableError::Write(error) if destination == Path::new(DASH) => CliError::Output(error),
        VariableError::Write(source) => {
            CliError::File { verb: "write", path: destination.to_owned(), source }
        }
        VariableError::Stopped => ClientError::Stopped { path: destination.to_owned() }.into(),
    }
}
