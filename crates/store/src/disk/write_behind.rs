//! A hint to the kernel to begin writing a range of a file to its device.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Begins to write `len` bytes from `offset` to the device, so that the next sync has little to do. It does not wait
/// for the bytes, but only for a place in the queue of the device. This is a hint: it makes nothing durable, and a file
/// system may ignore it.
pub(super) fn begin(file: &File, offset: u64, len: u64) {
    if let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) {
        // SAFETY: the descriptor is open while `file` is borrowed, and the call gets no pointer to memory.
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }
}
