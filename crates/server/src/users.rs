//! The users of mounted file systems, for the principals of the cluster.
//!
//! The entry node finds the user of a principal: in a file of the administrator, or in the user database of the system. A grant for a
//! file of a mount then names this user, and each node opens the file with the identity of the user.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_wire::{FileReader, MAX_READER_GROUPS};
use nix::unistd::{Uid, User, getgrouplist};

use crate::error::{Answer, Refusal};
use crate::limits::{MAX_KNOWN_USERS, MAX_USERS_BYTES, USER_AGE};
use crate::watched_file::WatchedFile;
use crate::{MountUsers, ServerError};

/// Start of the principals that the system has identified.
const BY_NUMBER: &str = "uid:";

/// Number of root.
const ROOT: u32 = 0;

/// Finds the users of principals.
#[derive(Debug)]
pub(crate) enum Users {
    /// No principal is a user.
    None,
    /// Users of the system, with the answers of the last minute.
    System(Mutex<HashMap<Principal, (Instant, FileReader)>>),
    /// Users in a file.
    File(WatchedFile<HashMap<Principal, FileReader>>),
}

impl Users {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// It fails if others may write to the file, or if it is too long or malformed.
    pub fn load(users: &MountUsers) -> Result<Users, ServerError> {
        Ok(match users {
            MountUsers::None => Users::None,
            MountUsers::System => Users::System(Mutex::default()),
            MountUsers::File(path) => Users::File(WatchedFile::read(path, "users", parse)?),
        })
    }

    /// The user whose rights count for a principal on a mount. Nobody becomes root. Blocks.
    ///
    /// # Errors
    /// It fails if the user database of the system does not answer.
    pub fn reader_of(&self, principal: &Principal) -> Answer<FileReader> {
        if *principal == Principal::anonymous() {
            return Ok(FileReader::Everybody);
        }
        match self {
            Users::None => Ok(FileReader::Everybody),
            Users::File(file) => Ok(file.with(|users| users.get(principal).cloned()).unwrap_or_default()),
            Users::System(known) => {
                let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = lock().get(principal).filter(|(at, _)| at.elapsed() < USER_AGE).cloned();
                if let Some((_, reader)) = kept {
                    return Ok(reader);
                }
                let reader = of_system(principal)?;
                let mut known = lock();
                if known.len() >= MAX_KNOWN_USERS {
                    known.clear();
                }
                known.insert(principal.clone(), (Instant::now(), reader.clone()));
                Ok(reader)
            }
        }
    }
}

/// Asks the user database of the system.
fn of_system(principal: &Principal) -> Answer<FileReader> {
    let failed = |error: nix::Error| {
        let text = format!("the user database of the entry node does not answer about {principal}: {error}");
        Refusal::new(ErrorKind::Unavailable, text)
    };
    let user = match principal.as_str().strip_prefix(BY_NUMBER) {
        Some(number) => match number.parse() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => Ok(None),
        },
        None => User::from_name(principal.as_str()),
    };
    let Some(user) = user.map_err(failed)? else { return Ok(FileReader::Everybody) };
    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
    let Ok(name) = CString::new(user.name) else { return Ok(FileReader::Everybody) };
    let groups = getgrouplist(&name, user.gid).map_err(failed)?;
    let groups: Vec<u32> =
        groups.into_iter().map(|group| group.as_raw()).filter(|group| *group != gid).collect();
    if uid == ROOT || groups.len() > MAX_READER_GROUPS {
        return Ok(FileReader::Everybody);
    }
    Ok(FileReader::User { uid, gid, groups })
}

/// Parses a file with `PRINCIPAL UID GID [GID ...]` on each line. Empty lines and lines that begin with # are ignored.
fn parse(path: &Path) -> Result<HashMap<Principal, FileReader>, ServerError> {
    let failed = |source| ServerError::File { verb: "read", path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(failed)?;
    let usage = |text: &str| Err(ServerError::Usage(format!("{}: {text}", path.display())));
    if meta.mode() & 0o022 != 0 {
        return usage("others may change these users; make the file writable by its owner only (chmod 644)");
    }
    if meta.len() > MAX_USERS_BYTES {
        return usage("the file is too long for a file of users; check its name");
    }
    let mut users = HashMap::new();
    for (n, line) in std::fs::read_to_string(path).map_err(failed)?.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line_usage =
            |text: &str| usage(&format!("line {}: {text}; write PRINCIPAL UID GID [GID ...]", n + 1));
        let mut words = line.split_whitespace();
        let Some(Ok(principal)) = words.next().map(str::parse::<Principal>) else {
            return line_usage("the name is not valid");
        };
        let numbers: Result<Vec<u32>, _> = words.map(str::parse).collect();
        let Ok([uid, gid, groups @ ..]) = numbers.as_deref() else {
            return line_usage("users and groups are numbers from 0 to 4294967294");
        };
        if numbers.as_ref().is_ok_and(|numbers| numbers.contains(&u32::MAX)) {
            return line_usage("users and groups are numbers from 0 to 4294967294");
        }
        if *uid == ROOT {
            return line_usage(
                "nodes do not take on the identity of root; name an administrator with --admin",
            );
        }
        if groups.len() > MAX_READER_GROUPS {
            return line_usage(&format!("a user has at most {MAX_READER_GROUPS} groups"));
        }
        let reader = FileReader::User { uid: *uid, gid: *gid, groups: groups.to_vec() };
        if users.insert(principal, reader).is_some() {
            return line_usage("the name was on a line before");
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn principal(name: &str) -> Principal {
        name.parse().unwrap()
    }

    fn file(text: &str) -> (tempfile::TempDir, Result<Users, ServerError>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let users = Users::load(&MountUsers::File(path));
        (dir, users)
    }

    #[test]
    fn a_file_names_users() {
        let (_dir, users) = file("# users\n\nalice 1001 100 27 44\nuid:1002  1002\t1002\n");
        let users = users.unwrap();
        let reader = |name: &str| users.reader_of(&principal(name)).unwrap();
        assert_eq!(reader("alice"), FileReader::User { uid: 1001, gid: 100, groups: vec![27, 44] });
        assert_eq!(reader("uid:1002"), FileReader::User { uid: 1002, gid: 1002, groups: vec![] });
        assert_eq!((reader("bob"), reader("anonymous")), (FileReader::Everybody, FileReader::Everybody));
    }

    #[test]
    fn a_file_with_an_error_is_refused_with_its_line() {
        for line in [
            "alice",
            "alice 1",
            "alice one 2",
            "alice 1 -2",
            "alice 0 0",
            "two/words 1 2",
            "alice 4294967295 1",
            "alice 1 2\nalice 1 2",
        ] {
            let (_dir, users) = file(line);
            let error = users.unwrap_err().to_string();
            assert!(error.contains("line ") && error.contains("PRINCIPAL UID GID"), "{line}: {error}");
        }
        let (dir, _) = file("");
        let path = dir.path().join("users");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Users::load(&MountUsers::File(path)).unwrap_err().to_string().contains("chmod 644"));
    }

    #[test]
    fn users_of_the_system_are_found_by_name_and_by_number() {
        let users = Users::load(&MountUsers::System).unwrap();
        let reader = |name: &str| users.reader_of(&principal(name)).unwrap();
        // 'daemon' has the number 1 on every Linux.
        let daemon = reader("daemon");
        assert!(matches!(daemon, FileReader::User { uid: 1, .. }), "{daemon:?}");
        assert_eq!(reader("uid:1"), daemon);
        for nobody in ["root", "uid:0", "uid:x", "uid:4294967294", "no-such-user", "anonymous"] {
            assert_eq!(reader(nobody), FileReader::Everybody, "{nobody}");
        }
    }
}
