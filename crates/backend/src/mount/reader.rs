//! The user whose rights count when files of a mount are read.

use std::sync::Arc;

/// The user whose rights count when files of a mount are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reader {
    /// The user of this process.
    #[default]
    Process,
    /// No user: only what every user of the file system may read. The bits of a file, and of all folders from it up to the root,
    /// must allow it to its group and to all others.
    Everybody,
    /// One user. The system checks each opening as if the user opened the file. This process needs the capabilities `CAP_SETUID` and
    /// `CAP_SETGID` for that (root has them). Without them, the rights of [`Everybody`](Reader::Everybody) count.
    User(Arc<UnixUser>),
}

/// A user with groups, in the numbers of the file system.
///
/// ```
/// use gristmill_backend::UnixUser;
/// assert_eq!(UnixUser::new(1000, 100, vec![27]).unwrap().uid(), 1000);
/// assert_eq!(UnixUser::new(0, 0, vec![]), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixUser {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl UnixUser {
    /// A user with a primary group and further groups. Returns `None` for root, for the number that systems use for "no user"
    /// (2^32 - 1), and for more than [`MAX_GROUPS`] groups.
    #[must_use]
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Option<UnixUser> {
        let is_user = uid != 0 && ![uid, gid].contains(&u32::MAX) && !groups.contains(&u32::MAX);
        (is_user && groups.len() <= MAX_GROUPS).then_some(UnixUser { uid, gid, groups })
    }

    /// The number of the user.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The number of the primary group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// The numbers of further groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }
}

/// Most groups of a user, without the primary one.
pub const MAX_GROUPS: usize = 1_024;
