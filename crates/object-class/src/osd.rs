//! The interface of an OSD for its classes (`objclass/objclass.h` of Ceph), in C. All `unsafe` code of the crate is here.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

use gristmill_object_fold::{ReadObject, ReadTimes};
use rustix::io::Errno;

use crate::answer;

/// `cls_method_call_t`: a method, which returns 0 or a negative error number.
type Method = unsafe extern "C" fn(*mut c_void, *mut c_char, c_int, *mut *mut c_char, *mut c_int) -> c_int;

/// `CLS_METHOD_RD`: the method only reads.
const READS: c_int = 1;

/// The times of all calls. A daemon has one kind of storage.
static READ_TIMES: ReadTimes = ReadTimes::new();

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
    let folded = catch_unwind(AssertUnwindSafe(|| answer(message, &mut CalledObject::new(context))));
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

/// The object of a call.
struct CalledObject {
    /// The context of the call.
    context: *mut c_void,
    reads_long: bool,
    /// The time of its reads, and their bytes.
    time: Duration,
    bytes: u64,
}

impl CalledObject {
    fn new(context: *mut c_void) -> CalledObject {
        CalledObject { context, reads_long: READ_TIMES.choose_long(), time: Duration::ZERO, bytes: 0 }
    }
}

impl Drop for CalledObject {
    fn drop(&mut self) {
        READ_TIMES.note(self.reads_long, self.time, self.bytes);
    }
}

impl ReadObject for CalledObject {
    type Bytes = OsdBytes;

    fn read(&mut self, offset: u64, length: usize) -> Option<OsdBytes> {
        let begun = Instant::now();
        let bytes = OsdBytes::read(self.context, offset, length)?;
        self.time += begun.elapsed();
        self.bytes += bytes.length as u64;
        Some(bytes)
    }

    fn reads_long(&self) -> bool {
        self.reads_long
    }
}

/// Bytes in memory that the OSD gave away.
struct OsdBytes {
    memory: NonNull<u8>,
    length: usize,
}

impl OsdBytes {
    /// Reads the object of a call. `None` if the OSD cannot read it.
    fn read(context: *mut c_void, offset: u64, length: usize) -> Option<OsdBytes> {
        let (offset, asked) = (c_int::try_from(offset).ok()?, c_int::try_from(length).ok()?);
        let (mut data, mut read) = (null_mut(), 0);
        // SAFETY: the context is that of the call that runs. The OSD writes a pointer to memory that it gives away, and its length.
        let returned = unsafe { cls_read(context, offset, asked, &raw mut data, &raw mut read) };
        let mut bytes = OsdBytes { memory: NonNull::new(data)?.cast(), length: 0 };
        bytes.length = usize::try_from(read).ok().filter(|bytes| returned >= 0 && *bytes <= length)?;
        Some(bytes)
    }
}

impl AsMut<[u8]> for OsdBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory has this many bytes, which the OSD has written, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.length) }
    }
}

impl Drop for OsdBytes {
    fn drop(&mut self) {
        // SAFETY: the memory is freed once.
        unsafe { cls_free(self.memory.as_ptr().cast()) };
    }
}
