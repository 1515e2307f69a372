//! The user whose rights count.

use gristmill_backend::{BackendError, Reader, Result};

use crate::client::{Attributes, User};

/// The number of a user that no file has: that of nobody in particular.
const STRANGER: u32 = u32::MAX - 2;

/// Bits to read a file, for group and others.
const READ: u16 = 0o044;

/// Bits to search a folder, for group and others.
const SEARCH: u16 = 0o011;

/// A user, as the library checks rights.
pub(crate) struct ReadingUser {
    pub user: User,
    /// Whether the bits for group and others must allow it.
    is_everybody: bool,
    /// Whether the library refuses nothing.
    pub is_root: bool,
}

impl ReadingUser {
    /// The user of a reader. The library must be loaded.
    ///
    /// # Errors
    /// It fails if there is no memory.
    pub fn of(reader: &Reader) -> Result<ReadingUser> {
        let process = || {
            let groups = rustix::process::getgroups().unwrap_or_default();
            let groups: Vec<u32> = groups.iter().map(|group| group.as_raw()).collect();
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), groups)
        };
        let (uid, gid, groups) = match reader {
            Reader::Process => process(),
            Reader::Everybody => (STRANGER, STRANGER, Vec::new()),
            Reader::User(user) => (user.uid(), user.gid(), user.groups().to_vec()),
        };
        let user = User::new(uid, gid, &groups);
        let user = user.ok_or(BackendError::Internal {
            what: "a user was made before the library of Ceph was loaded",
        })?;
        Ok(ReadingUser { user, is_everybody: *reader == Reader::Everybody, is_root: uid == 0 })
    }

    /// Whether the bits of a folder refuse it to everybody, and those count.
    pub fn may_not_search(&self, folder: &Attributes) -> bool {
        self.is_everybody && folder.mode & SEARCH != SEARCH
    }

    /// Whether the bits of a file or folder refuse it to everybody, and those count.
    pub fn may_not_read(&self, found: &Attributes) -> bool {
        self.is_everybody && found.mode & READ != READ
    }
}
