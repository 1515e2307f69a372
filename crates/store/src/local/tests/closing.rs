//! An object is reported as complete only when that is durable.

use std::time::Duration;

use super::{id, open, scratch};
use crate::disk::faulty::FaultyDisk;
use crate::{ArrivalState, CreateOptions, ObjectStore};

const EIO: i32 = 5;
const ARRIVING: CreateOptions = CreateOptions { attributes: Vec::new(), open: Some(Duration::from_secs(60)) };

#[test]
fn an_object_whose_close_failed_is_open() {
    let parent = scratch();
    let disk = FaultyDisk::new();
    let store = open(&parent.path().join("store"), &disk).unwrap();
    let mut failed = 0;
    for calls in 0.. {
        let name = id(&format!("object-{calls}"));
        store.create(&name, &ARRIVING).unwrap();
        store.append(&name, b"bytes").unwrap();
        disk.fail_from(disk.calls() + calls, EIO);
        let closed = store.close(&name);
        disk.heal();
        let state = store.stat(&name).unwrap().state;
        match closed {
            Ok(_) => {
                assert_eq!(state, ArrivalState::Closed);
                break;
            }
            Err(_) => assert!(matches!(state, ArrivalState::Open { .. }), "{state:?} although close failed"),
        }
        failed += 1;
        // An object whose sync failed must be written again. Any other can be closed now.
        if store.close(&name).is_ok() {
            assert_eq!(store.stat(&name).unwrap().state, ArrivalState::Closed);
        }
    }
    assert!(failed > 1, "too few calls of close could fail");
}
