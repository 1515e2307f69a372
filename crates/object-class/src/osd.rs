//! The interface of an OSD for its classes (`objclass/objclass.h` of Ceph), in C. All `unsafe` code of the crate is here.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;

use crate::answer;

/// `cls_method_call_t`: a method, which returns 0 or a negative error number.
type Method = unsafe extern "C" fn(*mut c_void, *mut c_char, c_int, *mut *mut c_char, *mut c_int) -> c_int;

/// `CLS_METHOD_RD`: the method only reads.
const READS: c_int = 1;

const CLASS: &CStr = c"gristmill";
const METHOD: &CStr = c"fold";

unsafe extern "C" {
    fn cls_register(name: *const c_char, class: *mut *mut c_void) -> c_int;
    fn cls_register_method(
        class: *mut c_void,
        name: *const c_char,
        flags: c_int,
        method: Method,
        registered: *mut *mut c_void,
    ) -> c_int;
    fn cls_read(
        context: *mut c_void,
        offset: c_int,
        length: c_int,
        data: *mut *mut c_char,
        read: *mut c_int,
    ) -> c_int;
    fn cls_alloc(bytes: usize) -> *mut c_void;
    fn cls_free(memory: *mut c_void);
}

/// Called by the OSD when it has loaded the library.
// SAFETY: the OSD looks for this name, and no other library has it: symbols of classes are local to them.
#[unsafe(no_mangle)]
pub extern "C" fn __cls_init() {
    let (mut class, mut method) = (null_mut(), null_mut());
    // SAFETY: the names end with NUL, and the OSD writes one pointer each. It keeps the method as long as the library is loaded.
    unsafe {
        if cls_register(CLASS.as_ptr(), &raw mut class) >= 0 {
            cls_register_method(class, METHOD.as_ptr(), READS, fold, &raw mut method);
        }
    }
}

/// The method `fold`.
unsafe extern "C" fn fold(
    context: *mut c_void,
    input: *mut c_char,
    input_length: c_int,
    output: *mut *mut c_char,
    output_length: *mut c_int,
) -> c_int {
    let message = match (NonNull::new(input), usize::try_from(input_length)) {
        // SAFETY: the OSD gives bytes of this length, which stay until the method returns.
        (Some(input), Ok(length)) => unsafe {
            std::slice::from_raw_parts(input.as_ptr().cast::<u8>(), length)
        },
        _ => &[],
    };
    let folded = catch_unwind(AssertUnwindSafe(|| {
        answer(message, &mut |offset, buffer: &mut [u8]| read(context, offset, buffer))
    }));
    match folded.unwrap_or(Err(Errno::NOTRECOVERABLE)) {
        // SAFETY: the OSD gives places for a pointer and a length.
        Ok(answer) => unsafe { give(&answer, output, output_length) },
        Err(errno) => -errno.raw_os_error(),
    }
}

/// Gives an answer to the OSD.
///
/// # Safety
/// `output` and `output_length` can be written to.
unsafe fn give(answer: &[u8], output: *mut *mut c_char, output_length: *mut c_int) -> c_int {
    let Ok(length) = c_int::try_from(answer.len()) else { return -Errno::TOOBIG.raw_os_error() };
    // SAFETY: the memory has the length of the answer. The OSD frees what `cls_alloc` gave.
    unsafe {
        let memory = cls_alloc(answer.len().max(1)).cast::<u8>();
        if memory.is_null() {
            return -Errno::NOMEM.raw_os_error();
        }
        memory.copy_from_nonoverlapping(answer.as_ptr(), answer.len());
        *output = memory.cast();
        *output_length = length;
    }
    0
}

/// Reads the object of a call. `None` if the OSD cannot read it.
fn read(context: *mut c_void, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    let (offset, length) = (c_int::try_from(offset).ok()?, c_int::try_from(buffer.len()).ok()?);
    let (mut data, mut read) = (null_mut(), 0);
    // SAFETY: the context is that of the call that runs. The OSD writes a pointer to memory that it gives away, and its length.
    let returned = unsafe { cls_read(context, offset, length, &raw mut data, &raw mut read) };
    let data = NonNull::new(data)?;
    let bytes = usize::try_from(read).ok().filter(|bytes| returned >= 0 && *bytes <= buffer.len());
    // SAFETY: the memory has this many bytes, which the buffer has room for, and is freed once.
    unsafe {
        if let Some(bytes) = bytes {
            data.as_ptr().cast::<u8>().copy_to_nonoverlapping(buffer.as_mut_ptr(), bytes);
        }
        cls_free(data.as_ptr().cast());
    }
    bytes
}
