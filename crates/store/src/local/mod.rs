//! A store in a directory: the default.
//!
//! ```text
//! DIR/lock               locked with flock by the one process that writes
//! DIR/meta.sqlite        one row for each object, attributes, the version counter (WAL, synchronous=FULL)
//! DIR/objects/HH/HH/ID   the bytes of object ID; HH HH from a hash of the name
//! ```
//!
//! # Order of commits
//! - *flush*: sync the data file. For a new object, sync the directories of its name. Then make one SQLite commit of
//!   length, version, state, written intervals, all attribute changes, and the checksums of the changed blocks. Bytes
//!   come first, so that a row never names missing bytes. Attributes come with the row, so that no statement about the
//!   bytes is durable before them.
//! - *first change after a flush*: before it, a commit marks the row `dirty`, with the range of durable bytes that may
//!   change. After a crash a dirty object gets a new version, because its bytes may differ from the old version.
//!   The checksums in that range are unknown, so unacknowledged bytes are never called damage.
//! - *truncate below the durable length*: the row gets the smaller length (with the mark) before the file is cut. So a
//!   file that is shorter than its row says is damaged.
//! - *remove*: the row is removed first, then the file. A file without a row is an orphan.
//! - *versions* are reserved in blocks. The commit of a block comes before the use of its first version.
//!
//! # Opening after a crash
//! The SQLite file records whether the last writer closed the store cleanly. If not, dirty objects are cut to the
//! length of their row, synced, dropped from the page cache and get new versions. Files without a row are removed.
//! Every directory is synced. Versions continue from the end of the reserved block.
//!
//! # Other processes
//! One process writes. Others may read through [`LocalReader`] at the same time, and see flushed changes.
//!
//! # Assumptions
//! The file system keeps data that fsync acknowledged, and commits of SQLite at synchronous=FULL are durable. The tests
//! of power loss drop unsynced writes, creations and removals of data files, and keep each committed transaction of
//! SQLite. After a failed sync the kernel may drop the bytes and report success next time. So the object refuses to
//! flush ([`StoreError::Unsynced`]) until it is cut to 0 or removed.

mod change;
mod check;
mod committed_rows;
mod files;
mod meta;
mod object;
mod paths;
mod reader;
mod recover;
mod scrub;
mod store;
mod stored_sums;
mod sums;
mod table;
#[cfg(test)]
mod tests;
mod versions;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::disk::{DataFile, Disk, RealDisk};
use crate::error::RESTORE;
use crate::locks::{lock, read};
use crate::{Clock, ObjectId, Result, StoreError, SystemClock};

pub use check::MAX_CHECKED_BLOCKS;
pub use files::MAX_OPEN_FILES;
pub use reader::LocalReader;
pub use recover::RecoveryProgress;
pub use table::{MAX_CACHED_OBJECTS, MAX_UNFLUSHED_OBJECTS};

use check::Checker;
use files::FileCache;
use meta::Meta;
use object::{Object, SharedState};
use paths::{LOCK_FILE, META_FILE, OBJECTS_DIR, UnsyncedDirs, object_path};
use table::Table;
use versions::Versions;

/// A store in a directory of the local file system, open for writing.
///
/// It may be dropped without [`shut_down`](Self::shut_down), but this does not flush: unflushed changes stay in the
/// files, and the next open handles them as after a crash.
pub struct LocalStore {
    objects: PathBuf,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    meta: Meta,
    versions: Versions,
    table: Table,
    files: FileCache,
    checker: Checker,
    dirs: UnsyncedDirs,
    /// Whether a file without a row could not be removed.
    orphan_left: AtomicBool,
    /// The file with the flock. It is the last field, so that the lock is released after everything else is closed.
    _lock: File,
}

impl LocalStore {
    /// Opens the store in `dir`. Makes the directory (but not its parents) and the store if they do not exist.
    ///
    /// # Errors
    /// The error is [`Locked`](StoreError::Locked) if another process has it open for writing, and
    /// [`Damaged`](StoreError::Damaged) if the stored state contradicts itself or has a format that this release does
    /// not know. It also fails if the system fails.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, Arc::new(SystemClock))
    }

    /// [`open`](Self::open) with another clock.
    ///
    /// # Errors
    /// It fails as [`open`](Self::open) does.
    pub fn open_with(dir: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_on(dir.as_ref(), clock, Arc::new(RealDisk), &mut |_| ())
    }

    /// [`open`](Self::open) with calls of `report` while the store is recovered after a crash. With many objects on a
    /// slow disk, recovery takes minutes.
    ///
    /// # Errors
    /// It fails as [`open`](Self::open) does.
    pub fn open_with_progress(
        dir: impl AsRef<Path>,
        report: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Self> {
        Self::open_on(dir.as_ref(), Arc::new(SystemClock), Arc::new(RealDisk), report)
    }

    /// Opens an existing store for reading. Another process may write to it at the same time. See [`LocalReader`].
    ///
    /// # Errors
    /// The error is [`Invalid`](StoreError::Invalid) if `dir` contains no store, and [`Damaged`](StoreError::Damaged)
    /// if the stored state has a format that this release does not know. It also fails if the system fails.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<LocalReader> {
        LocalReader::open(dir.as_ref(), Arc::new(SystemClock), Arc::new(RealDisk))
    }

    pub(crate) fn open_on(
        dir: &Path,
        clock: Arc<dyn Clock>,
        disk: Arc<dyn Disk>,
        report: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Self> {
        let objects = dir.join(OBJECTS_DIR);
        let made_dir = disk.create_dir(dir).map_err(|error| StoreError::io("create", dir, error))?;
        let lock = lock_directory(dir)?;
        disk.create_dir(&objects).map_err(|error| StoreError::io("create", &objects, error))?;
        let meta_path = dir.join(META_FILE);
        let fresh = recover::is_empty(&objects)?;
        if !fresh && !meta_path.exists() {
            let what = format!("{} is missing, but {} contains data", meta_path.display(), objects.display());
            return Err(StoreError::Damaged { what, remedy: RESTORE });
        }
        let meta = Meta::open(&meta_path, disk.clone(), fresh)?;
        if fresh {
            // The store itself must exist after a loss of power.
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            let above = made_dir.then(|| parent.unwrap_or(Path::new(".")));
            for made in [Some(dir), above].into_iter().flatten() {
                disk.sync_dir(made).map_err(|error| StoreError::io("sync", made, error))?;
            }
        }
        let (next, clean) = meta.counter()?;
        let versions = Versions::starting_at(next);
        if clean {
            // From now on, a stop without `shut_down` requires recovery.
            meta.set_counter(next, false)?;
        } else {
            recover::recover(&objects, &*disk, &meta, &versions, report)?;
        }
        Ok(Self {
            objects,
            disk,
            clock,
            meta,
            versions,
            table: Table::new(),
            files: FileCache::new(),
            checker: Checker::new(),
            dirs: UnsyncedDirs::new(),
            orphan_left: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// Flushes every object. It continues after an error.
    ///
    /// # Errors
    /// It returns the first error of a [`flush`](crate::ObjectStore::flush).
    pub fn flush_all(&self) -> Result<()> {
        let mut first = Ok(());
        for object in self.table.unflushed() {
            let flushed = self.flush_object(&object, &mut lock(&object.writer));
            if !matches!(flushed, Err(StoreError::NotFound { .. })) {
                first = first.and(flushed);
            }
        }
        first
    }

    /// Flushes every object and marks the store as closed cleanly, so that the next open does not recover.
    ///
    /// # Errors
    /// It fails as [`flush_all`](Self::flush_all) does, and also if the mark cannot be stored.
    pub fn shut_down(self) -> Result<()> {
        self.flush_all()?;
        self.mark_clean()
    }

    fn mark_clean(&self) -> Result<()> {
        if self.orphan_left.load(Ordering::Relaxed) || !self.table.unflushed().is_empty() {
            return Ok(());
        }
        self.dirs.sync_all(&*self.disk)?;
        self.meta.set_counter(self.versions.peek(), true)?;
        self.meta.checkpoint()
    }

    fn path(&self, id: &ObjectId) -> PathBuf {
        object_path(&self.objects, id)
    }

    fn object(&self, id: &ObjectId) -> Result<Arc<Object>> {
        self.table.get(id, &self.meta)
    }

    /// The open data file of the object. The caller has locked `shared`, so the file is not removed meanwhile.
    fn file(&self, object: &Object, shared: &SharedState) -> Result<Arc<dyn DataFile>> {
        self.files.get(object.birth, || self.open_file(object, shared))
    }

    /// Opens the data file, even if it is open already, and checks its length.
    fn open_file(&self, object: &Object, shared: &SharedState) -> Result<Box<dyn DataFile>> {
        let path = self.path(&object.id);
        let file = self.disk.open_file(&path, true).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(&path),
            _ => StoreError::io("open", &path, error),
        })?;
        let found = file.len().map_err(|error| StoreError::io("look at", &path, error))?;
        if found < shared.length || found > shared.length && !shared.excess {
            return Err(wrong_length(&path, found, shared.length));
        }
        Ok(file)
    }

    fn attribute(&self, object: &Object, shared: &SharedState, name: &str) -> Result<Option<Vec<u8>>> {
        match shared.pending.get(name) {
            Some(value) => Ok(value.clone()),
            None => self.meta.attribute(object.birth, name),
        }
    }

    fn attribute_names(&self, object: &Object, shared: &SharedState) -> Result<Vec<String>> {
        let mut names: std::collections::BTreeSet<_> =
            self.meta.attribute_names(object.birth)?.into_iter().collect();
        for (name, value) in &shared.pending {
            match value {
                Some(_) => names.insert(name.clone()),
                None => names.remove(name),
            };
        }
        Ok(names.into_iter().collect())
    }

    /// Runs `inspect` on a live object. No write changes the object meanwhile.
    fn with_object<T>(
        &self,
        id: &ObjectId,
        inspect: impl FnOnce(&Object, &SharedState) -> Result<T>,
    ) -> Result<T> {
        let object = self.object(id)?;
        let shared = object.check_live(read(&object.shared))?;
        inspect(&object, &shared)
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        // Without the mark the next open recovers, which is correct and only slower.
        let _ = self.mark_clean();
    }
}

/// Takes the lock of the one writer. The system releases it when the process ends.
fn lock_directory(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK_FILE);
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = open.map_err(|error| StoreError::io("open", &path, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Locked { dir: dir.to_path_buf() }),
        Err(error) => Err(StoreError::io("lock", &path, error.into())),
    }
}

const REPLACE: &str = "Restore the file from a copy, or remove the object and write it again";

fn missing(path: &Path) -> StoreError {
    StoreError::Damaged { what: format!("data file {} is missing", path.display()), remedy: REPLACE }
}

fn wrong_length(path: &Path, found: u64, expected: u64) -> StoreError {
    let what = format!("data file {} has {found} bytes, but its record says {expected}", path.display());
    StoreError::Damaged { what, remedy: REPLACE }
}
