//! Questions to the monitors.

use std::ffi::CString;
use std::ptr::{null, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;

impl Pool {
    /// Asks the monitors, and returns their answer. `command` is JSON, as the tool `ceph` sends it.
    pub fn ask_monitors(&self, command: &CString) -> Result<Vec<u8>, Errno> {
        let commands = [command.as_ptr()];
        let (mut answer, mut answer_bytes) = (null_mut(), 0);
        // SAFETY: there is one text, which ends with NUL. The library writes a pointer to bytes that it gives away, and their number.
        unsafe {
            let asked = checked((self.functions.rados_mon_command)(
                self.cluster.as_ptr(),
                commands.as_ptr(),
                1,
                null(),
                0,
                &raw mut answer,
                &raw mut answer_bytes,
                null_mut(),
                null_mut(),
            ));
            let bytes = if answer.is_null() {
                Vec::new()
            } else {
                let bytes = std::slice::from_raw_parts(answer.cast::<u8>(), answer_bytes).to_vec();
                (self.functions.rados_buffer_free)(answer);
                bytes
            };
            asked.map(|_| bytes)
        }
    }
}
