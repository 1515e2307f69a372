//! The checkpoint of `gristmill run`: a file of this machine that only its owner may read.

use std::io;
use std::path::Path;

use gristmill_runtime::Checkpoint;
use gristmill_store::write_atomic_private;
use rustix::fs::{Access, access};

use crate::error::CliError;

/// Longest checkpoint that is read, in bytes.
const MAX_CHECKPOINT_BYTES: u64 = 1 << 30;

/// Reads a checkpoint.
///
/// # Errors
/// Returns an error if the file cannot be read, is too long, or is not a checkpoint.
pub(super) fn read(path: &Path) -> Result<Checkpoint, CliError> {
    let fail = |source| CliError::File { verb: "read", path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > MAX_CHECKPOINT_BYTES {
        return Err(fail(io::Error::other(format!("it is longer than {MAX_CHECKPOINT_BYTES} bytes"))));
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    Checkpoint::decode(&bytes).map_err(|error| CliError::for_request(path.display(), error))
}

/// Checks that a checkpoint could be written later.
///
/// # Errors
/// Returns an error if its folder cannot be written.
pub(super) fn check_writable(path: &Path) -> Result<(), CliError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let writable = access(parent, Access::WRITE_OK | Access::EXEC_OK);
    writable.map_err(|error| CliError::File {
        verb: "write a checkpoint to",
        path: path.to_owned(),
        source: error.into(),
    })
}

/// Writes a checkpoint. It is private, because it may have contents of a file that others may not read.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write(path: &Path, checkpoint: &Checkpoint) -> Result<(), CliError> {
    Ok(write_atomic_private(path, &checkpoint.encode())?)
}
