//! The tests that every store passes, over a real Ceph, and what only this one has: the lock, recovery, missing pieces. `make test-ceph`
//! starts a cluster and names it in the environment; `cargo test` leaves these tests out.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test: a panic is a failure")]

mod kill;
mod lost;
mod other_client;
mod placement;
mod registry;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_ceph::ClusterUser;
use gristmill_rados::{PIECE_BYTES, RadosLocation, RadosOptions, RadosStore};
use gristmill_store::suite::{ManualClock, Subject, all_bytes, id, with_bytes};
use gristmill_store::{
    CreateOptions, ObjectId, ObjectStore, ReadOptions, StoreError, WriteOptions, object_store_suite,
};
use other_client::OtherClient;

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A store that no other test uses.
fn location() -> RadosLocation {
    let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    RadosLocation { pool: "gristmill".into(), name }
}

fn options() -> RadosOptions {
    let user = ClusterUser { id: "node".into(), ..ClusterUser::of_environment() };
    RadosOptions { user, ..RadosOptions::of_environment() }
}

fn open(location: &RadosLocation) -> RadosStore {
    RadosStore::open(location, &options()).unwrap()
}

fn subject() -> Subject {
    let clock = Arc::new(ManualClock::new());
    let options = RadosOptions { clock: clock.clone(), ..options() };
    let store = RadosStore::open(&location(), &options).unwrap();
    Subject::new(Box::new(store), clock, Box::new(()))
}

object_store_suite!(subject);

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
}

#[test]
fn objects_of_many_pieces_are_kept() {
    let (location, bytes) = (location(), pattern(3 * PIECE_BYTES as usize + 5));
    let store = open(&location);
    let a = with_bytes(&store, "a", &bytes);
    store.set_attribute(&a, "units", b"K").unwrap();
    store.write_at(&a, PIECE_BYTES - 2, b"over", WriteOptions::default()).unwrap();
    let mut expected = bytes;
    expected[PIECE_BYTES as usize - 2..][..4].copy_from_slice(b"over");
    assert!(all_bytes(&store, &a) == expected);
    let before = (store.flush(&a), store.stat(&a).unwrap()).1;
    store.shut_down().unwrap();
    let store = open(&location);
    assert_eq!(store.stat(&a).unwrap(), before, "a store that was closed keeps its versions");
    assert!(all_bytes(&store, &a) == expected);
    assert_eq!(store.get_attribute(&a, "units").unwrap().unwrap(), b"K");
    // Holes are zeros, also where a whole piece is missing.
    store.truncate(&a, 10 * PIECE_BYTES).unwrap();
    store.write_at(&a, 9 * PIECE_BYTES, b"end", WriteOptions::default()).unwrap();
    store.punch(&a, 100..2 * PIECE_BYTES + 100).unwrap();
    expected.resize(10 * PIECE_BYTES as usize, 0);
    expected[9 * PIECE_BYTES as usize..][..3].copy_from_slice(b"end");
    expected[100..2 * PIECE_BYTES as usize + 100].fill(0);
    assert!(all_bytes(&store, &a) == expected);
    store.truncate(&a, 5).unwrap();
    store.truncate(&a, 2 * PIECE_BYTES + 200).unwrap();
    expected.truncate(5);
    expected.resize(2 * PIECE_BYTES as usize + 200, 0);
    assert!(all_bytes(&store, &a) == expected);
}

#[test]
fn nothing_is_left_of_objects_that_were_removed() {
    let location = location();
    let store = open(&location);
    let other = OtherClient::of(&location);
    let a = with_bytes(&store, "a", &pattern(2 * PIECE_BYTES as usize));
    assert!(other.names().len() >= 4, "{:?}", other.names());
    store.truncate(&a, 10).unwrap();
    store.flush(&a).unwrap();
    assert_eq!(other.names().len(), 3, "a head, a piece and the store: {:?}", other.names());
    store.remove(&a).unwrap();
    assert_eq!(other.names(), ["store"]);
}

#[test]
fn a_store_has_one_process() {
    let location = location();
    let store = open(&location);
    let second = RadosStore::open(&location, &options()).err().unwrap();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    assert!(second.to_string().contains(&location.to_string()), "{second}");
    drop(store);
    open(&location);
}

#[test]
fn what_was_not_flushed_gets_a_new_version() {
    let location = location();
    let store = open(&location);
    let a = with_bytes(&store, "a", b"flushed");
    store.flush(&a).unwrap();
    let flushed = store.stat(&a).unwrap();
    let later = store.append(&a, &pattern(2 * PIECE_BYTES as usize)).unwrap().1;
    // The process ends without a flush.
    drop(store);
    let store = open(&location);
    let found = store.stat(&a).unwrap();
    assert_eq!(found.length, flushed.length);
    assert!(found.version > later, "the version of bytes that may be others is new");
    assert_eq!(all_bytes(&store, &a), b"flushed");
    store.truncate(&a, 20).unwrap();
    assert_eq!(
        all_bytes(&store, &a),
        b"flushed\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "nothing of the append came back"
    );
    let other = OtherClient::of(&location);
    assert_eq!(other.names().len(), 3, "{:?}", other.names());
}

#[test]
fn a_write_that_failed_in_the_middle_leaves_nothing() {
    let location = location();
    let user = ClusterUser { id: "first".into(), ..ClusterUser::of_environment() };
    let store = RadosStore::open(&location, &RadosOptions { user, ..options() }).unwrap();
    let log = with_bytes(&store, "log", b"flushed");
    store.flush(&log).unwrap();
    // The first piece can be written, and the second one cannot.
    for _ in 0..2 {
        let failed = store.append(&log, &pattern(PIECE_BYTES as usize));
        assert!(matches!(failed, Err(StoreError::Permission { .. })), "{failed:?}");
    }
    assert_eq!(all_bytes(&store, &log), b"flushed");
    store.flush(&log).unwrap();
    let version = store.stat(&log).unwrap().version;
    drop(store);
    let store = open(&location);
    assert!(store.stat(&log).unwrap().version > version, "something may have been left after the end");
    assert_eq!(all_bytes(&store, &log), b"flushed");
    store.truncate(&log, 2 * PIECE_BYTES).unwrap();
    let mut expected = vec![0; 2 * PIECE_BYTES as usize];
    expected[..7].copy_from_slice(b"flushed");
    assert!(all_bytes(&store, &log) == expected, "nothing of the appends came back");
}

#[test]
fn bytes_that_somebody_removed_are_an_error() {
    let location = location();
    let store = open(&location);
    let a = with_bytes(&store, "a", &pattern(2 * PIECE_BYTES as usize));
    store.flush(&a).unwrap();
    let other = OtherClient::of(&location);
    let pieces: Vec<_> = other.names().into_iter().filter(|name| name.starts_with("p.")).collect();
    let second = pieces.iter().find(|name| name.contains(".1.")).unwrap();
    let is_damaged = |read: Result<usize, StoreError>| {
        let error = read.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    };
    let read = |from: u64, bytes: usize| store.read_at(&a, from, &mut vec![0; bytes], ReadOptions::default());
    other.truncate(second, 100);
    assert_eq!(read(PIECE_BYTES, 100).unwrap(), 100);
    is_damaged(read(PIECE_BYTES, 101));
    other.remove(second);
    is_damaged(read(0, 2 * PIECE_BYTES as usize));
    assert_eq!(read(0, PIECE_BYTES as usize).unwrap(), PIECE_BYTES as usize);
    // A head that is gone.
    let b = with_bytes(&store, "b", b"1");
    store.flush(&b).unwrap();
    other.remove("h.b");
    let written = store.write_at(&b, 0, b"2", WriteOptions::default());
    assert!(matches!(written, Err(StoreError::Damaged { .. })), "{written:?}");
    // Other bytes in a head: the store opens, and the object says it.
    let c = with_bytes(&store, "c", b"1");
    store.shut_down().unwrap();
    other.write("h.c", 20, b"\xff\xff");
    let store = open(&location);
    let damaged = store.stat(&c);
    assert!(matches!(damaged, Err(StoreError::Damaged { .. })), "{damaged:?}");
    assert_eq!(store.list("", None, 10).unwrap(), [a, c]);
}

#[test]
fn what_is_wrong_is_told() {
    let opened = |pool: &str, user: &str| {
        let location = RadosLocation { pool: pool.into(), ..location() };
        let user = ClusterUser { id: user.into(), ..ClusterUser::of_environment() };
        RadosStore::open(&location, &RadosOptions { user, ..options() }).err().unwrap().to_string()
    };
    let missing = opened("nowhere", "node");
    assert!(missing.contains("there is no pool nowhere"), "{missing}");
    let unknown = opened("gristmill", "nobody");
    assert!(unknown.contains("client.nobody"), "{unknown}");
    let weak = opened("gristmill", "reader");
    assert!(weak.contains("osd: allow rwx"), "{weak}");
    let store = open(&location());
    let a = with_bytes(&store, "a", b"");
    let long = store.truncate(&a, gristmill_rados::MAX_OBJECT + 1);
    assert!(matches!(long, Err(StoreError::TooLarge { .. })), "{long:?}");
    store.create(&ObjectId::new("b").unwrap(), &CreateOptions::default()).unwrap();
    assert_eq!(store.list("", None, 10).unwrap(), [a, id("b")]);
}
