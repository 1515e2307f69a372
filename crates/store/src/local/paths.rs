//! Where the files of a local store lie, and which directories hold names that are not durable yet.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::disk::{DataFile, Disk};
use crate::locks::lock;
use crate::{ObjectId, Result, StoreError};

pub(super) const META_FILE: &str = "meta.sqlite";
pub(super) const LOCK_FILE: &str = "lock";
pub(super) const OBJECTS_DIR: &str = "objects";

/// The two fan-out directories and the file of an object below `objects`: `objects/HH/HH/ID`, with the two
/// bytes H from the 64-bit FNV-1a hash of the name.
pub(super) fn object_path(objects: &Path, id: &ObjectId) -> PathBuf {
    let hash = id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, ..] = (hash ^ (hash >> 32)).to_le_bytes();
    objects.join(format!("{a:02x}")).join(format!("{b:02x}")).join(id.as_str())
}

/// Directories in which names were made or removed since they were last synced.
pub(super) struct UnsyncedDirs(Mutex<BTreeSet<PathBuf>>);

impl UnsyncedDirs {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn note(&self, dir: &Path) {
        lock(&self.0).insert(dir.to_path_buf());
    }

    /// Makes the name of `file` durable: its directory and the two above it.
    ///
    /// The lock is held over the sync, so nobody takes a directory for synced while the sync still runs.
    pub(super) fn sync_for(&self, disk: &dyn Disk, file: &Path) -> Result<()> {
        let mut unsynced = lock(&self.0);
        for dir in file.ancestors().skip(1).take(3) {
            if unsynced.contains(dir) {
                disk.sync_dir(dir).map_err(|error| StoreError::io("sync", dir, error))?;
                unsynced.remove(dir);
            }
        }
        Ok(())
    }

    pub(super) fn sync_all(&self, disk: &dyn Disk) -> Result<()> {
        let mut unsynced = lock(&self.0);
        while let Some(dir) = unsynced.first().cloned() {
            disk.sync_dir(&dir).map_err(|error| StoreError::io("sync", &dir, error))?;
            unsynced.remove(&dir);
        }
        Ok(())
    }

    /// Makes the empty data file `path`, which no object owns, and the directories it needs.
    pub(super) fn create_file(&self, disk: &dyn Disk, path: &Path) -> Result<Box<dyn DataFile>> {
        let mut made = disk.create_file(path);
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            for dir in path.ancestors().take(3).skip(1).collect::<Vec<_>>().into_iter().rev() {
                match disk.create_dir(dir) {
                    Ok(false) => {}
                    Ok(true) => dir.parent().map_or((), |parent| self.note(parent)),
                    Err(error) => return Err(StoreError::io("create", dir, error)),
                }
            }
            made = disk.create_file(path);
        }
        // What a removal could not unlink lies there still.
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            disk.remove_file(path).map_err(|error| StoreError::io("remove", path, error))?;
            made = disk.create_file(path);
        }
        path.parent().into_iter().for_each(|dir| self.note(dir));
        made.map_err(|error| StoreError::io("create", path, error))
    }
}
