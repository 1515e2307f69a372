//! `gristmill get --var`: one variable of a scientific file as `.npy`.

use std::io::{self, Write};
use std::path::Path;

use gristmill_client::{ClientError, VariableError, write_variable, write_whole};
use gristmill_format::{Dataset, open_path};
use gristmill_runtime::Control;

use crate::commands::DASH;
use crate::commands::variables::failed;
use crate::error::CliError;

/// Permission bits of the file that is made, before the process's mask is taken off.
const MODE: u32 = 0o644;

/// Writes a variable of a file.
pub fn get(path: &Path, name: &str, destination: &Path, stop: &Control) -> Result<(), CliError> {
    get_from(&open_path(path).map_err(failed(path))?, path, name, destination, stop)
}

/// Writes a variable of an opened file, which errors call `path`.
pub fn get_from(
    dataset: &Dataset,
    path: &Path,
    name: &str,
    destination: &Path,
    stop: &Control,
) -> Result<(), CliError> {
    dataset.table(name).map_err(failed(path))?;
    if destination == Path::new(DASH) {
        let mut out = io::stdout().lock();
        write_variable(dataset, name, stop, &mut out).map_err(|error| told(error, path, destination))?;
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
        Some(error) => Err(told(error, path, destination)),
        None => Ok(done?),
    }
}

fn told(failure: VariableError, path: &Path, destination: &Path) -> CliError {
    match failure {
        VariableError::Format(error) => failed(path)(error),
        VariableError::Write(error) if destination == Path::new(DASH) => CliError::Output(error),
        VariableError::Write(source) => {
            CliError::File { verb: "write", path: destination.to_owned(), source }
        }
        VariableError::Stopped => ClientError::Stopped { path: destination.to_owned() }.into(),
    }
}
