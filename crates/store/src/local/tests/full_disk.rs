//! A device that refuses all calls from one on, for each call in turn.

use std::path::Path;

use super::{id, open, scratch};
use crate::atomic_file::write_atomic_on;
use crate::disk::faulty::{Dice, FaultyDisk};
use crate::local::LocalStore;
use crate::suite::all_bytes;
use crate::{CasOutcome, CreateOptions, Extent, ObjectStore, Result, StoreError, WriteOptions};

const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;
const EACCES: i32 = 13;

type Step = (&'static str, fn(&LocalStore) -> Result<()>);

/// Operations on `a` and `b`. The object `kept` is flushed and does not change.
const STEPS: &[Step] = &[
    ("create a", |store| {
        let attributes = vec![("k".into(), b"v".to_vec())];
        store.create(&id("a"), &CreateOptions { attributes, open: None }).map(drop)
    }),
    ("write a", |store| store.write_at(&id("a"), 0, &[1; 5000], WriteOptions::default()).map(drop)),
    ("flush a", |store| store.flush(&id("a"))),
    ("rewrite a", |store| store.write_at(&id("a"), 4000, &[2; 2000], WriteOptions::default()).map(drop)),
    ("set a", |store| store.set_attribute(&id("a"), "l", b"w")),
    ("flush a again", |store| store.flush(&id("a"))),
    ("punch a", |store| store.punch(&id("a"), 10..20).map(drop)),
    ("shorten a", |store| store.truncate(&id("a"), 4500).map(drop)),
    ("grow a", |store| store.truncate(&id("a"), 4600).map(drop)),
    ("scatter a", |store| {
        let extents = [Extent { offset: 0, len: 2 }, Extent { offset: 4700, len: 10 }];
        store.write_extents(&id("a"), &extents, &[3; 12], WriteOptions::default()).map(drop)
    }),
    ("flush a a third time", |store| store.flush(&id("a"))),
    ("swap", |store| match store.compare_and_swap(&id("a"), "owner", None, Some(b"me"))? {
        CasOutcome::Swapped => Ok(()),
        CasOutcome::Mismatch { actual } => panic!("{actual:?}"),
    }),
    ("create b", |store| store.create(&id("b"), &CreateOptions::default()).map(drop)),
    ("count b", |store| store.fetch_add(&id("b"), "n", 1).map(|old| assert_eq!(old, 0))),
    ("remove b", |store| store.remove(&id("b"))),
];

fn expected_a() -> Vec<u8> {
    let mut bytes = vec![1u8; 5000];
    bytes[4000..].fill(2);
    bytes[10..20].fill(0);
    bytes.truncate(4500);
    bytes.resize(4700, 0);
    bytes.resize(4710, 3);
    bytes[..2].fill(3);
    bytes
}

/// Does every step. If the device refuses one, checks the error with `right`, heals the device and repeats the step.
/// Returns whether the device refused a step.
fn work(dir: &Path, disk: &FaultyDisk, right: fn(&StoreError) -> bool) -> bool {
    let mut failed = false;
    let mut retry = |what: &str, error: StoreError| {
        assert!(right(&error), "{what}: {error:?}");
        assert!(!failed, "{what} fails on a healed device: {error:?}");
        failed = true;
        disk.heal();
    };
    let store = match open(dir, disk) {
        Ok(store) => store,
        Err(error) => {
            retry("open", error);
            open(dir, disk).unwrap()
        }
    };
    for &(what, step) in STEPS {
        let Err(error) = step(&store) else { continue };
        retry(what, error);
        assert_eq!(all_bytes(&store, &id("kept")), b"kept safe");
        match step(&store) {
            Ok(()) => {}
            // After a failed sync, the object must be written again from the start.
            Err(StoreError::Unsynced { .. }) => {
                let a = if what.ends_with('b') { id("b") } else { id("a") };
                let bytes = all_bytes(&store, &a);
                store.truncate(&a, 0).unwrap();
                store.write_at(&a, 0, &bytes, WriteOptions::default()).unwrap();
                step(&store).unwrap();
            }
            Err(error) => panic!("{what} again: {error:?}"),
        }
    }
    assert!(all_bytes(&store, &id("a")) == expected_a());
    store.shut_down().unwrap();
    failed
}

fn refuse_every_call(errno: i32, right: fn(&StoreError) -> bool) {
    let mut refusals = 0;
    loop {
        let parent = scratch();
        let dir = parent.path().join("store");
        let disk = FaultyDisk::new();
        let store = open(&dir, &disk).unwrap();
        store.create(&id("kept"), &CreateOptions::default()).unwrap();
        store.append(&id("kept"), b"kept safe").unwrap();
        store.shut_down().unwrap();
        disk.fail_from(disk.calls() + refusals, errno);
        let failed = work(&dir, &disk, right);
        disk.heal();
        // Acknowledged changes are durable, whichever call was refused.
        disk.lose_power(&mut Dice(refusals));
        let store = open(&dir, &disk).unwrap();
        assert_eq!(all_bytes(&store, &id("kept")), b"kept safe");
        assert!(all_bytes(&store, &id("a")) == expected_a());
        assert_eq!(store.list_attributes(&id("a")).unwrap(), ["k", "l", "owner"]);
        assert_eq!(store.list("", None, 10).unwrap(), [id("a"), id("kept")]);
        if !failed {
            break;
        }
        refusals += 1;
    }
    assert!(refusals > 25, "only {refusals} calls could be refused");
}

#[test]
fn full_device_loses_nothing() {
    refuse_every_call(ENOSPC, |error| matches!(error, StoreError::NoSpace { .. }));
}

#[test]
fn full_quota_loses_nothing() {
    refuse_every_call(EDQUOT, |error| matches!(error, StoreError::NoSpace { .. }));
}

#[test]
fn missing_permission_is_named() {
    refuse_every_call(EACCES, |error| matches!(error, StoreError::Permission { .. }));
}

#[test]
fn removal_succeeds_where_the_file_cannot_be_unlinked() {
    let parent = scratch();
    let dir = parent.path().join("store");
    let disk = FaultyDisk::new();
    let store = open(&dir, &disk).unwrap();
    store.create(&id("a"), &CreateOptions::default()).unwrap();
    store.flush(&id("a")).unwrap();
    // The commit is allowed, and the unlink after it is refused.
    disk.fail_from(disk.calls() + 1, EACCES);
    store.remove(&id("a")).unwrap();
    disk.heal();
    assert_eq!(super::data_files(&dir), 1);
    store.create(&id("a"), &CreateOptions::default()).unwrap();
    assert_eq!(all_bytes(&store, &id("a")), b"");
    drop(store);
    open(&dir, &disk).unwrap();
    assert_eq!(
        super::data_files(&dir),
        0,
        "the next open removes the file of an object that was never flushed"
    );
}

#[test]
fn a_refused_write_leaves_no_bytes_behind_the_end() {
    for heal_before_growing in [false, true] {
        let parent = scratch();
        let dir = parent.path().join("store");
        let disk = FaultyDisk::new();
        let store = open(&dir, &disk).unwrap();
        let a = id("a");
        store.create(&a, &CreateOptions::default()).unwrap();
        store.append(&a, b"12345").unwrap();
        let before = store.stat(&a).unwrap();
        disk.fail_from(disk.calls(), ENOSPC);
        // Half of the bytes reach the file, and the cut is refused too.
        assert!(matches!(store.append(&a, &[7; 100]), Err(StoreError::NoSpace { .. })));
        disk.heal();
        let after = store.stat(&a).unwrap();
        assert_eq!(after.length, before.length);
        assert!(after.version > before.version);
        assert_eq!(all_bytes(&store, &a), b"12345");
        if heal_before_growing {
            store.flush(&a).unwrap();
        }
        store.write_at(&a, 60, b"x", WriteOptions::default()).unwrap();
        let mut expected = b"12345".to_vec();
        expected.resize(60, 0);
        expected.push(b'x');
        assert_eq!(all_bytes(&store, &a), expected);
        store.shut_down().unwrap();
        assert_eq!(all_bytes(&open(&dir, &disk).unwrap(), &a), expected);
    }
}

#[test]
fn a_failed_sync_is_not_forgotten() {
    let parent = scratch();
    let disk = FaultyDisk::new();
    let store = open(&parent.path().join("store"), &disk).unwrap();
    let a = id("a");
    store.create(&a, &CreateOptions::default()).unwrap();
    store.append(&a, b"lost").unwrap();
    disk.fail_from(disk.calls(), ENOSPC);
    assert!(matches!(store.flush(&a), Err(StoreError::NoSpace { .. })));
    disk.heal();
    for _ in 0..2 {
        assert!(matches!(store.flush(&a), Err(StoreError::Unsynced { .. })));
    }
    store.truncate(&a, 0).unwrap();
    store.append(&a, b"found").unwrap();
    store.flush(&a).unwrap();
    store.shut_down().unwrap();
}

#[test]
fn atomic_files_are_old_or_new() {
    for (errno, lose) in [(ENOSPC, false), (EACCES, false), (5, true)] {
        let mut refusals = 0;
        loop {
            let dir = scratch();
            let path = dir.path().join("config");
            let disk = FaultyDisk::new();
            write_atomic_on(&disk, &path, b"old").unwrap();
            disk.fail_from(disk.calls() + refusals, errno);
            let written = write_atomic_on(&disk, &path, &[b'n'; 1000]);
            disk.heal();
            if lose {
                disk.lose_power(&mut Dice(refusals));
            }
            let found = std::fs::read(&path).unwrap();
            assert!(found == b"old" || found == [b'n'; 1000], "half-written");
            assert!(written.is_err() || found.len() == 1000, "acknowledged, but lost");
            if written.is_ok() {
                break;
            }
            refusals += 1;
        }
        assert!(refusals >= 5, "create, write, sync, rename, sync of the directory");
    }
}

#[test]
fn atomic_files_leave_nothing_behind() {
    let dir = scratch();
    let target = dir.path().join("taken");
    std::fs::create_dir(&target).unwrap();
    assert!(crate::write_atomic(&target, b"x").is_err(), "a directory cannot be replaced by a file");
    assert!(matches!(crate::write_atomic(Path::new("/"), b"x"), Err(StoreError::Invalid { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    crate::write_atomic(&dir.path().join("new"), b"").unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}
