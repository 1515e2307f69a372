//! The local store on a disk that fails.

mod closing;
mod full_disk;
mod power_loss;
mod races;
mod silent_corruption;

use std::sync::Arc;

use super::LocalStore;
use crate::disk::faulty::FaultyDisk;
use crate::{ObjectId, Result, SystemClock};

fn open(dir: &std::path::Path, disk: &FaultyDisk) -> Result<LocalStore> {
    LocalStore::open_on(dir, Arc::new(SystemClock), Arc::new(disk.clone()), &mut |_| ())
}

fn id(name: &str) -> ObjectId {
    ObjectId::new(name).unwrap()
}

/// The suite of every backend. Blocks of sums are so small that its objects have many.
mod suite {
    use std::sync::Arc;

    use crate::local::LocalStore;
    use crate::object_store_suite;
    use crate::suite::{ManualClock, Subject};

    fn subject() -> Subject {
        let (dir, clock) = (super::scratch(), Arc::new(ManualClock::new()));
        let store = LocalStore::open_with(dir.path().join("store"), clock.clone()).unwrap();
        Subject::new(Box::new(store), clock, Box::new(dir))
    }
    object_store_suite!(subject);
}

/// Number of data files in the store.
fn data_files(dir: &std::path::Path) -> usize {
    let list = |dir: std::path::PathBuf| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    list(dir.join("objects")).flat_map(list).flat_map(list).count()
}

/// A directory for a simulated device. The simulation decides which changes are durable, so the directory is in memory
/// if possible. Then thousands of real syncs cost nothing.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
