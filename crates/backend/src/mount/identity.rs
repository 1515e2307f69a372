//! Work with the identity of another user.
//!
//! Linux keeps identities for each thread. So a thread of its own does the work, and ends. Only its effective user changes: with
//! another real or saved user, the processes of that user could send signals to the thread, and so end this process
//! (`kill(2)`, `credentials(7)`). All capabilities of the thread are dropped, because some of them are rights to read files.

use std::io;

use crate::UnixUser;

/// Whether this process can take on the identity of other users.
#[cfg(target_os = "linux")]
pub(super) fn can_act() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|have| have.effective.contains(needed))
}

/// Calls `act` with the identity of a user, in a thread that ends afterwards.
///
/// # Errors
/// It fails if the thread cannot be started, if it cannot take on the identity, or if `act` panics.
#[cfg(target_os = "linux")]
pub(super) fn act_as<T: Send>(user: &UnixUser, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("as user".into()).spawn_scoped(scope, || {
            take_on(user)?;
            Ok(act())
        })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread with the identity of a user panicked")))
    })
}

#[cfg(target_os = "linux")]
fn take_on(user: &UnixUser) -> io::Result<()> {
    use rustix::process::{Gid, Uid, getegid, geteuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    };

    let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
    let groups: Vec<Gid> = user.groups().iter().map(|group| Gid::from_raw(*group)).collect();
    // The identity of the user is last, because it takes away the right to set the groups.
    set_thread_groups(&groups)?;
    set_thread_res_gid(None, gid, None)?;
    set_thread_res_uid(None, uid, None)?;
    let nothing = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing })?;
    match (geteuid(), getegid()) == (uid, gid) {
        true => Ok(()),
        false => Err(io::Error::other("the system did not change the identity of a thread")),
    }
}

/// Other systems keep the identity for the whole process.
#[cfg(not(target_os = "linux"))]
pub(super) fn can_act() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn act_as<T: Send>(_user: &UnixUser, _act: impl FnOnce() -> T + Send) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rustix::process::{getegid, geteuid, getgid, getgroups, getuid};

    use super::*;

    #[test]
    fn only_the_thread_of_the_work_has_the_identity() {
        if !can_act() {
            eprintln!("skipped: this process cannot take on the identity of other users");
            return;
        }
        let user = UnixUser::new(54_321, 54_322, vec![54_323, 54_324]).unwrap();
        let before = (geteuid(), getegid(), getgroups().unwrap());
        let seen = act_as(&user, || {
            let groups: Vec<u32> = getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
            let capabilities = rustix::thread::capabilities(None).unwrap();
            // Signals of the user's processes are refused because of the real user.
            (
                geteuid().as_raw(),
                getegid().as_raw(),
                groups,
                getuid(),
                getgid(),
                capabilities.permitted.is_empty(),
            )
        });
        let (uid, gid, groups, real_uid, real_gid, is_bare) = seen.unwrap();
        assert_eq!((uid, gid, groups), (54_321, 54_322, vec![54_323, 54_324]));
        assert_eq!((real_uid, real_gid, is_bare), (getuid(), getgid(), true));
        assert_eq!((geteuid(), getegid(), getgroups().unwrap()), before);
    }

    #[test]
    fn a_panic_is_an_error() {
        if can_act() {
            let user = UnixUser::new(54_321, 54_321, vec![]).unwrap();
            assert!(act_as(&user, || panic!("on purpose")).is_err());
        }
    }
}
