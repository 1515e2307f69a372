//! Operations that run.

use std::collections::VecDeque;
use std::ptr::{NonNull, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::abi::{CCompletion, Functions};

/// Most operations that one call has in flight.
pub const MAX_IN_FLIGHT: usize = 16;

/// An operation that was begun. Dropping waits for its end.
pub(super) struct Begun {
    functions: &'static Functions,
    completion: NonNull<CCompletion>,
}

impl Begun {
    /// Begins an operation with `begin`, which gets the completion.
    pub fn new(
        functions: &'static Functions,
        begin: impl FnOnce(*mut CCompletion) -> i32,
    ) -> Result<Begun, Errno> {
        let mut completion = null_mut();
        // SAFETY: there is no callback, and the library writes one pointer.
        let made =
            unsafe { (functions.rados_aio_create_completion2)(null_mut(), null_mut(), &raw mut completion) };
        checked(made)?;
        let completion = NonNull::new(completion).ok_or(Errno::NOMEM)?;
        if let Err(errno) = checked(begin(completion.as_ptr())) {
            // SAFETY: the operation was not begun, so nobody else has the completion.
            unsafe { (functions.rados_aio_release)(completion.as_ptr()) };
            return Err(errno);
        }
        Ok(Begun { functions, completion })
    }

    /// Waits for the end and returns what the operation returned.
    pub fn end(self) -> Result<u32, Errno> {
        // SAFETY: the completion is alive until it is dropped.
        checked(unsafe {
            (self.functions.rados_aio_wait_for_complete)(self.completion.as_ptr());
            (self.functions.rados_aio_get_return_value)(self.completion.as_ptr())
        })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // SAFETY: the completion is alive. After the wait the library does not touch the buffers of the operation.
        unsafe {
            (self.functions.rados_aio_wait_for_complete)(self.completion.as_ptr());
            (self.functions.rados_aio_release)(self.completion.as_ptr());
        }
    }
}

/// Begins the operations of an iterator, [`MAX_IN_FLIGHT`] at once, and returns what each returned, in their order. All of them have ended then.
pub(super) fn all_ends(operations: impl Iterator<Item = Result<Begun, Errno>>) -> Vec<Result<u32, Errno>> {
    let mut ends = Vec::new();
    let mut running = VecDeque::new();
    let end = |begun: Result<Begun, Errno>| begun.and_then(Begun::end);
    for begun in operations {
        running.push_back(begun);
        if running.len() >= MAX_IN_FLIGHT {
            ends.extend(running.pop_front().map(end));
        }
    }
    ends.extend(running.into_iter().map(end));
    ends
}
