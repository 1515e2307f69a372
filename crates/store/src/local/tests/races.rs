//! Changes that fall exactly between a reader's look at the bytes and its second look at the version.

use std::sync::Arc;

use super::{id, scratch};
use crate::disk::faulty::FaultyDisk;
use crate::local::{LocalReader, LocalStore};
use crate::{
    CreateOptions, Extent, ObjectStore, ReadOptions, Result, StoreError, SystemClock, Version, WriteOptions,
};

/// Reads `a`, flushed as `old`, while `change` happens in the middle, by both kinds of reading.
fn read_across(
    change: fn(&LocalStore) -> Result<()>,
    read: fn(&LocalReader, Version, &mut [u8; 3]) -> Result<()>,
) -> (Result<()>, [u8; 3]) {
    let dir = scratch();
    let store = LocalStore::open(dir.path()).unwrap();
    store.create(&id("a"), &CreateOptions::default()).unwrap();
    store.append(&id("a"), b"old").unwrap();
    store.flush(&id("a")).unwrap();
    let disk = FaultyDisk::new();
    let reader = LocalReader::open(dir.path(), Arc::new(SystemClock), Arc::new(disk.clone())).unwrap();
    let version = reader.stat(&id("a")).unwrap().version;
    let mut buffer = [0; 3];
    read(&reader, version, &mut buffer).unwrap();
    assert_eq!(&buffer, b"old");
    disk.after_read(move || change(&store).unwrap());
    (read(&reader, version, &mut buffer), buffer)
}

fn plain(reader: &LocalReader, version: Version, buffer: &mut [u8; 3]) -> Result<()> {
    reader.read_at(&id("a"), 0, buffer, ReadOptions::at(version)).map(drop)
}

fn gather(reader: &LocalReader, _: Version, buffer: &mut [u8; 3]) -> Result<()> {
    let extents = [Extent { offset: 1, len: 2 }, Extent { offset: 0, len: 1 }];
    let gathered = reader.read_extents(&id("a"), &extents, buffer, ReadOptions::default());
    buffer.rotate_right(1);
    gathered
}

#[test]
fn a_change_during_a_read_is_noticed() {
    for read in [plain, gather] {
        let (unflushed, _) =
            read_across(|store| store.write_at(&id("a"), 0, b"new", WriteOptions::default()).map(drop), read);
        assert!(matches!(unflushed, Err(StoreError::Unflushed { .. })), "{unflushed:?}");
        let (flushed, _) = read_across(
            |store| {
                store.write_at(&id("a"), 0, b"new", WriteOptions::default())?;
                store.flush(&id("a"))
            },
            read,
        );
        assert!(matches!(flushed, Err(StoreError::Stale { .. })), "{flushed:?}");
        let (removed, _) = read_across(|store| store.remove(&id("a")), read);
        assert!(matches!(removed, Err(StoreError::NotFound { .. })), "{removed:?}");
        let (again, _) = read_across(
            |store| {
                store.remove(&id("a"))?;
                store.create(&id("a"), &CreateOptions::default())?;
                store.append(&id("a"), b"old")?;
                store.flush(&id("a"))
            },
            read,
        );
        assert!(matches!(again, Err(StoreError::Stale { .. })), "{again:?}");
    }
}

#[test]
fn a_change_of_attributes_during_a_read_does_not_matter() {
    for read in [plain, gather] {
        let (read, bytes) = read_across(|store| store.fetch_add(&id("a"), "n", 1).map(drop), read);
        read.unwrap();
        assert_eq!(&bytes, b"old");
    }
}
