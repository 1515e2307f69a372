//! A function that is called when the process ends.

use std::ffi::c_int;
use std::sync::OnceLock;

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

static FUNCTION: OnceLock<fn()> = OnceLock::new();

extern "C" fn call() {
    if let Some(function) = FUNCTION.get() {
        // A panic must not leave a function of C.
        let _ = std::panic::catch_unwind(function);
    }
}

/// Has a function called when the process ends by itself. Only the first function counts.
pub(crate) fn at_exit(function: fn()) {
    if FUNCTION.set(function).is_ok() {
        // SAFETY: the function may be called at any time, and takes and returns nothing. If the system has no room for it, the servers
        // find out by themselves that the client is gone.
        unsafe { atexit(call) };
    }
}
