//! The lock file that makes a process the only user of the namespace.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::{NamespaceError, Result};

const LOCK_FILE: &str = "namespace.lock";

/// Takes the lock. The system releases it when the file is closed or the process ends.
pub(crate) fn acquire(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK_FILE);
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = open.map_err(|error| NamespaceError::io("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(NamespaceError::Locked { dir: dir.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(NamespaceError::io("lock", &path, error)),
    }
}
