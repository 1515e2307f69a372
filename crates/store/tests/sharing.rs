//! One writer and many readers of a store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test: a panic is a failure")]

use std::path::Path;
use std::time::Duration;

use gristmill_store::{
    ArrivalState, CreateOptions, LocalStore, MAX_OPEN_FILES, MemoryStore, ObjectId, ObjectStore, ReadOptions,
    StoreError, WriteOptions,
};

fn id(name: &str) -> ObjectId {
    ObjectId::new(name).unwrap()
}

fn store_in(dir: &Path) -> LocalStore {
    LocalStore::open(dir.join("store")).unwrap()
}

#[test]
fn a_second_writer_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = store_in(dir.path());
    let second = LocalStore::open(dir.path().join("store"));
    assert!(matches!(second, Err(StoreError::Locked { .. })));
    first.shut_down().unwrap();
    store_in(dir.path()).shut_down().unwrap();
}

#[test]
fn a_reader_sees_what_was_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let reader = LocalStore::open_read_only(dir.path().join("store")).unwrap();
    let a = id("a");
    let open = CreateOptions { open: Some(Duration::from_secs(3600)), ..Default::default() };
    store.create(&a, &open).unwrap();
    store
        .write_at(&a, 0, b"first", WriteOptions { attributes: &[("k", Some(b"1"))], if_version: None })
        .unwrap();
    assert!(matches!(reader.stat(&a), Err(StoreError::NotFound { .. })));
    assert_eq!(reader.list("", None, 10).unwrap(), []);

    store.flush(&a).unwrap();
    let flushed = reader.stat(&a).unwrap();
    assert_eq!(flushed, store.stat(&a).unwrap());
    assert!(matches!(flushed.state, ArrivalState::Open { .. }));
    let mut buffer = [0; 10];
    assert_eq!(reader.read_at(&a, 0, &mut buffer, ReadOptions::at(flushed.version)).unwrap(), 5);
    assert_eq!(&buffer[..5], b"first");
    assert_eq!(reader.get_attribute(&a, "k").unwrap().unwrap(), b"1");
    assert_eq!(reader.list_attributes(&a).unwrap(), ["k"]);
    assert_eq!(reader.list("", None, 10).unwrap(), std::slice::from_ref(&a));
    assert_eq!(reader.written(&a, 0..9).unwrap(), std::slice::from_ref(&(0..5)));

    // With unflushed changes, the reader sees the old length, and no version names the bytes.
    store.write_at(&a, 3, b"ly much longer", WriteOptions::default()).unwrap();
    assert_eq!(reader.stat(&a).unwrap().length, 5);
    let named = reader.read_at(&a, 0, &mut buffer, ReadOptions::at(flushed.version));
    assert!(matches!(named, Err(StoreError::Unflushed { .. })));
    assert_eq!(reader.read_at(&a, 0, &mut buffer, ReadOptions::default()).unwrap(), 5);

    let closed = store.close(&a).unwrap();
    let named = reader.read_at(&a, 0, &mut buffer, ReadOptions::at(flushed.version));
    assert!(matches!(named, Err(StoreError::Stale { actual, .. }) if actual == closed));
    assert_eq!(reader.read_at(&a, 0, &mut buffer, ReadOptions::at(closed)).unwrap(), 10);
    assert_eq!(reader.stat(&a).unwrap().state, ArrivalState::Closed);
    assert!(matches!(reader.append(&a, b"x"), Err(StoreError::ReadOnly { .. })));

    // A new object of the same name is another object.
    store.remove(&a).unwrap();
    assert!(matches!(reader.stat(&a), Err(StoreError::NotFound { .. })));
    store.create(&a, &CreateOptions::default()).unwrap();
    store.append(&a, b"second").unwrap();
    store.shut_down().unwrap();
    assert_eq!(reader.read_at(&a, 0, &mut buffer, ReadOptions::default()).unwrap(), 6);
    assert_eq!(&buffer[..6], b"second");
}

/// While a writer is busy, a reader gets the bytes of its version or an error.
#[test]
fn a_reader_never_mixes_states() {
    const LEN: usize = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let reader = LocalStore::open_read_only(dir.path().join("store")).unwrap();
    let a = id("a");
    store.create(&a, &CreateOptions::default()).unwrap();
    let mut named = std::collections::HashMap::new();
    named.insert(store.write_at(&a, 0, &[0; LEN], WriteOptions::default()).unwrap(), 0u8);
    store.flush(&a).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let (mut reads, mut buffer) = (Vec::new(), vec![0; LEN]);
            while !done.load(std::sync::atomic::Ordering::Acquire) || reads.is_empty() {
                let version = reader.stat(&a).unwrap().version;
                match reader.read_at(&a, 0, &mut buffer, ReadOptions::at(version)) {
                    Ok(_) => {
                        assert!(buffer.iter().all(|byte| *byte == buffer[0]), "two states in one read");
                        reads.push((version, buffer[0]));
                    }
                    Err(StoreError::Stale { .. } | StoreError::Unflushed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            reads
        });
        for value in 1..=200 {
            named.insert(store.write_at(&a, 0, &[value; LEN], WriteOptions::default()).unwrap(), value);
            if value % 2 == 0 {
                store.flush(&a).unwrap();
            }
        }
        store.flush(&a).unwrap();
        done.store(true, std::sync::atomic::Ordering::Release);
        reading.join().unwrap()
    });
    for (version, value) in reads {
        assert_eq!(named[&version], value);
    }
}

#[test]
fn more_objects_than_open_files_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let count = MAX_OPEN_FILES + 50;
    let name = |i: usize| id(&format!("n{i}"));
    for i in 0..count {
        store.create(&name(i), &CreateOptions::default()).unwrap();
        store.append(&name(i), &(i as u64).to_le_bytes()).unwrap();
    }
    let mut buffer = [0; 8];
    for i in (0..count).chain((0..count).rev()) {
        store.read_at(&name(i), 0, &mut buffer, ReadOptions::default()).unwrap();
        assert_eq!(u64::from_le_bytes(buffer), i as u64);
    }
    // Other tests run in this process, so only files of this store count.
    let objects = dir.path().join("store/objects");
    let open = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|target| target.starts_with(&objects)).count()
    };
    // Files of unflushed objects stay open, in addition to those in the cache of open files.
    assert!((count..=count + MAX_OPEN_FILES).contains(&open()), "{}", open());
    store.flush_all().unwrap();
    assert_eq!(open(), MAX_OPEN_FILES);
    store.shut_down().unwrap();
    let store = store_in(dir.path());
    for i in 0..count {
        store.read_at(&name(i), 0, &mut buffer, ReadOptions::default()).unwrap();
        assert_eq!(u64::from_le_bytes(buffer), i as u64);
    }
}

#[test]
fn unflushed_objects_are_bounded_by_flushing() {
    use gristmill_store::MAX_UNFLUSHED_OBJECTS;
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let name = |i: usize| id(&format!("n{i:05}"));
    for i in 0..MAX_UNFLUSHED_OBJECTS + 3 {
        store.create(&name(i), &CreateOptions::default()).unwrap();
    }
    drop(store);
    let store = store_in(dir.path());
    assert_eq!(store.list("", None, 10).unwrap(), [name(0), name(1), name(2)]);
}

#[test]
fn a_full_memory_store_says_so() {
    let store = MemoryStore::with_limits(std::sync::Arc::new(gristmill_store::SystemClock), 100);
    let a = id("a");
    store.create(&a, &CreateOptions::default()).unwrap();
    store.append(&a, &[1; 60]).unwrap();
    let before = store.stat(&a).unwrap();
    assert!(matches!(store.append(&a, &[1; 41]), Err(StoreError::NoSpace { .. })));
    assert!(matches!(store.truncate(&a, 1 << 62), Err(StoreError::NoSpace { .. })));
    assert_eq!(store.stat(&a).unwrap(), before);
    store.truncate(&a, 10).unwrap();
    store.append(&a, &[1; 90]).unwrap();
    store.remove(&a).unwrap();
    store.create(&a, &CreateOptions::default()).unwrap();
    store.append(&a, &[1; 100]).unwrap();
}
