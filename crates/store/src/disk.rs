//! All calls of the store to the file system, so that tests can refuse them or drop unsynced changes. SQLite makes its
//! own calls. The store calls `before_commit` before each commit of SQLite.

#[cfg(test)]
pub(crate) mod faulty;
mod write_behind;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

/// Operations on directories. Created and removed names are durable after `sync_dir` of their directory.
pub(crate) trait Disk: Send + Sync {
    /// Makes one directory. Returns `false` if it exists already.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;
    /// Makes a new file for reading and writing. Fails if the name is taken.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>>;
    /// Creates a file that only this user may read.
    fn create_private_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>>;
    /// Opens an existing file.
    fn open_file(&self, path: &Path, write: bool) -> io::Result<Box<dyn DataFile>>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Permits or refuses a commit of the metadata in `path`.
    fn before_commit(&self, path: &Path) -> io::Result<()>;
}

/// The mode of a file that only its owner may read.
const PRIVATE: u32 = 0o600;

/// An open file. Its bytes and length are durable after `sync`.
pub(crate) trait DataFile: Send + Sync {
    fn len(&self) -> io::Result<u64>;
    /// Reads at most the length of `buffer`, and 0 bytes only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some of the bytes, and returns their number.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes bytes within the file zeros, and frees their space if the file system can.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
    /// Begins to write a range to the device. This is a hint. It waits at most for a place in the queue of the device.
    fn write_behind(&self, offset: u64, len: u64);
    fn advise_sequential(&self) -> io::Result<()>;
    /// Drops a range of a synced file from the page cache, up to its end if `len` is 0, so that reads come from the
    /// device. Best effort.
    fn drop_cache(&self, offset: u64, len: u64) -> io::Result<()>;
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes.
pub(crate) fn read_full(file: &dyn DataFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `data`. After an error any part of it may have been written.
pub(crate) fn write_full(file: &dyn DataFile, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    while !data.is_empty() {
        match file.write_at(data, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                data = data.get(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file system of this machine.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        match std::fs::create_dir(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(file))
    }

    fn create_private_file(&self, path: &Path) -> io::Result<Box<dyn DataFile>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(PRIVATE).open(path)?;
        Ok(Box::new(file))
    }

    fn open_file(&self, path: &Path, write: bool) -> io::Result<Box<dyn DataFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(write).open(path)?))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn before_commit(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

impl DataFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, data, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        match fallocate(self, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len) {
            Ok(()) => return Ok(()),
            Err(error) if error == rustix::io::Errno::OPNOTSUPP || error == rustix::io::Errno::NOSYS => {}
            Err(error) => return Err(error.into()),
        }
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let piece = (end - at).min(ZEROS.len() as u64) as usize;
            write_full(self, ZEROS.get(..piece).unwrap_or(&ZEROS), at)?;
            at += piece as u64;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn write_behind(&self, offset: u64, len: u64) {
        write_behind::begin(self, offset, len);
    }

    fn advise_sequential(&self) -> io::Result<()> {
        Ok(fadvise(self, 0, None, Advice::Sequential)?)
    }

    fn drop_cache(&self, offset: u64, len: u64) -> io::Result<()> {
        Ok(fadvise(self, offset, std::num::NonZeroU64::new(len), Advice::DontNeed)?)
    }
}
