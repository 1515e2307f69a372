//! Bytes that changed on the device are never returned, and bytes that a writer changed are never called damaged.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{id, scratch};
use crate::disk::faulty::Dice;
use crate::local::paths::{OBJECTS_DIR, object_path};
use crate::local::{LocalReader, LocalStore};
use crate::suite::ManualClock;
use crate::sums::{BLOCK_BYTES, SEGMENT_BLOCKS};
use crate::{CreateOptions, Extent, ObjectId, ObjectStore, ReadOptions, StoreError, WriteOptions};

const SEEDS: u64 = 150;
const VERIFY: ReadOptions = ReadOptions { if_version: None, verify: true };

fn file_of(dir: &Path, name: &ObjectId) -> PathBuf {
    object_path(&dir.join(OBJECTS_DIR), name)
}

/// Flips all bits of a byte of a file.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

fn change(store: &LocalStore, dice: &mut Dice, name: &ObjectId) {
    let data: Vec<u8> = (0..dice.roll(90) + 1).map(|_| dice.roll(256) as u8).collect();
    let place = dice.roll(300);
    match dice.roll(8) {
        0 | 1 => drop(store.write_at(name, place, &data, WriteOptions::default()).unwrap()),
        2 => drop(store.append(name, &data).unwrap()),
        3 => {
            let extents: Vec<_> =
                (0..dice.roll(6)).map(|_| Extent { offset: dice.roll(300), len: dice.roll(50) }).collect();
            let data = vec![place as u8; extents.iter().map(|extent| extent.len as usize).sum()];
            store.write_extents(name, &extents, &data, WriteOptions::default()).unwrap();
        }
        4 => drop(store.punch(name, place..place + dice.roll(120)).unwrap()),
        5 => drop(store.truncate(name, dice.roll(350)).unwrap()),
        _ => store.flush(name).unwrap(),
    }
}

fn read_all(store: &dyn ObjectStore, name: &ObjectId, options: ReadOptions) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; store.stat(name)?.length as usize];
    store.read_at(name, 0, &mut bytes, options)?;
    Ok(bytes)
}

/// After any writes in any order, each later change of a byte is detected, and only its block is refused.
#[test]
fn every_changed_byte_is_detected() {
    for seed in 0..SEEDS {
        let dice = &mut Dice(seed);
        let parent = scratch();
        let dir = parent.path().join("store");
        let name = id("a");
        let mut store = LocalStore::open(&dir).unwrap();
        store.create(&name, &CreateOptions::default()).unwrap();
        for _ in 0..30 {
            change(&store, dice, &name);
            read_all(&store, &name, VERIFY).unwrap();
            if dice.roll(6) == 0 {
                store.shut_down().unwrap();
                store = LocalStore::open(&dir).unwrap();
            }
        }
        store.shut_down().unwrap();
        let reader = LocalStore::open_read_only(&dir).unwrap();
        let sound = read_all(&reader, &name, VERIFY).unwrap();
        let path = file_of(&dir, &name);
        for at in 0..sound.len() as u64 {
            flip(&path, at);
            match read_all(&reader, &name, VERIFY) {
                Err(StoreError::Corrupt { bytes, path: named, .. }) => {
                    assert!(bytes.contains(&at) && bytes.end - bytes.start <= BLOCK_BYTES, "seed {seed}");
                    assert_eq!(named, path);
                }
                other => panic!("seed {seed}: byte {at} of {} changed: {other:?}", sound.len()),
            }
            flip(&path, at);
        }
        assert_eq!(read_all(&reader, &name, VERIFY).unwrap(), sound);
    }
}

fn with_object(dir: &Path, clock: &Arc<ManualClock>) -> (LocalStore, ObjectId, Vec<u8>) {
    let store = LocalStore::open_with(dir, clock.clone()).unwrap();
    let name = id("a");
    let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 7).map(|i| i as u8).collect();
    store.create(&name, &CreateOptions::default()).unwrap();
    store.append(&name, &bytes).unwrap();
    store.flush(&name).unwrap();
    (store, name, bytes)
}

#[test]
fn a_block_is_checked_again_after_an_hour() {
    let (parent, clock) = (scratch(), Arc::new(ManualClock::new()));
    let dir = parent.path().join("store");
    let (store, name, bytes) = with_object(&dir, &clock);
    let plain = ReadOptions::default();
    assert_eq!(read_all(&store, &name, plain).unwrap(), bytes);
    flip(&file_of(&dir, &name), BLOCK_BYTES);
    clock.advance(Duration::from_secs(58 * 60));
    assert!(read_all(&store, &name, plain).is_ok(), "it was checked a short time ago");
    assert!(matches!(read_all(&store, &name, VERIFY), Err(StoreError::Corrupt { .. })));
    clock.advance(Duration::from_secs(3 * 60));
    let range = |result| match result {
        Err(StoreError::Corrupt { bytes, .. }) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!(range(read_all(&store, &name, plain)), BLOCK_BYTES..2 * BLOCK_BYTES);
    // A read of a part of the block is refused too. Reads of other blocks are not.
    let mut part = [0; 3];
    let at = |start, part: &mut [u8]| store.read_at(&name, start, part, plain);
    assert_eq!(range(at(BLOCK_BYTES + 5, &mut part).map(|_| Vec::new())), BLOCK_BYTES..2 * BLOCK_BYTES);
    assert_eq!(at(0, &mut part).unwrap(), 3);
    assert_eq!(at(2 * BLOCK_BYTES, &mut part).unwrap(), 3);
}

/// Checks of many short objects are remembered for an hour too.
#[test]
fn many_objects_are_not_checked_each_time() {
    let parent = scratch();
    let dir = parent.path().join("store");
    let store = LocalStore::open(&dir).unwrap();
    let names: Vec<_> = (0..6_000).map(|number| id(&format!("object-{number}"))).collect();
    for name in &names {
        store.create(name, &CreateOptions::default()).unwrap();
        store.append(name, b"short").unwrap();
    }
    store.flush_all().unwrap();
    for name in &names {
        read_all(&store, name, ReadOptions::default()).unwrap();
    }
    for name in [&names[0], &names[5_999]] {
        flip(&file_of(&dir, name), 0);
        assert!(read_all(&store, name, ReadOptions::default()).is_ok());
        assert!(read_all(&store, name, VERIFY).is_err());
    }
}

#[test]
fn a_rewritten_block_is_sound() {
    let (parent, clock) = (scratch(), Arc::new(ManualClock::new()));
    let dir = parent.path().join("store");
    let (store, name, bytes) = with_object(&dir, &clock);
    flip(&file_of(&dir, &name), 3);
    assert!(read_all(&store, &name, VERIFY).is_err());
    store.write_at(&name, 0, &bytes[..BLOCK_BYTES as usize], WriteOptions::default()).unwrap();
    assert_eq!(read_all(&store, &name, VERIFY).unwrap(), bytes);
    store.flush(&name).unwrap();
    assert_eq!(read_all(&store, &name, VERIFY).unwrap(), bytes);
}

/// Unacknowledged bytes of a process that ended early are readable, and bytes outside of its write are still checked.
#[test]
fn unacknowledged_bytes_are_not_damage() {
    let parent = scratch();
    let dir = parent.path().join("store");
    let name = id("a");
    let length = 40 * BLOCK_BYTES * SEGMENT_BLOCKS;
    let store = LocalStore::open(&dir).unwrap();
    store.create(&name, &CreateOptions::default()).unwrap();
    store.append(&name, &vec![1; length as usize]).unwrap();
    store.flush(&name).unwrap();
    store.write_at(&name, BLOCK_BYTES + 1, b"new", WriteOptions::default()).unwrap();
    drop(store);
    let store = LocalStore::open(&dir).unwrap();
    let bytes = read_all(&store, &name, VERIFY).unwrap();
    assert_eq!(&bytes[BLOCK_BYTES as usize..][..5], b"\x01new\x01");
    flip(&file_of(&dir, &name), length - 1);
    assert!(matches!(read_all(&store, &name, VERIFY), Err(StoreError::Corrupt { .. })));
}

/// The option `verify` also checks gathered extents, in the writing process and in a process that only reads.
#[test]
fn extents_are_verified_on_request() {
    let (parent, clock) = (scratch(), Arc::new(ManualClock::new()));
    let dir = parent.path().join("store");
    let (store, name, bytes) = with_object(&dir, &clock);
    let reader = LocalStore::open_read_only(&dir).unwrap();
    let extents = [Extent { offset: 2, len: 3 }];
    for store in [&store as &dyn ObjectStore, &reader] {
        let mut buffer = [0; 3];
        store.read_extents(&name, &extents, &mut buffer, ReadOptions::default()).unwrap();
        assert_eq!(buffer, bytes[2..5]);
    }
    flip(&file_of(&dir, &name), 0);
    for store in [&store as &dyn ObjectStore, &reader] {
        let read = store.read_extents(&name, &extents, &mut [0; 3], VERIFY);
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    }
}

#[test]
fn a_concurrent_reader_sees_no_damage() {
    let parent = scratch();
    let dir = parent.path().join("store");
    let store = LocalStore::open(&dir).unwrap();
    let name = id("a");
    store.create(&name, &CreateOptions::default()).unwrap();
    store.append(&name, &[7; 500]).unwrap();
    store.flush(&name).unwrap();
    let reader: LocalReader = LocalStore::open_read_only(&dir).unwrap();
    for round in 0..50u8 {
        store.write_at(&name, u64::from(round) * 3, &[round; 40], WriteOptions::default()).unwrap();
        read_all(&reader, &name, VERIFY).unwrap();
        store.append(&name, &[round; 13]).unwrap();
        read_all(&reader, &name, VERIFY).unwrap();
        store.flush(&name).unwrap();
        assert_eq!(read_all(&reader, &name, VERIFY).unwrap(), read_all(&store, &name, VERIFY).unwrap());
    }
}
