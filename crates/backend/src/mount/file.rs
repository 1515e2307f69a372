//! Files of a file system: their states, and reads at an offset.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::{BackendError, Found, Kind, Result, Stamp, WholeRecords, read_each};

/// The times that a version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// The time of modification.
    Modified,
    /// The times of modification and of change. A program can set the first, but not the second.
    Changed,
}

/// Start of the stamps of files that grow.
const GROWING: &str = "growing";

/// Seconds and nanoseconds.
type Time = (i64, i64);

/// The state of a file of a file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileState {
    kind: Kind,
    /// Device and inode.
    identity: (u64, u64),
    links: u64,
    length: u64,
    modified: Time,
    changed: Time,
    times: Times,
    /// Whether it is the state of a file that may grow: only the bytes up to its length belong to it.
    growing: bool,
}

impl PartialEq for FileState {
    fn eq(&self, other: &FileState) -> bool {
        let times = |state: &FileState| {
            (state.modified, if state.times == Times::Changed { state.changed } else { state.modified })
        };
        if self.growing || other.growing {
            return self.identity == other.identity
                && self.growing == other.growing
                && self.length == other.length;
        }
        self.identity == other.identity && self.length == other.length && times(self) == times(other)
    }
}

impl FileState {
    /// The state of an opened file.
    pub fn of(file: &File, times: Times) -> io::Result<FileState> {
        Ok(FileState::of_metadata(&file.metadata()?, times))
    }

    /// The state in metadata.
    pub fn of_metadata(meta: &std::fs::Metadata, times: Times) -> FileState {
        let kind = match meta.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_fifo() => Kind::Pipe,
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_socket() => Kind::Socket,
            _ => Kind::Device,
        };
        FileState {
            kind,
            identity: (meta.dev(), meta.ino()),
            links: meta.nlink(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            times,
            growing: false,
        }
    }

    /// The state of the first `length` bytes of a file that may grow. `None` if it has fewer.
    pub fn growing(self, length: u64) -> Option<FileState> {
        (length <= self.length).then_some(FileState { length, growing: true, ..self })
    }

    /// The state of the whole records of an opened file that has this state and may grow.
    pub fn whole_records(
        self,
        records: WholeRecords,
        file: &File,
        name: impl Fn() -> String + Copy,
    ) -> Result<FileState> {
        let read = |start: u64, out: &mut [u8]| {
            let range = start..start + out.len() as u64;
            read_ranges(file, name, std::slice::from_ref(&range), out)
        };
        let length = records.end(name, self.length, read)?;
        let what = "the whole records of a file are longer than the file";
        self.growing(length).ok_or(BackendError::Internal { what })
    }

    /// Whether an opened file still has the bytes of this state, if it has that state now.
    pub fn is_state_of(&self, now: FileState) -> bool {
        if self.growing { now.growing(self.length) == Some(*self) } else { now == *self }
    }

    pub fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// Checks that it is a regular file.
    pub fn check_kind(&self, name: impl Fn() -> String) -> Result<()> {
        if self.kind == Kind::File {
            return Ok(());
        }
        Err(BackendError::WrongKind { name: name(), kind: self.kind })
    }

    /// Length and version. They do not name device and inode, which may differ between nodes.
    pub fn found(&self) -> Found {
        if self.growing {
            // The number of the file tells it from another one that takes its name, if all nodes see the same numbers.
            let inode = if self.times == Times::Changed { self.identity.1 } else { 0 };
            return Found { length: self.length, stamp: Stamp::of_numbers(format!("{GROWING}-{inode}")) };
        }
        let time = |(seconds, nanoseconds): Time| format!("{seconds}.{nanoseconds:09}");
        let mut text = format!("{}-{}", self.length, time(self.modified));
        if self.times == Times::Changed {
            text = format!("{text}-{}", time(self.changed));
        }
        Found { length: self.length, stamp: Stamp::of_numbers(text) }
    }

    /// A number of the time of modification and the length.
    pub fn modified_and_length(&self) -> u64 {
        let (seconds, nanoseconds) = self.modified;
        (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(nanoseconds as u64) ^ self.length
    }

    /// Checks that an opened file has the content of this state.
    pub fn check_same(&self, file: &File, name: impl Fn() -> String) -> Result<()> {
        let now =
            FileState::of(file, self.times).map_err(|source| BackendError::io("read", name(), source))?;
        if self.growing {
            let is_there = now.length >= self.length;
            return if is_there { Ok(()) } else { Err(BackendError::Changed { name: name() }) };
        }
        let same = (now.length, now.modified) == (self.length, self.modified);
        // A file that gets or loses a name has a new time of change, too, for example if another file takes its name.
        let same_times =
            self.times == Times::Modified || now.changed == self.changed || now.links != self.links;
        if same && same_times { Ok(()) } else { Err(BackendError::Changed { name: name() }) }
    }
}

/// Whether the state is that of a file that may grow.
pub(super) fn is_growing(found: &Found) -> bool {
    found.stamp.as_str().starts_with(GROWING)
}

/// Opens a regular file, and its state. `open` opens the path with the flags. The caller has looked up that it is a regular file, because
/// opening a device or a pipe does something to it.
pub(super) fn open_regular(
    open: impl Fn(OFlags) -> Result<std::result::Result<File, Errno>>,
    explain: impl Fn(Errno) -> BackendError,
    name: impl Fn() -> String + Copy,
    times: Times,
) -> Result<(File, FileState)> {
    let state_of = |file: &File| {
        let state = FileState::of(file, times).map_err(|source| BackendError::io("read", name(), source))?;
        state.check_kind(name)?;
        Ok::<FileState, BackendError>(state)
    };
    // Something else may have the name since. With the flag, opening a pipe does not wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOCTTY;
    let opened = match open(flags | OFlags::NONBLOCK)? {
        // Another machine or process has a lease on the file and must give it back first.
        Err(Errno::AGAIN) => open(flags)?,
        opened => opened,
    };
    let file = opened.map_err(&explain)?;
    let state = state_of(&file)?;
    // From here on reads wait for the disk.
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(explain)?;
    Ok((file, state))
}

/// Reads ranges of a file, packed into `out`.
pub(super) fn read_ranges(
    file: &File,
    name: impl Fn() -> String + Copy,
    ranges: &[Range<u64>],
    out: &mut [u8],
) -> Result<()> {
    read_each(ranges, out, |offset, buffer| read_range(file, name, offset, buffer))
}

/// Fills `buffer` from an offset of a file.
fn read_range(file: &File, name: impl Fn() -> String, offset: u64, buffer: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => {
                let (end, length) = (offset + buffer.len() as u64, offset + done as u64);
                return Err(BackendError::Short { name: name(), end, length });
            }
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(BackendError::io("read", name(), source)),
        }
    }
    Ok(())
}
