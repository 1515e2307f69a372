//! The user whose rights count.

use std::ffi::c_uint;
use std::ptr::NonNull;

use super::abi::functions;
use super::abi::{CUser, Functions};

/// A user with groups. The library checks the mode and the access control list of a file for this user.
pub(crate) struct User {
    handle: NonNull<CUser>,
    functions: &'static Functions,
    /// The library keeps a pointer to these.
    _groups: Box<[c_uint]>,
}

// SAFETY: the library only reads the user after it was made.
unsafe impl Send for User {}
// SAFETY: as for `Send`.
unsafe impl Sync for User {}

impl User {
    /// A user. `None` if the library is not loaded, or if there is no memory.
    pub fn new(uid: u32, gid: u32, groups: &[u32]) -> Option<User> {
        let functions = functions().ok()?;
        let groups: Box<[c_uint]> = groups.into();
        let count = i32::try_from(groups.len()).ok()?;
        // SAFETY: the pointer is that of `count` numbers, which live as long as the user.
        let handle = unsafe { (functions.ceph_userperm_new)(uid, gid, count, groups.as_ptr()) };
        Some(User { handle: NonNull::new(handle)?, functions, _groups: groups })
    }

    pub(super) fn handle(&self) -> *const CUser {
        self.handle.as_ptr()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: the library made it, and nobody uses it any more.
        unsafe { (self.functions.ceph_userperm_destroy)(self.handle.as_ptr()) }
    }
}
