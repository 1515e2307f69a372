//! Opening of paths that stay below a folder, whatever links and renames there are (`openat2(2)`, `RESOLVE_BENEATH`).

use std::fs::File;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{BackendError, Key};

/// Tries of one call. The kernel asks for another if a folder above was renamed meanwhile.
#[cfg(target_os = "linux")]
const MAX_TRIES: usize = 32;

/// Where symbolic links may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolve {
    /// Not out of the folder.
    Beneath,
    /// Anywhere.
    Anywhere,
}

/// Opens the file or folder of a key below a folder.
#[cfg(target_os = "linux")]
pub(super) fn open_beneath(folder: &File, key: &Key, flags: OFlags) -> Result<File, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let path = if key.is_root() { "." } else { key.as_str() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 1;
    loop {
        match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(opened) => return Ok(opened.into()),
            Err(Errno::AGAIN) if tries < MAX_TRIES => tries += 1,
            // A kernel before 5.6, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_without_links(folder, key, flags),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_beneath(folder: &File, key: &Key, flags: OFlags) -> Result<File, Errno> {
    open_without_links(folder, key, flags)
}

/// Opens part after part, and follows no link. The error is [`Errno::LOOP`] if a part is a link.
fn open_without_links(folder: &File, key: &Key, flags: OFlags) -> Result<File, Errno> {
    use rustix::fs::{AtFlags, FileType, openat, statat};

    let open = |at: &File, part: &str, flags: OFlags| {
        let found = statat(at, part, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        // If a link takes the name now, it is opened itself or refused.
        openat(at, part, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map(File::from)
    };
    let parts: Vec<&str> = key.as_str().split('/').collect();
    let Some((last, above)) = parts.split_last().filter(|_| !key.is_root()) else {
        return Ok(openat(folder, ".", flags | OFlags::CLOEXEC, Mode::empty())?.into());
    };
    let mut at: Option<File> = None;
    for part in above {
        at = Some(open(at.as_ref().unwrap_or(folder), part, OFlags::PATH | OFlags::DIRECTORY)?);
    }
    open(at.as_ref().unwrap_or(folder), last, flags)
}

/// Whether a part of a key is a symbolic link, as far as its parts exist.
pub(super) fn has_link(folder: &File, key: &Key) -> bool {
    use rustix::fs::{AtFlags, FileType, statat};

    let ends = key.as_str().match_indices('/').map(|(end, _)| end).chain([key.as_str().len()]);
    for end in ends {
        match statat(folder, &key.as_str()[..end], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

/// The error of a path that cannot be opened.
pub(super) fn explain(verb: &'static str, name: String, errno: Errno) -> BackendError {
    match errno {
        Errno::XDEV | Errno::LOOP => {
            let why = "a symbolic link on the way leads out of the tree or in a circle, or this system follows none; put the file itself there";
            BackendError::Denied { name, why: why.to_owned() }
        }
        errno => BackendError::io(verb, name, errno.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn without_the_call_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/file"), b"1").unwrap();
        std::os::unix::fs::symlink("file", dir.path().join("a/link")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let folder = File::open(dir.path()).unwrap();
        for flags in [OFlags::RDONLY, OFlags::PATH] {
            let open = |key: &str| open_without_links(&folder, &Key::new(key).unwrap(), flags);
            assert_eq!(open("a/file").unwrap().metadata().unwrap().len(), 1);
            assert!(open("").unwrap().metadata().unwrap().is_dir());
            for link in ["a/link", "b/file", "b"] {
                assert_eq!(open(link).err(), Some(Errno::LOOP), "{link}");
            }
            assert_eq!(open("a/nothing").err(), Some(Errno::NOENT));
            assert_eq!(open("a/file/x").err(), Some(Errno::NOTDIR));
        }
    }
}
