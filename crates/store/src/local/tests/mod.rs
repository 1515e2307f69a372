//! The local store on a disk that fails.

mod full_disk;
mod power;
mod races;

use std::sync::Arc;

use super::LocalStore;
use crate::disk::faulty::FaultyDisk;
use crate::{ObjectId, Result, SystemClock};

fn open(dir: &std::path::Path, disk: &FaultyDisk) -> Result<LocalStore> {
    LocalStore::open_on(dir, Arc::new(SystemClock), Arc::new(disk.clone()))
}

fn id(name: &str) -> ObjectId {
    ObjectId::new(name).unwrap()
}

/// How many data files lie in the store.
fn data_files(dir: &std::path::Path) -> usize {
    let list = |dir: std::path::PathBuf| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    list(dir.join("objects")).flat_map(list).flat_map(list).count()
}

/// A directory for a simulated device. What is durable is decided by the simulation, so it lies in memory
/// where the system offers that, and thousands of real syncs cost nothing.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
