//! Changes between a reader's read of the bytes and its second check of the version.

use std::sync::Arc;

use super::{id, scratch};
use crate::disk::faulty::FaultyDisk;
use crate::local::{LocalReader, LocalStore};
use crate::sums::{BLOCK_BYTES, SEGMENT_BLOCKS};
use crate::{
    CreateOptions, Extent, ObjectStore, ReadOptions, Result, StoreError, SystemClock, Version, WriteOptions,
};

/// Reads the object `a`, whose flushed bytes are `old`, with `read`. `change` happens in the middle.
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

/// SQLite removes the sums of an object with it, while another thread may read and check its bytes.
#[test]
fn an_object_that_is_removed_is_whole_or_gone_for_its_readers() {
    const ROUNDS: usize = 40;
    let dir = scratch();
    let store = LocalStore::open(dir.path()).unwrap();
    let data = vec![7; (400 * SEGMENT_BLOCKS * BLOCK_BYTES) as usize];
    let attributes = vec![("n".into(), b"kept".to_vec())];
    for round in 0..ROUNDS {
        let name = id(&format!("a{round}"));
        store
            .create(&name, &CreateOptions { attributes: attributes.clone(), ..CreateOptions::default() })
            .unwrap();
        store.append(&name, &data).unwrap();
        store.flush(&name).unwrap();
        let reads = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut buffer = vec![0; data.len()];
                let read = store.read_at(&name, 0, &mut buffer, ReadOptions::default());
                let attribute = store.get_attribute(&name, "n");
                (read.map(|_| buffer), attribute)
            });
            store.remove(&name).unwrap();
            reading.join().unwrap()
        });
        match reads.0 {
            Ok(bytes) => assert_eq!(bytes, data),
            Err(StoreError::NotFound { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        match reads.1 {
            Ok(value) => assert_eq!(value.as_deref(), Some(&b"kept"[..])),
            Err(StoreError::NotFound { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
