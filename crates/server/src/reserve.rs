//! Reserved space on the disk of a target, so that files can be removed from a full disk.
//!
//! A removal writes first: SQLite records it in its log. So a node has a file that only takes space. If a removal finds
//! the disk full, the node removes this file and repeats the removal. It refuses new objects until the file has its
//! full length again. A node that starts on a full disk removes the file before it opens its store.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gristmill_runtime::ErrorKind;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::error::{Answer, Refusal};

/// Name of the file in the directory of a target.
const RESERVE_FILE: &str = "reserve";

/// Divisor of the size of a disk: this part of it is reserved. A removal takes about ten pages of 4 KiB.
const SHARE_OF_DISK: u64 = 64;
/// Fewest bytes of the reserve of a target.
const LEAST_BYTES: u64 = 1 << 20;
/// Most bytes of the reserve of a target.
const MOST_BYTES: u64 = 32 << 20;

/// Reserved space of one target.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// Whether the file has its full length, or cannot be made for another reason than a full disk.
    whole: AtomicBool,
    /// Held while the file is made or removed.
    changing: Mutex<()>,
}

impl Reserve {
    /// Opens the reserve of the target in `dir`. If the disk has too little space, its file is removed now.
    pub fn open(dir: &Path) -> Reserve {
        let bytes = statvfs(dir).map_or(MOST_BYTES, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let bytes = (bytes / SHARE_OF_DISK).clamp(LEAST_BYTES, MOST_BYTES);
        let (path, changing) = (dir.join(RESERVE_FILE), Mutex::new(()));
        let reserve = Reserve { path, bytes, whole: AtomicBool::new(true), changing };
        if reserve.free().is_some_and(|free| free < bytes) {
            reserve.give_up();
        }
        reserve
    }

    /// Free bytes on the disk, if known.
    fn free(&self) -> Option<u64> {
        let disk = statvfs(self.path.parent()?).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Makes the file with its full length, or as long as the free space allows. Blocks.
    pub fn keep(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let has = fs::metadata(&self.path).map_or(0, |found| found.len());
        let free = self.free().map_or(u64::MAX, |free| free.saturating_add(has));
        // At most half of the free space, so that other writes find space too, and the file does not come and go.
        let length = self.bytes.min(free / 2).max(has);
        let made = if length > has { self.make(length) } else { Ok(()) };
        let full = made.is_err_and(|error| is_full(&error));
        self.whole.store(!full && length >= self.bytes, Ordering::Relaxed);
    }

    fn make(&self, length: u64) -> io::Result<()> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => zeros(&file, length),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the file. Returns whether there was one.
    fn give_up(&self) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.whole.store(false, Ordering::Relaxed);
        fs::remove_file(&self.path).is_ok()
    }

    /// Whether the node may take new objects. If not, a removal of files or free space on the disk changes it.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    /// Makes the file again if it lacks its full length. Blocks.
    pub fn mend(&self) {
        if !self.is_whole() {
            self.keep();
        }
    }

    /// Does work that frees space. If the disk is too full for it, the reserve is removed and the work is done again.
    /// Blocks.
    ///
    /// # Errors
    /// Returns the errors of `work`.
    pub fn freeing<T>(&self, work: impl Fn() -> Answer<T>) -> Answer<T> {
        let done = match work() {
            Err(refusal) if ErrorKind::named(&refusal.0.kind) == ErrorKind::NoSpace && self.give_up() => {
                work()
            }
            done => done,
        };
        if done.is_ok() {
            self.mend();
        }
        done
    }
}

/// The refusal of a new object on a full disk.
pub(crate) fn full(number: Option<u32>, address: &str) -> Refusal {
    let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let text = format!(
        "storage node {number} ({address}): its disk is full, and the space left is for removals; remove files, free \
         space there, or put the file on other targets with --on"
    );
    Refusal::new(ErrorKind::NoSpace, text)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file).map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::Cell;

    use super::*;

    #[test]
    fn room_is_given_up_for_a_removal_and_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(dir.path());
        reserve.keep();
        let file = dir.path().join(RESERVE_FILE);
        assert!(
            reserve.is_whole() && (LEAST_BYTES..=MOST_BYTES).contains(&fs::metadata(&file).unwrap().len())
        );
        let tries = Cell::new(0);
        let removal = |until: u32| {
            tries.set(0);
            reserve.freeing(|| {
                tries.set(tries.get() + 1);
                assert_eq!(file.exists(), tries.get() == 1);
                if tries.get() < until { Err(full(Some(0), "here")) } else { Ok(()) }
            })
        };
        assert!(removal(1).is_ok() && tries.get() == 1);
        // The disk of the test has space, so the reserve is made again.
        assert!(removal(2).is_ok() && tries.get() == 2 && reserve.is_whole() && file.exists());
        assert!(removal(3).is_err() && tries.get() == 2 && !reserve.is_whole() && !file.exists());
        reserve.mend();
        assert!(reserve.is_whole() && file.exists());
        // Other failures do not remove the reserve.
        let other = reserve.freeing(|| Err::<(), _>(Refusal::new(ErrorKind::Failed, "no")));
        assert!(other.is_err() && file.exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_refuses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(&dir.path().join("nowhere"));
        reserve.keep();
        assert!(reserve.is_whole());
    }
}
