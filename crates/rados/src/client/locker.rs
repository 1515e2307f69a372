//! Locks of objects, and shutting out a process that had one.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::time::Duration;

use gristmill_ceph::checked;
use rustix::io::Errno;

use super::Pool;
use super::abi;

/// Bytes for the name and the address of who has a lock.
const LOCKER_BYTES: usize = 1_024;

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locker {
    /// The client as Ceph numbers it.
    client: CString,
    /// The text that the holder gave with the lock.
    pub cookie: CString,
}

impl Pool {
    /// Takes a lock for some time, or renews it if this client has it with this cookie. It fails with `EBUSY` if another one has it.
    pub fn lock(&self, name: &CString, cookie: &CString, time: Duration) -> Result<(), Errno> {
        let mut time = abi::Duration {
            seconds: time.as_secs().cast_signed(),
            microseconds: i64::from(time.subsec_micros()),
        };
        // SAFETY: the texts end with NUL, and the library reads the time.
        checked(unsafe {
            (self.functions.rados_lock_exclusive)(
                self.io(),
                name.as_ptr(),
                LOCK.as_ptr(),
                cookie.as_ptr(),
                c"".as_ptr(),
                &raw mut time,
                abi::MAY_RENEW,
            )
        })
        .map(drop)
    }

    /// Gives a lock back.
    pub fn unlock(&self, name: &CString, cookie: &CString) -> Result<(), Errno> {
        // SAFETY: the texts end with NUL.
        checked(unsafe {
            (self.functions.rados_unlock)(self.io(), name.as_ptr(), LOCK.as_ptr(), cookie.as_ptr())
        })
        .map(drop)
    }

    /// The holder of the lock. `None` if nobody has it.
    pub fn locker(&self, name: &CString) -> Result<Option<Locker>, Errno> {
        let mut buffers = [[0_u8; LOCKER_BYTES]; 4];
        let mut lengths = [LOCKER_BYTES; 4];
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
                LOCK.as_ptr(),
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
        match checked(count) {
            Err(Errno::NOENT) | Ok(0) => return Ok(None),
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
        let text =
            |bytes: &[u8]| CStr::from_bytes_until_nul(bytes).map(CStr::to_owned).map_err(|_| Errno::ILSEQ);
        let [_, client, cookie, _] = &buffers;
        Ok(Some(Locker { client: text(client)?, cookie: text(cookie)? }))
    }

    /// Takes the lock away from somebody.
    pub fn break_lock(&self, name: &CString, locker: &Locker) -> Result<(), Errno> {
        // SAFETY: the texts end with NUL.
        checked(unsafe {
            (self.functions.rados_break_lock)(
                self.io(),
                name.as_ptr(),
                LOCK.as_ptr(),
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

/// The name of the lock.
const LOCK: &CStr = c"gristmill";
