//! Replacement of small files, as a whole or not at all.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{DataFile, Disk, RealDisk, write_full};
use crate::{Result, StoreError};

/// Most names that are tried for the temporary file.
const MAX_NAME_ATTEMPTS: usize = 16;

/// Makes `bytes` the content of the file `path`, durably. A reader finds the old content or the new one, also after a
/// crash.
///
/// A temporary file in the same directory is written, synced and renamed to `path`. Then the directory is synced. A
/// symbolic link at `path` is replaced, not followed. The file gets the permissions of a new file.
///
/// # Errors
/// The error is [`StoreError::Invalid`] if `path` does not name a file. It also fails if the system fails. On an error
/// before the rename, the temporary file is removed and `path` is as it was. An error from the last step, the sync of
/// the directory, leaves the new content in place but perhaps not durable.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic_on(&RealDisk, path, bytes)
}

/// [`write_atomic`] for a file that only this user may read, with any umask.
///
/// # Errors
/// Returns the same errors as [`write_atomic`].
pub fn write_atomic_private(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(&RealDisk, path, bytes, |path| RealDisk.create_private_file(path))
}

pub(crate) fn write_atomic_on(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    replace(disk, path, bytes, |path| disk.create_file(path))
}

fn replace(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    create: impl Fn(&Path) -> io::Result<Box<dyn DataFile>>,
) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if path.file_name().is_none() {
        let what = format!("{} does not name a file", path.display());
        return Err(StoreError::Invalid { what, remedy: "give the path of a file" });
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = || {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        dir.join(format!(".gristmill-{}-{serial}.tmp", std::process::id()))
    };
    // A crashed process with the same number may have left its file.
    let mut temporary: PathBuf = name();
    let mut made = create(&temporary);
    for _ in 1..MAX_NAME_ATTEMPTS {
        match &made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                temporary = name();
                made = create(&temporary);
            }
            _ => break,
        }
    }
    let file = made.map_err(|error| StoreError::io("create", &temporary, error))?;
    let renamed = write_full(&*file, bytes, 0)
        .map_err(|error| StoreError::io("write", &temporary, error))
        .and_then(|()| file.sync().map_err(|error| StoreError::io("sync", &temporary, error)))
        .and_then(|()| disk.rename(&temporary, path).map_err(|error| StoreError::io("replace", path, error)));
    if let Err(error) = renamed {
        // The first error is reported.
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(dir).map_err(|error| StoreError::io("sync", dir, error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_file_replaces_one_that_others_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "of all").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_atomic_private(&path, b"of one").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"of one");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
