//! Striped files: bytes come back, replacing is a swap, damage is reported.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gristmill_client::{ClientError, Descriptor, PutOptions, get, open, put, read_to, remove};
use gristmill_runtime::{Control, RunError};
use gristmill_store::StoreError;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn source(&self, len: usize, seed: u8) -> PathBuf {
        let path = self.path(&format!("source{seed}"));
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 + i / 251) as u8 ^ seed).collect();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn options(&self, targets: usize, unit: u64) -> PutOptions {
        let targets = (0..targets).map(|n| self.path(&format!("target{n}"))).collect();
        PutOptions { targets, unit, record: None }
    }

    /// Objects on all targets.
    fn objects(&self) -> usize {
        walk(self.dir.path())
            .iter()
            .filter(|path| path.components().any(|c| c.as_os_str() == "objects"))
            .count()
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

fn content(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    read_to(&open(path).unwrap(), &mut out, &mut |_| ()).unwrap();
    out
}

#[test]
fn what_goes_in_comes_out() {
    for (len, targets, unit) in [(0, 3, 10), (1, 3, 10), (1000, 1, 7), (1000, 5, 13), (300_000, 4, 65_536)] {
        let place = Place::new();
        let source = place.source(len, 1);
        let path = place.path("f.grist");
        put(&source, &path, &place.options(targets, unit), &mut |_| ()).unwrap();
        assert_eq!(content(&path), fs::read(&source).unwrap(), "{len} bytes, {targets} targets, unit {unit}");
        // Striped again in another way: the bytes, not the layout file.
        let again = place.path("again.grist");
        put(&path, &again, &PutOptions { unit: unit + 3, ..place.options(2, 1) }, &mut |_| ()).unwrap();
        assert_eq!(content(&again), fs::read(&source).unwrap());
        remove(&again).unwrap();
        let copy = place.path("copy");
        get(&open(&path).unwrap(), 0o644, &copy, &Control::new(), &mut |_| ()).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&source).unwrap());
        remove(&path).unwrap();
        assert_eq!(place.objects(), 0);
        assert!(!path.exists());
    }
}

#[test]
fn a_copy_is_at_no_time_open_to_more_than_was_said() {
    let place = Place::new();
    let source = place.source(3_000_000, 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for wanted in [0o600, 0o640, 0o400] {
        let copy = place.path("copy");
        let mut meanwhile = Vec::new();
        let mut look = |_| {
            let mut files = walk(place.dir.path()).into_iter();
            let partial = files.find(|path| path.extension().is_some_and(|end| end == "partial"));
            meanwhile.push(mode(&partial.unwrap()));
        };
        get(&open(&source).unwrap(), wanted, &copy, &Control::new(), &mut look).unwrap();
        assert_eq!(mode(&copy) & !wanted, 0, "{:o} of {wanted:o}", mode(&copy));
        assert!(meanwhile.iter().all(|bits| bits & !wanted == 0), "{meanwhile:?} of {wanted:o}");
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&source).unwrap());
    }
}

#[test]
fn a_copy_that_is_stopped_leaves_what_was_there() {
    let place = Place::new();
    let source = place.source(5_000_000, 1);
    let copy = place.path("copy");
    fs::write(&copy, "old").unwrap();
    let before = walk(place.dir.path());
    // In the middle, and when all is written.
    for (at, reached) in [(1, 1 << 20), (5_000_000, 5_000_000)] {
        let stop = Control::new();
        let mut seen = 0;
        let mut progress = |now| {
            seen = now;
            if now >= at {
                stop.stop();
            }
        };
        let result = get(&open(&source).unwrap(), 0o644, &copy, &stop, &mut progress);
        assert!(matches!(result, Err(ClientError::Stopped { .. })), "{result:?}");
        assert_eq!(seen, reached);
        assert_eq!(fs::read(&copy).unwrap(), b"old");
        assert_eq!(walk(place.dir.path()).len(), before.len());
    }
}

#[test]
fn replacing_is_a_swap_that_readers_notice() {
    let place = Place::new();
    let path = place.path("f.grist");
    let options = place.options(3, 100);
    put(&place.source(5000, 1), &path, &options, &mut |_| ()).unwrap();
    let before = open(&path).unwrap();
    let second = place.source(7000, 2);
    put(&second, &path, &options, &mut |_| ()).unwrap();
    assert_eq!(content(&path), fs::read(&second).unwrap());
    assert_eq!(place.objects(), 3, "the objects of the first are gone");
    // A reader of the first file gets an error, and never bytes of the second.
    let result = read_to(&before, &mut Vec::new(), &mut |_| ());
    assert!(
        matches!(result, Err(ClientError::Run(RunError::Store(StoreError::NotFound { .. })))),
        "{result:?}"
    );
}

#[test]
fn a_put_that_fails_leaves_nothing() {
    let place = Place::new();
    let path = place.path("f.grist");
    // A target that cannot be made.
    let mut options = place.options(3, 100);
    options.targets[2] = place.path("missing").join("deeper");
    let result = put(&place.source(5000, 1), &path, &options, &mut |_| ());
    assert!(matches!(result, Err(ClientError::Target { .. })), "{result:?}");
    assert!(!path.exists());
    assert_eq!(place.objects(), 0);
    // A source that grows while it is read.
    let source = place.source(3_000_000, 2);
    let mut grow = |at| {
        if at < 1_000_000 {
            let bytes = [fs::read(&source).unwrap(), vec![0; 10]].concat();
            fs::write(&source, bytes).unwrap();
        }
    };
    let result = put(&source, &path, &place.options(3, 100), &mut grow);
    assert!(result.is_err(), "{result:?}");
    assert!(!path.exists());
    assert_eq!(place.objects(), 0);
}

#[test]
fn a_request_that_makes_no_sense_is_refused_before_anything_is_written() {
    let place = Place::new();
    let source = place.source(100, 1);
    let twice = PutOptions { targets: vec![place.path("t"), place.path("t")], unit: 10, record: None };
    let plain = place.path("plain.grist");
    fs::write(&plain, "no layout").unwrap();
    let cases = [
        put(&source, &place.path("f"), &place.options(2, 10), &mut |_| ()),
        put(&source, &place.path("f.grist"), &place.options(0, 10), &mut |_| ()),
        put(&source, &place.path("f.grist"), &place.options(2, 0), &mut |_| ()),
        put(&source, &place.path("f.grist"), &twice, &mut |_| ()),
        put(place.dir.path(), &place.path("f.grist"), &place.options(2, 10), &mut |_| ()),
    ];
    for case in cases {
        assert!(case.as_ref().is_err_and(ClientError::is_usage), "{case:?}");
    }
    let over = put(&source, &plain, &place.options(2, 10), &mut |_| ());
    assert!(matches!(over, Err(ClientError::Descriptor { .. })), "{over:?}");
    assert_eq!(fs::read(&plain).unwrap(), b"no layout");
    assert_eq!(place.objects(), 0);
}

#[test]
fn damage_is_named() {
    let place = Place::new();
    let path = place.path("f.grist");
    put(&place.source(5000, 1), &path, &place.options(2, 100), &mut |_| ()).unwrap();
    let descriptor = Descriptor::read(&path).unwrap();
    for text in [
        "",
        "{}",
        "{\"gristmill_layout\":2,\"length\":1,\"unit\":1,\"first\":0,\"object\":\"a\",\"targets\":[\"t\"]}",
        "{\"gristmill_layout\":1,\"length\":1,\"unit\":0,\"first\":0,\"object\":\"a\",\"targets\":[\"t\"]}",
        "{\"gristmill_layout\":1,\"length\":1,\"unit\":1,\"first\":9,\"object\":\"a\",\"targets\":[\"t\"]}",
        "{\"gristmill_layout\":1,\"length\":18446744073709551615,\"unit\":1,\"first\":0,\"object\":\"a\",\"targets\":[]}",
    ] {
        let other = place.path("other.grist");
        fs::write(&other, text).unwrap();
        let result = open(&other).err();
        assert!(matches!(result, Some(ClientError::Descriptor { .. })), "{text}: {result:?}");
    }
    let escape = fs::read_to_string(&path).unwrap().replace(&descriptor.object, "../secret");
    let other = place.path("escape.grist");
    fs::write(&other, escape).unwrap();
    assert!(matches!(open(&other).err(), Some(ClientError::Descriptor { .. })));
    // An object that was truncated without the store.
    let object =
        walk(&place.path("target1")).into_iter().find(|path| path.ends_with(&descriptor.object)).unwrap();
    fs::File::options().write(true).open(&object).unwrap().set_len(10).unwrap();
    let result = open(&path).and_then(|file| read_to(&file, &mut Vec::new(), &mut |_| ()));
    assert!(result.is_err(), "{result:?}");
}
