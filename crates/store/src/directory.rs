//! Directories that contain a store. After a loss of power, acknowledged data must still be found by name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a directory and its missing parents.
///
/// Their names are on disk when this returns. This also holds for the name of a directory that exists already, because
/// the process that made it may not have waited for the disk. A parent is not synced if this user may not read it, or
/// if its file system does not sync directories.
///
/// # Errors
/// Returns the error of the system.
pub fn make_directory(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return sync_name(dir);
    }
    if let Some(parent) = parent(dir)
        && !parent.exists()
    {
        make_directory(parent)?;
    }
    match fs::create_dir(dir) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        done => done?,
    }
    sync_name(dir)
}

/// Writes the name of a directory, or of a file, to disk.
///
/// # Errors
/// Returns the error of the system. It is not an error if this user may not read the parent, or if its file system does
/// not sync directories.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let parent = parent(path).unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|parent| parent.sync_all());
    match synced.as_ref().map_err(io::Error::kind) {
        Err(io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput) => Ok(()),
        _ => synced,
    }
}

fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn missing_parents_are_made_and_repetition_is_allowed() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        make_directory(&deep).unwrap();
        make_directory(&deep).unwrap();
        assert!(deep.is_dir());
        fs::write(deep.join("file"), b"x").unwrap();
        assert!(make_directory(&deep.join("file")).is_err());
        assert!(make_directory(&deep.join("file/below")).is_err());
    }
}
