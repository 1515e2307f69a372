//! Permissions of a target's files: only the user of its node has access. Other users of the machine use the node,
//! which checks their identity.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gristmill_store::{make_directory, sync_name};

use crate::ServerError;
use crate::limits::MAX_TARGET_LEVELS;
use crate::target::{CACHE_FOLDER, ID_FILE};

/// Permission bits of a target's directories and files.
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// Permission bits of all users but the owner, and the bits among them that allow writes.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// Directories of a target that may be symbolic links to another disk.
const LINKED: [&str; 3] = ["objects", "statistics", CACHE_FOLDER];

/// Directory in the root of a file system. It does not belong to the target, and only root may change it.
const OF_FILE_SYSTEM: &str = "lost+found";

/// Makes the directory of a target, or removes all permissions of other users from an existing one.
///
/// Returns a message for the log if others could read its files.
///
/// # Errors
/// Returns [`ServerError::Usage`] if others may write in the directory, since its files may be theirs, or if others may
/// read it and it has other content than a target. Returns [`ServerError::File`] if something cannot be read or
/// changed.
pub(crate) fn close_to_others(dir: &Path) -> Result<Option<String>, ServerError> {
    let failed = |verb, path: &Path| {
        let path = path.to_owned();
        move |source| ServerError::File { verb, path, source }
    };
    let meta = match fs::metadata(dir) {
        Ok(meta) => {
            sync_name(dir).map_err(failed("sync the directory above", dir))?;
            meta
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                make_directory(parent).map_err(failed("make", parent))?;
            }
            DirBuilder::new().mode(DIRECTORY).create(dir).map_err(failed("make", dir))?;
            sync_name(dir).map_err(failed("sync the directory above", dir))?;
            return Ok(None);
        }
        Err(error) => return Err(failed("read", dir)(error)),
    };
    if meta.mode() & OTHERS_WRITE != 0 {
        return Err(ServerError::Usage(format!(
            "others may write in {0}, and so change stored files; check the files in it, then close it: chmod 700 {0}",
            dir.display()
        )));
    }
    let was_open = meta.mode() & OTHERS != 0;
    if was_open && !is_target(dir) && !is_empty(dir).map_err(failed("read", dir))? {
        return Err(ServerError::Usage(format!(
            "{} holds other files, and a target is closed to all other users; name a directory for the target alone",
            dir.display()
        )));
    }
    if was_open {
        // The directory is closed first, so that no other user enters while the files are changed.
        fs::set_permissions(dir, Permissions::from_mode(DIRECTORY)).map_err(failed("close", dir))?;
    }
    let linked = LINKED.iter().map(|name| dir.join(name)).filter(|path| path.is_symlink());
    let mut changed = 0;
    for root in linked.chain(was_open.then(|| dir.to_owned())) {
        let open = fs::metadata(&root).is_ok_and(|meta| meta.mode() & OTHERS != 0);
        if open || was_open {
            changed += tighten(&root).map_err(|(path, source)| failed("close", &path)(source))?;
        }
    }
    Ok((changed > 0).then(|| {
        format!("others on this machine could read what lies in {}; now only its owner can", dir.display())
    }))
}

/// Whether a node uses this directory as its target.
fn is_target(dir: &Path) -> bool {
    [ID_FILE, "objects/meta.sqlite"].iter().any(|name| dir.join(name).exists())
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if entry?.file_name() != OF_FILE_SYSTEM {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets the permission bits of a directory and all files in it. Symbolic links in it are not followed. Returns the
/// number of changed files.
fn tighten(root: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| (path, source)
    };
    fs::set_permissions(root, Permissions::from_mode(DIRECTORY)).map_err(failed(root))?;
    let (mut changed, mut rest) = (0, vec![(root.to_owned(), 0)]);
    while let Some((folder, level)) = rest.pop() {
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let path = entry.path();
            if level == 0 && entry.file_name() == OF_FILE_SYSTEM {
                continue;
            }
            let kind = entry.file_type().map_err(failed(&path))?;
            let (bits, wanted) = match (kind.is_dir(), kind.is_file()) {
                (true, _) if level < MAX_TARGET_LEVELS => {
                    rest.push((path.clone(), level + 1));
                    (entry.metadata().map_err(failed(&path))?.mode(), DIRECTORY)
                }
                (_, true) => (entry.metadata().map_err(failed(&path))?.mode(), FILE),
                _ => continue,
            };
            if bits & OTHERS != 0 {
                fs::set_permissions(&path, Permissions::from_mode(wanted)).map_err(failed(&path))?;
                changed += u64::from(kind.is_file());
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_target_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("deep/er/target");
        assert_eq!(close_to_others(&target).unwrap(), None);
        assert_eq!(mode(&target), 0o700);
        assert_eq!(close_to_others(&target).unwrap(), None);
    }

    #[test]
    fn an_old_target_is_closed_with_all_that_lies_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (target, disk) = (dir.path().join("target"), dir.path().join("disk"));
        fs::create_dir_all(target.join("statistics/a")).unwrap();
        fs::create_dir_all(disk.join("ab")).unwrap();
        fs::write(target.join("statistics/a/file"), "x").unwrap();
        fs::write(disk.join("ab/object"), "x").unwrap();
        fs::write(dir.path().join("elsewhere"), "x").unwrap();
        fs::write(target.join(ID_FILE), "x").unwrap();
        symlink(&disk, target.join("objects")).unwrap();
        symlink(dir.path().join("elsewhere"), target.join("link")).unwrap();
        for open in [&target, &disk, &target.join("statistics"), &disk.join("ab")] {
            set(open, 0o755);
        }
        for open in ["target/statistics/a/file", "disk/ab/object", "elsewhere"] {
            set(&dir.path().join(open), 0o644);
        }
        assert!(close_to_others(&target).unwrap().is_some_and(|said| said.contains("could read")));
        for closed in [&target, &disk, &target.join("statistics"), &disk.join("ab")] {
            assert_eq!(mode(closed), 0o700, "{}", closed.display());
        }
        assert_eq!(mode(&target.join("statistics/a/file")), 0o600);
        assert_eq!(mode(&disk.join("ab/object")), 0o600);
        assert_eq!(mode(&dir.path().join("elsewhere")), 0o644);
        assert_eq!(close_to_others(&target).unwrap(), None);
    }

    #[test]
    fn a_directory_with_other_files_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir_all(home.join(OF_FILE_SYSTEM)).unwrap();
        set(&home, 0o755);
        assert_eq!(close_to_others(&home).unwrap(), None);
        assert_eq!(mode(&home), 0o700);
        fs::write(home.join("letter"), "x").unwrap();
        assert_eq!(close_to_others(&home).unwrap(), None);
        set(&home, 0o755);
        let refused = close_to_others(&home).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|said| said.contains("holds other files")));
        assert_eq!(mode(&home), 0o755);
    }

    #[test]
    fn a_target_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for open in [0o720, 0o702, 0o777] {
            set(dir.path(), open);
            let refused = close_to_others(dir.path()).map_err(|error| (error.is_usage(), error.to_string()));
            assert!(refused.is_err_and(|(usage, said)| usage && said.contains("chmod 700")));
            assert_eq!(mode(dir.path()), open);
        }
    }
}
