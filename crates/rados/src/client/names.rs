//! The names of all objects of a namespace.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;

impl Pool {
    /// Calls `each` with the name of every object, in the order of their hashes. Names that are no text are left out.
    pub fn for_each_name(&self, mut each: impl FnMut(&str)) -> Result<(), Errno> {
        let mut list = null_mut();
        // SAFETY: the library writes one pointer.
        checked(unsafe { (self.functions.rados_nobjects_list_open)(self.io(), &raw mut list) })?;
        let ended = loop {
            let mut name = null();
            // SAFETY: the list is open, and the library writes one pointer. The text that it names lives until the next call.
            let next = checked(unsafe {
                (self.functions.rados_nobjects_list_next)(list, &raw mut name, null_mut(), null_mut())
            });
            match next {
                Ok(_) if name.is_null() => break Ok(()),
                // SAFETY: as above; the text ends with NUL.
                Ok(_) => unsafe { CStr::from_ptr(name) }.to_str().map_or((), &mut each),
                Err(Errno::NOENT) => break Ok(()),
                Err(errno) => break Err(errno),
            }
        };
        // SAFETY: the list is open and not used again.
        unsafe { (self.functions.rados_nobjects_list_close)(list) };
        ended
    }
}
