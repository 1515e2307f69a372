//! Stores with damaged files, and directories that are not stores: a typed error, and never a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test: a panic is a failure")]

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_store::{
    CreateOptions, LocalStore, ObjectId, ObjectStore, ReadOptions, Result, StoreError, WriteOptions,
};

fn id(name: &str) -> ObjectId {
    ObjectId::new(name).unwrap()
}

fn make(dir: &Path) {
    let store = LocalStore::open(dir).unwrap();
    for i in 0..20 {
        let id = id(&format!("object{i}"));
        store.create(&id, &CreateOptions::default()).unwrap();
        let value = vec![i as u8; 1000];
        let options = WriteOptions { attributes: &[("k", Some(&value))], if_version: None };
        store.write_at(&id, 0, &[i as u8; 100], options).unwrap();
    }
    store.shut_down().unwrap();
}

fn data_file(dir: &Path, name: &str) -> PathBuf {
    let list = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files = list(dir.join("objects")).flat_map(list).flat_map(list);
    files.find(|path| path.file_name().unwrap() == name).unwrap()
}

/// Uses all of the store, until the first error.
fn use_all(store: &dyn ObjectStore, write: bool) -> Result<()> {
    for id in store.list("", None, 100)? {
        store.stat(&id)?;
        store.read_at(&id, 0, &mut [0; 200], ReadOptions::default())?;
        for name in store.list_attributes(&id)? {
            store.get_attribute(&id, &name)?;
        }
        store.written(&id, 0..u64::MAX)?;
        if write {
            store.write_at(
                &id,
                50,
                &[9; 100],
                WriteOptions { attributes: &[("l", Some(b"v"))], if_version: None },
            )?;
            store.flush(&id)?;
            store.fetch_add(&id, "n", 1)?;
        }
    }
    Ok(())
}

fn is_damaged(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged { .. })
}

#[test]
fn a_damaged_sqlite_file_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    let meta = dir.join("meta.sqlite");
    let good = fs::read(&meta).unwrap();
    let objects: Vec<_> = (0..20).map(|i| data_file(&dir, &format!("object{i}"))).collect();
    let reset = |bytes: &[u8]| {
        for name in ["meta.sqlite-wal", "meta.sqlite-shm"] {
            let _ = fs::remove_file(dir.join(name));
        }
        fs::write(&meta, bytes).unwrap();
        for (i, path) in objects.iter().enumerate() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, [i as u8; 100]).unwrap();
        }
    };
    let attempt = || {
        let reader = LocalStore::open_read_only(&dir).and_then(|store| use_all(&store, false));
        let writer = LocalStore::open(&dir).and_then(|store| use_all(&store, true).and(store.shut_down()));
        [reader, writer]
    };
    reset(&good);
    assert!(attempt().iter().all(Result::is_ok), "the check itself works on a sound store");

    // An empty file, half a header, not a SQLite file, half of the pages.
    let mut garbage = good.clone();
    garbage[..100].fill(b'x');
    for bad in [&[][..], &good[..50], &garbage, &good[..good.len() / 2]] {
        reset(bad);
        for result in attempt() {
            assert!(is_damaged(&result.unwrap_err()));
        }
    }
    // A page of noise, or a changed byte, is found or has no effect, and never causes a panic. Changes in the values of
    // a row that SQLite cannot see are not found.
    let mut found = 0;
    let pages = good.chunks(4096).count();
    let spots =
        (0..pages).map(|page| (page * 4096, 4096)).chain((0..150).map(|i| (i * 7919 % good.len(), 1)));
    for (start, len) in spots {
        let mut bad = good.clone();
        let end = (start + len).min(bad.len());
        bad[start..end].iter_mut().enumerate().for_each(|(i, byte)| *byte ^= (i * 37 + 165) as u8);
        reset(&bad);
        found += attempt().iter().filter(|result| result.as_ref().is_err_and(is_damaged)).count();
    }
    assert!(found > pages, "only {found} of the damaged files were detected");
}

#[test]
fn lost_metadata_do_not_look_like_a_new_store() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    for name in ["meta.sqlite", "meta.sqlite-wal", "meta.sqlite-shm"] {
        let _ = fs::remove_file(dir.join(name));
    }
    assert!(is_damaged(&LocalStore::open(&dir).err().unwrap()));
    assert_eq!(fs::read(data_file(&dir, "object7")).unwrap(), [7; 100], "no data file was removed");
}

#[test]
fn damaged_data_files_are_named_and_removable() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    fs::remove_file(data_file(&dir, "object1")).unwrap();
    fs::write(data_file(&dir, "object2"), [2; 99]).unwrap();
    fs::write(data_file(&dir, "object3"), [3; 101]).unwrap();
    let store = LocalStore::open(&dir).unwrap();
    for name in ["object1", "object2", "object3"] {
        let (id, mut buffer) = (id(name), [0; 100]);
        assert!(is_damaged(&store.examine(&id).unwrap_err()), "{name}");
        let error = store.read_at(&id, 0, &mut buffer, ReadOptions::default()).unwrap_err();
        assert!(is_damaged(&error) && error.to_string().contains(name), "{error}");
        assert!(is_damaged(&store.append(&id, b"x").unwrap_err()));
        store.remove(&id).unwrap();
        store.create(&id, &CreateOptions::default()).unwrap();
        store.append(&id, b"new").unwrap();
        store.flush(&id).unwrap();
    }
    let mut buffer = [0; 100];
    store.read_at(&id("object4"), 0, &mut buffer, ReadOptions::default()).unwrap();
    assert_eq!(buffer, [4; 100], "the others are unchanged");
    assert_eq!(store.examine(&id("object4")).unwrap(), store.stat(&id("object4")).unwrap());
    fs::remove_file(data_file(&dir, "object4")).unwrap();
    assert!(is_damaged(&store.examine(&id("object4")).unwrap_err()), "even if the file is open");
    store.shut_down().unwrap();
}

#[test]
fn a_scrub_lists_objects_whose_file_is_missing_or_cut_off() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    let writer = LocalStore::open(&dir).unwrap();
    let reader = LocalStore::open_read_only(&dir).unwrap();
    let stores: [&dyn ObjectStore; 2] = [&writer, &reader];
    let check = |name: &str, damaged: &[std::ops::Range<u64>]| {
        for store in stores {
            let found = store.scrub(&id(name), 0).unwrap();
            assert_eq!((found.next, found.damaged.as_slice()), (None, damaged), "{name}");
            assert_eq!(found.checked, if damaged.is_empty() { 100 } else { 0 }, "{name}");
        }
    };
    // Both stores have the files open.
    for name in ["object1", "object2", "object3"] {
        for store in stores {
            store.read_at(&id(name), 0, &mut [0; 100], ReadOptions::default()).unwrap();
        }
    }
    fs::remove_file(data_file(&dir, "object1")).unwrap();
    fs::write(data_file(&dir, "object2"), [2; 99]).unwrap();
    let all = 0..100;
    check("object1", std::slice::from_ref(&all));
    check("object2", std::slice::from_ref(&all));
    check("object3", &[]);
}

#[test]
fn recovery_reports_its_progress() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let store = LocalStore::open(&dir).unwrap();
    for n in 0..5 {
        let id = id(&format!("object{n}"));
        store.create(&id, &CreateOptions::default()).unwrap();
        store.append(&id, b"flushed").unwrap();
        store.flush(&id).unwrap();
        store.append(&id, b"not").unwrap();
    }
    drop(store);
    let mut reports = Vec::new();
    let store = LocalStore::open_with_progress(&dir, &mut |progress| reports.push(progress)).unwrap();
    let last = reports.last().unwrap();
    assert_eq!((last.objects, last.folders.0 + 1), (5, last.folders.1), "{reports:?}");
    assert!(reports.is_sorted_by_key(|progress| (progress.objects, progress.folders)), "{reports:?}");
    store.shut_down().unwrap();
    LocalStore::open_with_progress(&dir, &mut |progress| {
        panic!("there was nothing to recover: {progress:?}")
    })
    .unwrap();
}

#[test]
fn a_file_cut_while_open_is_noticed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    let store = LocalStore::open(&dir).unwrap();
    let (a, mut buffer) = (id("object5"), [0; 100]);
    store.read_at(&a, 0, &mut buffer, ReadOptions::default()).unwrap();
    fs::OpenOptions::new().write(true).open(data_file(&dir, "object5")).unwrap().set_len(10).unwrap();
    assert!(is_damaged(&store.read_at(&a, 0, &mut buffer, ReadOptions::default()).unwrap_err()));
    assert!(is_damaged(
        &LocalStore::open_read_only(&dir)
            .unwrap()
            .read_at(&a, 0, &mut buffer, ReadOptions::default())
            .unwrap_err()
    ));
}

#[test]
fn foreign_directories_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(LocalStore::open_read_only(&empty), Err(StoreError::Invalid { .. })));
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "an open for reading makes no files");
    let far = parent.path().join("no/such/parent");
    assert!(matches!(LocalStore::open(&far), Err(StoreError::Io { .. })));
    let file = parent.path().join("file");
    fs::write(&file, b"text").unwrap();
    assert!(LocalStore::open(&file).is_err());
    assert!(LocalStore::open_read_only(&file).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"text");
}

#[test]
fn foreign_files_are_kept() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    make(&dir);
    let beside = data_file(&dir, "object1").parent().unwrap().join("not-of-this-directory");
    fs::write(&beside, b"x").unwrap();
    fs::write(dir.join("objects/notes.txt"), b"x").unwrap();
    let store = LocalStore::open(&dir).unwrap();
    store.append(&id("object1"), b"unflushed").unwrap();
    drop(store);
    let store = LocalStore::open(&dir).unwrap();
    assert_eq!(store.stat(&id("object1")).unwrap().length, 100, "the open recovered");
    assert!(beside.exists() && dir.join("objects/notes.txt").exists());
}
