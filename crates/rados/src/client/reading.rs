//! Reading bytes, attributes and entries of objects.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};
use std::ptr::{NonNull, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;
use super::abi::{CCompletion, CEntries, Functions};

/// Most operations that one call has in flight.
pub const MAX_IN_FLIGHT: usize = 16;

/// Most keys of entries that are asked for at once. Ceph returns 1,024 by default.
const KEYS_AT_ONCE: u64 = 1_024;

/// Most bytes of an attribute of a RADOS object that are read.
const MAX_ATTRIBUTE: usize = 4_096;

/// A range of an object to be read.
pub(crate) struct Reading<'a> {
    pub name: CString,
    pub offset: u64,
    pub out: &'a mut [u8],
}

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

impl Pool {
    /// Reads ranges of objects, [`MAX_IN_FLIGHT`] at once, and returns how many bytes of each there are. An object that ends within a range
    /// gives fewer bytes than asked.
    pub fn read_all(&self, readings: &mut [Reading<'_>]) -> Vec<Result<usize, Errno>> {
        let mut read = Vec::with_capacity(readings.len());
        // The buffers are borrowed until the function returns, and it returns after all operations have ended.
        let mut begun: VecDeque<Result<Begun, Errno>> = VecDeque::new();
        let end = |begun: Option<Result<Begun, Errno>>| {
            begun.map(|begun| begun.and_then(Begun::end).map(|bytes| bytes as usize))
        };
        for reading in readings {
            if begun.len() >= MAX_IN_FLIGHT {
                read.extend(end(begun.pop_front()));
            }
            let Reading { name, offset, out } = reading;
            begun.push_back(Begun::new(self.functions, |completion| {
                // SAFETY: the name ends with NUL and is copied; the buffer lives until the operation has ended (see above).
                unsafe {
                    (self.functions.rados_aio_read)(
                        self.io(),
                        name.as_ptr(),
                        completion,
                        out.as_mut_ptr().cast(),
                        out.len(),
                        *offset,
                    )
                }
            }));
        }
        while let Some(ended) = end(begun.pop_front()) {
            read.push(ended);
        }
        read
    }

    /// The value of an attribute of an object, or `None` if it has none.
    pub fn attribute(&self, name: &CString, attribute: &CString) -> Result<Option<Vec<u8>>, Errno> {
        let mut value = vec![0_u8; MAX_ATTRIBUTE];
        // SAFETY: the names end with NUL, and the library writes at most the bytes of the buffer.
        let read = checked(unsafe {
            (self.functions.rados_getxattr)(
                self.io(),
                name.as_ptr(),
                attribute.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
            )
        });
        match read {
            Ok(bytes) => {
                value.truncate(bytes as usize);
                Ok(Some(value))
            }
            Err(Errno::NODATA | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The value of an entry of an object, or `None` if it has no such entry.
    pub fn entry(&self, name: &CString, key: &str) -> Result<Option<Vec<u8>>, Errno> {
        let (keys, lengths) = ([key.as_ptr().cast::<c_char>()], [key.len()]);
        let (mut entries, mut returned) = (null_mut(), 0);
        self.read_entries(name, &mut entries, |operation, entries| {
            // SAFETY: the arrays have one element each; what the library writes lives until the operation has ended.
            unsafe {
                (self.functions.rados_read_op_omap_get_vals_by_keys2)(
                    operation,
                    keys.as_ptr(),
                    1,
                    lengths.as_ptr(),
                    entries,
                    &raw mut returned,
                );
            }
        })?;
        let found = Entries { functions: self.functions, entries };
        checked(returned)?;
        Ok(found.next()?.map(|(_, value)| value))
    }

    /// The keys of all entries of an object, in bytewise order.
    pub fn entry_keys(&self, name: &CString) -> Result<Vec<String>, Errno> {
        let mut keys: Vec<String> = Vec::new();
        loop {
            let after = CString::new(keys.last().map_or("", String::as_str)).map_err(|_| Errno::INVAL)?;
            let (mut entries, mut more, mut returned) = (null_mut(), 0, 0);
            self.read_entries(name, &mut entries, |operation, entries| {
                // SAFETY: the text ends with NUL; what the library writes lives until the operation has ended.
                unsafe {
                    (self.functions.rados_read_op_omap_get_keys2)(
                        operation,
                        after.as_ptr(),
                        KEYS_AT_ONCE,
                        entries,
                        &raw mut more,
                        &raw mut returned,
                    );
                }
            })?;
            let found = Entries { functions: self.functions, entries };
            checked(returned)?;
            let before = keys.len();
            while let Some((key, _)) = found.next()? {
                keys.push(key);
            }
            if more == 0 || keys.len() == before {
                return Ok(keys);
            }
        }
    }

    /// Runs an operation that reads entries, whose actions `add` gives.
    fn read_entries(
        &self,
        name: &CString,
        entries: &mut *mut CEntries,
        add: impl FnOnce(*mut super::abi::CRead, *mut *mut CEntries),
    ) -> Result<(), Errno> {
        // SAFETY: the operation is released below; the name ends with NUL.
        unsafe {
            let operation = (self.functions.rados_create_read_op)();
            add(operation, &raw mut *entries);
            let read =
                checked((self.functions.rados_read_op_operate)(operation, self.io(), name.as_ptr(), 0));
            (self.functions.rados_release_read_op)(operation);
            read.map(drop)
        }
    }
}

/// Entries that were read.
struct Entries {
    functions: &'static Functions,
    entries: *mut CEntries,
}

impl Entries {
    /// The next key with its value.
    fn next(&self) -> Result<Option<(String, Vec<u8>)>, Errno> {
        if self.entries.is_null() {
            return Ok(None);
        }
        let (mut key, mut value, mut key_bytes, mut value_bytes) = (null_mut(), null_mut(), 0, 0);
        // SAFETY: the library writes two pointers and two lengths. What they name lives until the entries are dropped.
        unsafe {
            checked((self.functions.rados_omap_get_next2)(
                self.entries,
                &raw mut key,
                &raw mut value,
                &raw mut key_bytes,
                &raw mut value_bytes,
            ))?;
            if key.is_null() {
                return Ok(None);
            }
            let bytes = |start: *mut c_char, length: usize| match NonNull::new(start) {
                Some(start) if length > 0 => {
                    std::slice::from_raw_parts(start.as_ptr().cast::<u8>(), length).to_vec()
                }
                _ => Vec::new(),
            };
            let key = String::from_utf8(bytes(key, key_bytes)).map_err(|_| Errno::ILSEQ)?;
            Ok(Some((key, bytes(value, value_bytes))))
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        if !self.entries.is_null() {
            // SAFETY: the entries are alive and not used again.
            unsafe { (self.functions.rados_omap_get_end)(self.entries) };
        }
    }
}
