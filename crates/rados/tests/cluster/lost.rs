//! The lock of a store ends, and another process takes the store.

use std::time::{Duration, Instant};

use gristmill_store::suite::{all_bytes, with_bytes};
use gristmill_store::{ObjectStore, StoreError, WriteOptions};

use crate::other_client::OtherClient;
use crate::{location, open};

/// Longest wait for something that the process does by itself every some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_lock_that_ended_is_taken_again() {
    let location = location();
    let (store, other) = (open(&location), OtherClient::of(&location));
    let a = with_bytes(&store, "a", b"before");
    let cookie = other.cookie().unwrap();
    other.break_lock();
    until(|| other.cookie().as_ref() == Some(&cookie));
    store.write_at(&a, 0, b"after", WriteOptions::default()).unwrap();
    assert_eq!(all_bytes(&store, &a), b"aftere");
}

#[test]
fn a_store_that_another_process_opened_is_lost() {
    let location = location();
    let (store, other) = (open(&location), OtherClient::of(&location));
    let a = with_bytes(&store, "a", b"before");
    other.set_attribute("store", "owner", b"another");
    until(|| store.stat(&a).is_err());
    let refused = store.write_at(&a, 0, b"after", WriteOptions::default()).unwrap_err();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert!(refused.to_string().contains("another process took over the store"), "{refused}");
}
