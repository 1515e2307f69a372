//! Directories that a store lies in: what is acknowledged as stored must be found by name after the power failed.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a directory and those above it that are missing.
///
/// Their names are on disk when this returns; that of the directory also if it was there already, since whoever made it may not
/// have waited for the disk. A parent that this user may not read, or whose file system syncs no directories, is left to the system.
///
/// # Errors
/// The error of the system.
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
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        done => done?,
    }
    sync_name(dir)
}

/// Has the name of a directory, or of a file, on disk.
///
/// # Errors
/// The error of the system. A parent that this user may not read, or whose file system syncs no directories, is none.
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
    fn directories_are_made_with_those_above_them_and_a_second_time() {
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
