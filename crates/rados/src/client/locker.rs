//! Locks of objects, and shutting out a process that had one.
//!
//! The daemon that has the object keeps its locks, and ends each by its own clock. One client may have the lock [`OWNED`] alone. Many may have
//! [`SHARED`], each with a text of its own.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::time::Duration;

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;
use super::abi;

/// Bytes for each list of those who have a lock, at first.
const LIST_BYTES: usize = 4_096;

/// Most bytes for each list of those who have a lock.
const MAX_LIST_BYTES: usize = 1 << 20;

/// The lock that one client has alone.
pub(crate) const OWNED: &CStr = c"gristmill";

/// The lock that many clients have together.
pub(crate) const SHARED: &CStr = c"node";

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locker {
    /// The client as Ceph numbers it.
    client: CString,
    /// The text that the holder gave with the lock.
    pub cookie: CString,
}

impl Pool {
    /// Takes the lock [`OWNED`] for some time, or renews it if this client has it with this cookie. It fails with `EBUSY` if another one has
    /// it.
    pub fn lock(&self, name: &CString, cookie: &CString, time: Duration) -> Result<(), Errno> {
        let mut time = duration(time);
        // SAFETY: the texts end with NUL, and the library reads the time.
        checked(unsafe {
            (self.functions.rados_lock_exclusive)(
                self.io(),
                name.as_ptr(),
                OWNED.as_ptr(),
                cookie.as_ptr(),
                c"".as_ptr(),
                &raw mut time,
                abi::MAY_RENEW,
            )
        })
        .map(drop)
    }

    /// Takes the lock [`SHARED`] for some time beside others, or renews it.
    pub fn share(&self, name: &CString, cookie: &CString, time: Duration) -> Result<(), Errno> {
        let mut time = duration(time);
        // SAFETY: the texts end with NUL, and the library reads the time.
        checked(unsafe {
            (self.functions.rados_lock_shared)(
                self.io(),
                name.as_ptr(),
                SHARED.as_ptr(),
                cookie.as_ptr(),
                c"".as_ptr(),
                c"".as_ptr(),
                &raw mut time,
                abi::MAY_RENEW,
            )
        })
        .map(drop)
    }

    /// Gives a lock back.
    pub fn unlock(&self, name: &CString, lock: &CStr, cookie: &CString) -> Result<(), Errno> {
        // SAFETY: the texts end with NUL.
        checked(unsafe {
            (self.functions.rados_unlock)(self.io(), name.as_ptr(), lock.as_ptr(), cookie.as_ptr())
        })
        .map(drop)
    }

    /// Those who have a lock of an object. There are none of an object that does not exist.
    pub fn lockers(&self, name: &CString, lock: &CStr) -> Result<Vec<Locker>, Errno> {
        let mut room = LIST_BYTES;
        loop {
            match self.list_lockers(name, lock, room) {
                // The list may have become longer than the library said.
                Err(Errno::RANGE) if room < MAX_LIST_BYTES => room *= 4,
                other => return other,
            }
        }
    }

    /// Those who have a lock. It fails with `ERANGE` if one of the lists needs more bytes than there is room for.
    fn list_lockers(&self, name: &CString, lock: &CStr, room: usize) -> Result<Vec<Locker>, Errno> {
        let mut buffers: [Vec<u8>; 4] = std::array::from_fn(|_| vec![0; room]);
        let mut lengths = [room; 4];
        let mut exclusive = 0;
        let [tag, clients, cookies, addresses] =
            buffers.each_mut().map(|buffer| buffer.as_mut_ptr().cast::<c_char>());
        let [tag_bytes, client_bytes, cookie_bytes, address_bytes] =
            lengths.each_mut().map(|length| &raw mut *length);
        // SAFETY: the texts end with NUL, and the library writes at most the bytes of each buffer.
        let count = unsafe {
            (self.functions.rados_list_lockers)(
                self.io(),
                name.as_ptr(),
                lock.as_ptr(),
                &raw mut exclusive,
                tag,
                tag_bytes,
                clients,
                client_bytes,
                cookies,
                cookie_bytes,
                addresses,
                address_bytes,
            )
        };
        let count = i32::try_from(count).map_err(|_| Errno::OVERFLOW)?;
        let count = match checked(count) {
            Err(Errno::NOENT) => 0,
            other => other?,
        };
        let [_, clients, cookies, _] = &buffers;
        let holders = texts(clients, count)?.into_iter().zip(texts(cookies, count)?);
        Ok(holders.map(|(client, cookie)| Locker { client, cookie }).collect())
    }

    /// Takes a lock away from somebody.
    pub fn break_lock(&self, name: &CString, lock: &CStr, locker: &Locker) -> Result<(), Errno> {
        // SAFETY: the texts end with NUL.
        checked(unsafe {
            (self.functions.rados_break_lock)(
                self.io(),
                name.as_ptr(),
                lock.as_ptr(),
                locker.client.as_ptr(),
                locker.cookie.as_ptr(),
            )
        })
        .map(drop)
    }

    /// The addresses of this client, by which others can shut it out.
    pub fn addresses(&self) -> Result<CString, Errno> {
        let mut text = null_mut();
        // SAFETY: the library writes one pointer to a text that it gives away.
        checked(unsafe { (self.functions.rados_getaddrs)(self.cluster.as_ptr(), &raw mut text) })?;
        if text.is_null() {
            return Err(Errno::ADDRNOTAVAIL);
        }
        // SAFETY: the text ends with NUL, and is freed once.
        unsafe {
            let addresses = CStr::from_ptr(text).to_owned();
            (self.functions.rados_buffer_free)(text);
            Ok(addresses)
        }
    }

    /// Has the storage daemons refuse everything from the client with these addresses. They know it before they do anything that this client
    /// asks for later.
    pub fn shut_out(&self, addresses: &CString, time: Duration) -> Result<(), Errno> {
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        // SAFETY: the text ends with NUL.
        unsafe {
            checked((self.functions.rados_blocklist_add)(
                self.cluster.as_ptr(),
                addresses.as_ptr(),
                seconds,
            ))?;
            checked((self.functions.rados_wait_for_latest_osdmap)(self.cluster.as_ptr())).map(drop)
        }
    }
}

/// A time as the library wants it.
fn duration(time: Duration) -> abi::Duration {
    abi::Duration { seconds: time.as_secs().cast_signed(), microseconds: i64::from(time.subsec_micros()) }
}

/// The first texts of a list. Each ends with NUL.
fn texts(bytes: &[u8], count: u32) -> Result<Vec<CString>, Errno> {
    let mut rest = bytes;
    let next = |_| {
        let text = CStr::from_bytes_until_nul(rest).map_err(|_| Errno::ILSEQ)?;
        rest = rest.get(text.count_bytes() + 1..).unwrap_or_default();
        Ok(text.to_owned())
    };
    (0..count).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_texts_are_taken_apart() {
        assert_eq!(texts(b"a\0bc\0\0rest", 2), Ok(vec![c"a".to_owned(), c"bc".to_owned()]));
        assert_eq!(texts(b"a\0\0", 2), Ok(vec![c"a".to_owned(), c"".to_owned()]));
        assert_eq!(texts(b"", 0), Ok(Vec::new()));
        for (wrong, count) in [(&b"a"[..], 1), (b"a\0", 2), (b"", 1)] {
            assert_eq!(texts(wrong, count), Err(Errno::ILSEQ));
        }
    }
}
