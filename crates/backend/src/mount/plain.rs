//! Plain files, opened by their paths.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::file::{FileState, Times, open_regular, read_ranges};
use crate::{BackendError, Found, Kind, Object, Result, WholeRecords, check_ranges};

/// Opens a file of this machine by its path, which may lead anywhere. Its version has no time of change, so it stays the same if the
/// file is renamed.
///
/// # Errors
/// The error is [`BackendError::NotFound`] if there is no such file, [`BackendError::WrongKind`] if it is not a regular file or if it
/// has bytes although its length is 0, and [`BackendError::Denied`] if it may not be read. It also fails if the system fails.
pub fn open_file(path: &Path) -> Result<Arc<dyn Object>> {
    Ok(Arc::new(open(path)?))
}

/// Opens the whole records that a file of this machine has now, although programs append to it.
///
/// # Errors
/// It fails as [`open_file`] does.
pub fn open_growing_file(path: &Path, records: WholeRecords) -> Result<Arc<dyn Object>> {
    let opened = open(path)?;
    let state = opened.state.whole_records(records, &opened.file, || path.display().to_string())?;
    Ok(Arc::new(PlainFile { found: state.found(), state, ..opened }))
}

fn open(path: &Path) -> Result<PlainFile> {
    let name = || path.display().to_string();
    let open = |flags: OFlags| {
        let opened = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        Ok(opened.map(File::from))
    };
    let explain = |errno: Errno| BackendError::io("open", name(), errno.into());
    let looked_up = std::fs::metadata(path).map_err(|source| BackendError::io("open", name(), source))?;
    FileState::of_metadata(&looked_up, Times::Modified).check_kind(name)?;
    let (file, state) = open_regular(open, explain, name, Times::Modified)?;
    let found = state.found();
    // Files in /proc and similar folders have length 0.
    if found.length == 0 && file.read_at(&mut [0], 0).is_ok_and(|read| read > 0) {
        return Err(BackendError::WrongKind { name: name(), kind: Kind::WithoutLength });
    }
    // An error is ignored: this is a hint to the page cache.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
    Ok(PlainFile { name: name(), found, state, file })
}

/// A file that was opened by its path.
struct PlainFile {
    name: String,
    found: Found,
    state: FileState,
    file: File,
}

impl Object for PlainFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found.length, ranges, out.len())?;
        read_ranges(&self.file, || self.name(), ranges, out)
    }

    fn unchanged(&self) -> Result<()> {
        self.state.check_same(&self.file, || self.name())
    }

    /// The number that checkpoints of earlier versions have, too.
    fn version(&self) -> u64 {
        self.state.modified_and_length()
    }
}
