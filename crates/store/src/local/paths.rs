//! Paths of the files of a local store, and the directories whose names are not durable yet.

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

/// Path of the data file of an object: `objects/HH/HH/ID`. The names HH of the two fan-out directories are two bytes
/// from the 64-bit FNV-1a hash of the name.
pub(super) fn object_path(objects: &Path, id: &ObjectId) -> PathBuf {
    let hash = id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, ..] = (hash ^ (hash >> 32)).to_le_bytes();
    objects.join(format!("{a:02x}")).join(format!("{b:02x}")).join(id.as_str())
}

/// Directories in which names were made or removed since their last sync.
pub(super) struct UnsyncedDirs(Mutex<BTreeSet<PathBuf>>);

impl UnsyncedDirs {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn note(&self, dir: &Path) {
        lock(&self.0).insert(dir.to_path_buf());
    }

    /// Makes the name of `file` durable: syncs its directory and the two above it.
    ///
    /// The lock is held during the sync, so that no other thread takes a directory for synced too early.
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

    /// Makes an empty data file at `path`, which belongs to no object yet, and its missing directories.
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
        // The file of a removed object that could not be removed is still there.
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            disk.remove_file(path).map_err(|error| StoreError::io("remove", path, error))?;
            made = disk.create_file(path);
        }
        path.parent().into_iter().for_each(|dir| self.note(dir));
        made.map_err(|error| StoreError::io("create", path, error))
    }
}
