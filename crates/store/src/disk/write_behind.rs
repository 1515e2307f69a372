//! Telling the kernel to begin writing a stretch of a file to its device.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Begins to write `len` bytes from `offset` to the device, so that the sync to come finds little left to do. It does
/// not wait for them, only for a place in the device's queue where that is full. A hint: it makes nothing durable, and a
/// file system that cannot take it is none the worse.
pub(super) fn begin(file: &File, offset: u64, len: u64) {
    if let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) {
        // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call takes no memory of ours.
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }
}
