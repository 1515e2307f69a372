//! Files that stay open between reads. All mounts of the process share the bound.

use std::fs::File;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most files of mounts that stay open between reads. Further files are opened for each read. It is a quarter of the files that the
/// process may open, if that is less.
pub const MAX_HELD_FILES: usize = 256;

static HELD: AtomicUsize = AtomicUsize::new(0);

static MOST: LazyLock<usize> = LazyLock::new(|| {
    let may_open = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let quarter = may_open.and_then(|files| usize::try_from(files / 4).ok());
    quarter.unwrap_or(MAX_HELD_FILES).min(MAX_HELD_FILES)
});

/// A file that stays open.
pub(super) struct HeldFile(File);

/// Keeps a file open, unless as many are open as may be.
pub(super) fn hold(file: File) -> Option<HeldFile> {
    let held = HeldFile(file);
    // If there are too many, dropping the file counts it out again.
    (HELD.fetch_add(1, Ordering::Relaxed) < *MOST).then_some(held)
}

impl HeldFile {
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}
