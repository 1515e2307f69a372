//! Room that is kept back on the disk of a target, so that a full disk can be emptied.
//!
//! Whoever removes something writes first: SQLite notes each removal in its log. So a node keeps a file that does nothing but take
//! room. When a removal finds the disk full, the node gives that room up and removes again; and it takes nothing new until it
//! has all of the room again. A node that starts on a full disk does so before it opens its store.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gristmill_runtime::ErrorKind;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::error::{Answer, Refusal};

/// Name of the file in the folder of a target.
const RESERVE_FILE: &str = "reserve";

/// One part of so many of a disk is kept back, within these bounds, in bytes. A removal takes some ten pages of 4 KiB.
const SHARE_OF_DISK: u64 = 64;
/// See [`SHARE_OF_DISK`].
const LEAST_BYTES: u64 = 1 << 20;
/// See [`SHARE_OF_DISK`].
const MOST_BYTES: u64 = 32 << 20;

/// The room of one target.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// Whether all of it is there, or cannot be made for another reason than want of room.
    whole: AtomicBool,
    /// Held while it is made or given up.
    changing: Mutex<()>,
}

impl Reserve {
    /// That of the target in `dir`. On a disk with too little room left it is given up now.
    pub fn of(dir: &Path) -> Reserve {
        let bytes = statvfs(dir).map_or(MOST_BYTES, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let bytes = (bytes / SHARE_OF_DISK).clamp(LEAST_BYTES, MOST_BYTES);
        let (path, changing) = (dir.join(RESERVE_FILE), Mutex::new(()));
        let reserve = Reserve { path, bytes, whole: AtomicBool::new(true), changing };
        if reserve.free().is_some_and(|free| free < bytes) {
            reserve.give_up();
        }
        reserve
    }

    /// Bytes that are free on the disk, if it says.
    fn free(&self) -> Option<u64> {
        let disk = statvfs(self.path.parent()?).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Makes the file as long as it should be, or as long as there is room for. Blocks.
    pub fn keep(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let has = fs::metadata(&self.path).map_or(0, |found| found.len());
        let free = self.free().map_or(u64::MAX, |free| free.saturating_add(has));
        // Half of what is left, so that whatever else is written finds room too, and the file does not come and go.
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

    /// Gives the room up; says whether there was any.
    fn give_up(&self) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.whole.store(false, Ordering::Relaxed);
        fs::remove_file(&self.path).is_ok()
    }

    /// Whether something new may be taken in. Where not, removing makes room, or somebody else does.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    /// Makes the file again, if it is not there. Blocks.
    pub fn mend(&self) {
        if !self.is_whole() {
            self.keep();
        }
    }

    /// Does what frees room, and once more after giving the reserve up if the disk was too full for it. Blocks.
    ///
    /// # Errors
    /// Those of `work`.
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

/// The refusal of something new on a disk without room.
pub(crate) fn full(number: Option<u32>, address: &str) -> Refusal {
    let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let text = format!(
        "storage node {number} ({address}): its disk is full, and the room that is left is for removing; remove files, free \
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
        let reserve = Reserve::of(dir.path());
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
        // The disk of the test has room, so the reserve is there again behind it.
        assert!(removal(2).is_ok() && tries.get() == 2 && reserve.is_whole() && file.exists());
        assert!(removal(3).is_err() && tries.get() == 2 && !reserve.is_whole() && !file.exists());
        reserve.mend();
        assert!(reserve.is_whole() && file.exists());
        // Any other failure is no reason.
        let other = reserve.freeing(|| Err::<(), _>(Refusal::new(ErrorKind::Failed, "no")));
        assert!(other.is_err() && file.exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_refuses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(&dir.path().join("nowhere"));
        reserve.keep();
        assert!(reserve.is_whole());
    }
}
