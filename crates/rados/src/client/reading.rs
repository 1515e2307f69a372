//! Reading bytes, attributes and entries of objects.

use std::ffi::{CString, c_char};
use std::ptr::{NonNull, null_mut};

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;
use super::abi::{CEntries, Functions};
use super::begun::{Begun, all_ends};

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

impl Pool {
    /// Reads ranges of objects, [`MAX_IN_FLIGHT`] at once, and returns how many bytes of each there are. An object that ends within a range
    /// gives fewer bytes than asked.
    pub fn read_all(&self, readings: &mut [Reading<'_>]) -> Vec<Result<usize, Errno>> {
        // The buffers are borrowed until the function returns, and it returns after all operations have ended.
        let begun = readings.iter_mut().map(|Reading { name, offset, out }| {
            Begun::new(self.functions, |completion| {
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
            })
        });
        all_ends(begun).into_iter().map(|ended| ended.map(|bytes| bytes as usize)).collect()
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
