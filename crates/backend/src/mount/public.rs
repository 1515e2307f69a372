//! Checks by permission bits that every user of a file system may read a file.
//!
//! A node that cannot take on the identity of its users reads for them only such files. Group members and all others must have the right,
//! so that nobody reads what the bits refuse to him. Access control lists are not looked at.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Most folders between the root and a file.
const MAX_LEVELS: usize = 2_048;

/// Bits to read a file, for group and others.
const READ: u32 = 0o044;

/// Bits to search a folder, for group and others.
const SEARCH: u32 = 0o011;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether everybody may read an opened file, or list an opened folder: its own bits, and those of all folders from it up to the root,
/// which counts too. The folders are those where the file really lies, after all symbolic links.
pub(super) fn is_public(root: &File, opened: &File) -> Result<bool, Errno> {
    let (root, found) = (fstat(root)?, fstat(opened)?);
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if !has(&found, if is_folder { READ | SEARCH } else { READ }) {
        return Ok(false);
    }
    if same(&found, &root) {
        return Ok(true);
    }
    is_searchable_from(&root, if is_folder { above(opened)? } else { folder_of(opened, &found)? })
}

/// Whether everybody may look up the name of an opened folder: the bits of all folders above it, up to the root.
pub(super) fn is_reachable(root: &File, opened: &File) -> Result<bool, Errno> {
    let (root, found) = (fstat(root)?, fstat(opened)?);
    if same(&found, &root) {
        return Ok(true);
    }
    is_searchable_from(&root, above(opened)?)
}

/// Whether everybody may look up names in an opened folder: its own bits, and those of all folders from it up to the root.
pub(super) fn is_searchable(root: &File, folder: File) -> Result<bool, Errno> {
    is_searchable_from(&fstat(root)?, folder)
}

fn is_searchable_from(root: &Stat, mut folder: File) -> Result<bool, Errno> {
    for _ in 0..MAX_LEVELS {
        let at = fstat(&folder)?;
        if !has(&at, SEARCH) {
            return Ok(false);
        }
        if same(&at, root) {
            return Ok(true);
        }
        folder = above(&folder)?;
    }
    Ok(false)
}

fn has(found: &Stat, bits: u32) -> bool {
    found.st_mode & bits == bits
}

fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn above(folder: &File) -> Result<File, Errno> {
    Ok(openat(folder, "..", FOLDER, Mode::empty())?.into())
}

/// The folder where an opened file lies. The kernel knows its path.
fn folder_of(file: &File, found: &Stat) -> Result<File, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path: PathBuf =
        std::fs::read_link(link).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::NOENT) };
    let folder: File = rustix::fs::open(folder, FOLDER, Mode::empty())?.into();
    // The file, or a folder above it, may have been renamed meanwhile.
    match same(&statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?, found) {
        true => Ok(folder),
        false => Err(Errno::STALE),
    }
}
