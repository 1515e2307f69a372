//! Calls of methods of object classes, which run in the storage daemon of an object.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{NonNull, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;
use super::abi::{CRead, Functions};
use super::begun::{Begun, all_ends};

/// The input of a method for one object.
pub(crate) struct Call {
    pub name: CString,
    pub input: Vec<u8>,
}

/// An operation with a call, and what the library writes when it has ended.
struct Running {
    functions: &'static Functions,
    operation: *mut CRead,
    output: *mut c_char,
    output_bytes: usize,
    returned: i32,
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the operation has ended, because `call_all` waits for all. The output is memory that the library gave away.
        unsafe {
            (self.functions.rados_release_read_op)(self.operation);
            if !self.output.is_null() {
                (self.functions.rados_buffer_free)(self.output);
            }
        }
    }
}

impl Pool {
    /// Calls a method for objects, [`MAX_IN_FLIGHT`](super::MAX_IN_FLIGHT) at once, and returns what each call gave.
    pub fn call_all(&self, class: &CStr, method: &CStr, calls: &[Call]) -> Vec<Result<Vec<u8>, Errno>> {
        let functions = self.functions;
        let new = |_: &Call| {
            // SAFETY: the operation is released when this is dropped.
            let operation = unsafe { (functions.rados_create_read_op)() };
            Running { functions, operation, output: null_mut(), output_bytes: 0, returned: 0 }
        };
        // The library writes to these until all operations have ended, so the vector does not change its size.
        let mut running: Vec<Running> = calls.iter().map(new).collect();
        let begun = running.iter_mut().zip(calls).map(|(running, call)| {
            // SAFETY: names end with NUL, the input is copied, and the places to write to live until the operation has ended.
            unsafe {
                (functions.rados_read_op_exec)(
                    running.operation,
                    class.as_ptr(),
                    method.as_ptr(),
                    call.input.as_ptr().cast(),
                    call.input.len(),
                    &raw mut running.output,
                    &raw mut running.output_bytes,
                    &raw mut running.returned,
                );
            }
            Begun::new(functions, |completion| {
                // SAFETY: the operation lives until it has ended.
                unsafe {
                    (functions.rados_aio_read_op_operate)(
                        running.operation,
                        self.io(),
                        completion,
                        call.name.as_ptr(),
                        0,
                    )
                }
            })
        });
        let ended = all_ends(begun);
        let output = |(ended, running): (Result<u32, Errno>, &Running)| {
            ended?;
            checked(running.returned)?;
            Ok(match NonNull::new(running.output) {
                // SAFETY: the library gave this many bytes.
                Some(start) if running.output_bytes > 0 => unsafe {
                    std::slice::from_raw_parts(start.as_ptr().cast::<u8>(), running.output_bytes).to_vec()
                },
                _ => Vec::new(),
            })
        };
        ended.into_iter().zip(&running).map(output).collect()
    }
}
