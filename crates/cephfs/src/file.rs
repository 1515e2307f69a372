//! An opened file in one state.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_backend::{BackendError, Found, Object, Result, ThreadsAhead, check_ranges, split_buffer};
use rustix::io::Errno;

use crate::client::{Inode, OpenFile};
use crate::error::explain;
use crate::reader::ReadingUser;
use crate::state::has_state;
use crate::tree::Opened;

/// Most files of a process that stay open between reads. Further files are opened for each read. While a file is open
/// here, other programs write to it without a buffer.
pub const MAX_HELD_FILES: usize = 256;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// A file that stays open.
struct HeldFile(OpenFile);

impl Drop for HeldFile {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a file open, unless as many are open as may be.
fn hold(file: OpenFile) -> Option<HeldFile> {
    let held = HeldFile(file);
    // If there are too many, dropping the file counts it out again.
    (HELD.fetch_add(1, Ordering::Relaxed) < MAX_HELD_FILES).then_some(held)
}

/// A file of a file system.
pub(crate) struct CephFile {
    file: Arc<ReadFile>,
    ahead: Option<ThreadsAhead>,
}

/// A file that is read by lanes, and ahead of them.
struct ReadFile {
    name: String,
    found: Found,
    inode: Arc<Inode>,
    reader: Arc<ReadingUser>,
    /// The file, if it stays open.
    file: Option<HeldFile>,
}

impl CephFile {
    pub fn new(name: String, found: Found, opened: Opened) -> Arc<CephFile> {
        let Opened { inode, file, reader, .. } = opened;
        let length = found.length;
        let file = Arc::new(ReadFile { name, found, inode, reader, file: hold(file) });
        let read = file.clone();
        let ahead = ThreadsAhead::new(length, move |range, out| read.read_ahead(range, out));
        Arc::new(CephFile { file, ahead })
    }
}

impl ReadFile {
    fn explain(&self, errno: Errno) -> BackendError {
        explain("read", self.name.clone(), errno)
    }

    /// Calls `with` with the file in the state in which it was opened.
    fn with_file<T>(&self, with: impl FnOnce(&OpenFile) -> Result<T>) -> Result<T> {
        if let Some(file) = &self.file {
            return with(&file.0);
        }
        let file = self.inode.open(&self.reader.user).map_err(|errno| match errno {
            Errno::NOENT => BackendError::Changed { name: self.name.clone() },
            errno => self.explain(errno),
        })?;
        self.unchanged()?;
        with(&file)
    }

    /// Fills buffers, each from an offset.
    fn read(&self, reads: Vec<(u64, &mut [u8])>) -> Result<()> {
        if reads.is_empty() {
            return Ok(());
        }
        self.with_file(|file| {
            for (offset, buffer) in reads {
                file.read_whole(|| self.name.clone(), offset, buffer)?;
            }
            Ok(())
        })
    }

    /// Appends the bytes of a range. Returns whether all were read. Otherwise whoever needs them reads them again, and gets the error.
    fn read_ahead(&self, range: Range<u64>, out: &mut Vec<u8>) -> bool {
        let read = self.with_file(|file| {
            let mut at = range.start;
            while at < range.end {
                match file.append(at, out, (range.end - at) as usize) {
                    Ok(read) if read > 0 => at += read as u64,
                    Ok(_) => return Ok(false),
                    Err(errno) => return Err(self.explain(errno)),
                }
            }
            Ok(true)
        });
        matches!(read, Ok(true))
    }

    /// A file that was removed has another version, too.
    fn unchanged(&self) -> Result<()> {
        let changed = || BackendError::Changed { name: self.name.clone() };
        let now = self.inode.attributes(&self.reader.user).map_err(|errno| match errno {
            Errno::NOENT => changed(),
            errno => self.explain(errno),
        })?;
        if has_state(&now, &self.found) { Ok(()) } else { Err(changed()) }
    }
}

impl Object for CephFile {
    fn name(&self) -> String {
        self.file.name.clone()
    }

    fn found(&self) -> &Found {
        &self.file.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found().length, ranges, out.len())?;
        let reads = split_buffer(ranges, out);
        match &self.ahead {
            Some(ahead) => ahead.fill(reads, |reads| self.file.read(reads)),
            None => self.file.read(reads),
        }
    }

    fn fetches_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        if let Some(ahead) = &self.ahead {
            ahead.expect(ranges);
        }
    }

    fn unchanged(&self) -> Result<()> {
        self.file.unchanged()
    }
}

impl OpenFile {
    /// Fills `out` from an offset.
    ///
    /// # Errors
    /// The error is [`BackendError::Short`] if the file ends before. It also fails if the servers refuse it.
    pub fn read_whole(&self, name: impl Fn() -> String, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let read = self.read(offset + done as u64, rest);
            match read.map_err(|errno| explain("read", name(), errno))? {
                0 => {
                    let (end, length) = (offset + out.len() as u64, offset + done as u64);
                    return Err(BackendError::Short { name: name(), end, length });
                }
                read => done += read,
            }
        }
        Ok(())
    }
}
