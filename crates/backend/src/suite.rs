//! The tests that every backend passes. A crate with a backend calls [`backend_suite!`](crate::backend_suite) in a test.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::single_range_in_vec_init,
    reason = "these are tests"
)]

use std::sync::Arc;

use crate::{Backend, BackendError, Content, Entry, Key, MAX_LIST_PAGE};

/// A backend, and a way to change its files from outside.
pub trait Fixture {
    /// The backend. All calls return the same files.
    fn backend(&self) -> Arc<dyn Backend>;

    /// Writes a file, or replaces it as a whole, with the folders above it.
    fn put(&self, key: &Key, bytes: &[u8]);

    /// Removes a file.
    fn remove(&self, key: &Key);
}

/// Makes a module with all tests. `$make` is called for each test and returns a [`Fixture`] without files.
#[macro_export]
macro_rules! backend_suite {
    ($module:ident, $make:expr) => {
        $crate::backend_suite!(
            $module,
            $make,
            [
                ranges_are_read_in_any_order,
                a_range_is_read_in_the_state_of_now,
                an_empty_file_has_no_bytes,
                bytes_after_the_end_are_an_error,
                missing_files_and_folders_are_errors,
                folders_are_no_files_and_files_are_no_folders,
                lists_have_one_level,
                lists_come_in_pages,
                files_below_a_folder_are_listed,
                lists_below_a_folder_come_in_pages,
                expected_ranges_are_read,
                a_new_content_has_a_new_version,
                a_file_that_is_replaced_is_never_mixed,
                a_file_that_is_removed_is_never_zeros,
                objects_are_read_by_many_threads
            ]
        );
    };
    ($module:ident, $make:expr, [$($test:ident),*]) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $test() {
                    $crate::suite::$test(&$make);
                }
            )*
        }
    };
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Different bytes for every seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(step).collect()
}

/// The names and the lengths of files.
fn names(entries: &[Entry]) -> Vec<(&str, Option<u64>)> {
    let length = |entry: &Entry| match &entry.content {
        Content::File(found) => Some(found.length),
        _ => None,
    };
    entries.iter().map(|one| (one.name.as_str(), length(one))).collect()
}

/// Ranges may overlap, be empty and have any order.
pub fn ranges_are_read_in_any_order(fixture: &dyn Fixture) {
    let bytes = noise(1, 100_000);
    fixture.put(&key("a/file"), &bytes);
    let object = fixture.backend().open(&key("a/file")).unwrap();
    assert_eq!(object.found().length, 100_000);
    assert!(object.name().ends_with("a/file"), "{}", object.name());
    let all: &[&[std::ops::Range<u64>]] = &[
        &[0..100_000],
        &[99_999..100_000, 0..1],
        &[5..5],
        &[],
        &[40_000..70_000, 10..20, 15..30, 70_000..70_000, 69_990..70_100],
    ];
    for ranges in all {
        let wanted: Vec<u8> = ranges
            .iter()
            .flat_map(|range| bytes[range.start as usize..range.end as usize].to_vec())
            .collect();
        let mut out = vec![0; wanted.len()];
        object.read(ranges, &mut out).unwrap();
        assert!(out == wanted, "{ranges:?}");
    }
    object.unchanged().unwrap();
}

/// One range is read without an opened object, also of a file that was replaced before.
pub fn a_range_is_read_in_the_state_of_now(fixture: &dyn Fixture) {
    let backend = fixture.backend();
    for seed in 0..2 {
        let bytes = noise(seed, 9 << 20);
        fixture.put(&key("now/a b%25.bin"), &bytes);
        for range in [0..bytes.len(), 0..1, 5..1_000, bytes.len() - 1..bytes.len(), 7..7, 1..(8 << 20) + 1] {
            let mut out = vec![0; range.len()];
            backend.read_now(&key("now/a b%25.bin"), range.start as u64, &mut out).unwrap();
            assert!(out == bytes[range.clone()], "{range:?}");
        }
        let beyond = backend.read_now(&key("now/a b%25.bin"), bytes.len() as u64 - 1, &mut [0; 2]);
        assert!(
            matches!(beyond, Err(BackendError::Short { length, .. }) if length == bytes.len() as u64),
            "{beyond:?}"
        );
        let behind = backend.read_now(&key("now/a b%25.bin"), bytes.len() as u64 + 5, &mut [0; 2]);
        assert!(matches!(behind, Err(BackendError::Short { .. })), "{behind:?}");
    }
    let mut out = [0; 4];
    let missing = backend.read_now(&key("now/missing"), 0, &mut out);
    assert!(matches!(missing, Err(BackendError::NotFound { .. })), "{missing:?}");
    let folder = backend.read_now(&key("now"), 0, &mut out);
    assert!(
        matches!(folder, Err(BackendError::WrongKind { .. } | BackendError::NotFound { .. })),
        "{folder:?}"
    );
    fixture.put(&key("now/empty"), b"");
    let empty = backend.read_now(&key("now/empty"), 0, &mut out);
    assert!(matches!(empty, Err(BackendError::Short { length: 0, .. })), "{empty:?}");
    backend.read_now(&key("now/empty"), 0, &mut []).unwrap();
}

/// An empty file is opened and read.
pub fn an_empty_file_has_no_bytes(fixture: &dyn Fixture) {
    fixture.put(&key("empty"), b"");
    let object = fixture.backend().open(&key("empty")).unwrap();
    assert_eq!(object.found().length, 0);
    object.read(&[0..0], &mut []).unwrap();
    object.unchanged().unwrap();
    assert!(matches!(object.read(&[0..1], &mut [0]), Err(BackendError::Short { end: 1, length: 0, .. })));
}

/// Ranges after the end, and buffers of another length, are errors.
pub fn bytes_after_the_end_are_an_error(fixture: &dyn Fixture) {
    fixture.put(&key("file"), &noise(2, 1000));
    let object = fixture.backend().open(&key("file")).unwrap();
    for ranges in [vec![999..1001], vec![0..10, 1000..1001], vec![5000..5001], vec![u64::MAX - 1..u64::MAX]] {
        let mut out = vec![0; ranges.iter().map(|range| (range.end - range.start) as usize).sum()];
        let error = object.read(&ranges, &mut out).unwrap_err();
        assert!(matches!(&error, BackendError::Short { length: 1000, .. }), "{ranges:?}: {error}");
        assert!(error.to_string().contains("file"), "{error}");
    }
    for (ranges, room) in
        [(vec![0..10], 9), (vec![0..10], 11), (vec![std::ops::Range { start: 10, end: 0 }], 0)]
    {
        let error = object.read(&ranges, &mut vec![0; room]).unwrap_err();
        assert!(matches!(error, BackendError::Internal { .. }), "{error}");
    }
}

/// A missing file or folder gives an error that names it.
pub fn missing_files_and_folders_are_errors(fixture: &dyn Fixture) {
    fixture.put(&key("a/file"), b"1");
    let backend = fixture.backend();
    for missing in ["b", "a/b", "b/file", "a/fil", "a/file2"] {
        let missing = key(missing);
        let errors = [
            backend.stat(&missing).unwrap_err(),
            backend.open(&missing).err().unwrap(),
            backend.list(&missing, None, 10).unwrap_err(),
        ];
        for error in errors {
            assert!(
                matches!(&error, BackendError::NotFound { name } if name.ends_with(missing.as_str())),
                "{error:?}"
            );
        }
    }
}

/// Files and folders are not confused.
pub fn folders_are_no_files_and_files_are_no_folders(fixture: &dyn Fixture) {
    fixture.put(&key("a/b/file"), b"12");
    let backend = fixture.backend();
    for folder in [Key::ROOT, key("a"), key("a/b")] {
        for error in [backend.stat(&folder).unwrap_err(), backend.open(&folder).err().unwrap()] {
            assert!(
                matches!(error, BackendError::WrongKind { .. } | BackendError::NotFound { .. }),
                "{error:?}"
            );
        }
    }
    let error = backend.list(&key("a/b/file"), None, 10).unwrap_err();
    assert!(matches!(error, BackendError::WrongKind { .. } | BackendError::NotFound { .. }), "{error:?}");
}

/// A list has the files and folders of one level, with the states that `stat` gives.
pub fn lists_have_one_level(fixture: &dyn Fixture) {
    for (name, length) in
        [("b", 2), ("a", 1), ("a.x", 4), ("c/1", 1), ("c/d/2", 2), ("ä", 3), ("B", 5), ("a-b/file", 1)]
    {
        fixture.put(&key(name), &noise(3, length));
    }
    let backend = fixture.backend();
    let root = backend.list_all(&Key::ROOT, 100).unwrap();
    let wanted = [
        ("B", Some(5)),
        ("a", Some(1)),
        ("a-b", None),
        ("a.x", Some(4)),
        ("b", Some(2)),
        ("c", None),
        ("ä", Some(3)),
    ];
    assert_eq!(names(&root), wanted);
    assert_eq!(names(&backend.list(&key("c"), None, 100).unwrap().entries), [("1", Some(1)), ("d", None)]);
    for entry in &root {
        match &entry.content {
            Content::File(found) => assert_eq!(backend.stat(&key(&entry.name)).unwrap(), *found),
            content => assert_eq!(*content, Content::Folder, "{}", entry.name),
        }
    }
    assert_eq!(backend.list_all(&Key::ROOT, 7).unwrap(), root);
    assert!(matches!(backend.list_all(&Key::ROOT, 6), Err(BackendError::TooMany { most: 6, .. })));
}

/// Pages of any size give all names once.
pub fn lists_come_in_pages(fixture: &dyn Fixture) {
    let all: Vec<String> = (0..25).map(|n| format!("f{n:02}")).collect();
    for name in &all {
        fixture.put(&key(&format!("folder/{name}")), b"1");
    }
    fixture.put(&key("folder/f07x/file"), b"1");
    let backend = fixture.backend();
    for limit in [1, 7, 26, 1000, MAX_LIST_PAGE + 5] {
        let mut found: Vec<String> = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let page = backend.list(&key("folder"), from.as_deref(), limit).unwrap();
            assert!(page.entries.len() <= limit, "{}", page.entries.len());
            assert!(!page.entries.is_empty() || page.next.is_none());
            found.extend(page.entries.into_iter().map(|entry| entry.name));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let mut wanted = all.clone();
        wanted.insert(8, "f07x".into());
        found.sort();
        assert_eq!(found, wanted, "{limit}");
    }
}

/// All files below a folder are listed, however deep they lie, and folders are not.
pub fn files_below_a_folder_are_listed(fixture: &dyn Fixture) {
    for (name, length) in [("z", 1), ("a/b/c/d/1", 2), ("a/b-c", 3), ("a/b/2", 4), ("ab/3", 5)] {
        fixture.put(&key(name), &noise(8, length));
    }
    let backend = fixture.backend();
    let below = |folder: &str| {
        let files = backend.files_below(&key(folder), 100).unwrap();
        let each = files.into_iter().map(|(file, content)| match content {
            Content::File(found) => {
                assert_eq!(backend.stat(&file).unwrap(), found);
                (file.to_string(), found.length)
            }
            content => panic!("{file}: {content:?}"),
        });
        each.collect::<Vec<_>>()
    };
    let owned = |files: &[(&str, u64)]| {
        files.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect::<Vec<_>>()
    };
    assert_eq!(below("a"), owned(&[("a/b-c", 3), ("a/b/2", 4), ("a/b/c/d/1", 2)]));
    assert_eq!(below("").len(), 5);
    assert!(matches!(backend.files_below(&Key::ROOT, 4), Err(BackendError::TooMany { most: 4, .. })));
    assert!(matches!(backend.files_below(&key("b"), 4), Err(BackendError::NotFound { .. })));
}

/// Pages of any size give each file below a folder once. A folder that a page names is listed by itself.
pub fn lists_below_a_folder_come_in_pages(fixture: &dyn Fixture) {
    let all = ["b", "d/0", "d/1-x/0", "d/1.x", "d/1/0", "d/1/1/2", "d/1/empty", "d/2/0", "d/a/b/c/d", "e/0"];
    for name in all {
        fixture.put(&key(name), &noise(10, if name.ends_with("empty") { 0 } else { 3 }));
    }
    let backend = fixture.backend();
    for limit in 1..=all.len() + 1 {
        let (mut found, mut folders) = (Vec::new(), vec![key("d")]);
        while let Some(folder) = folders.pop() {
            let mut from: Option<String> = None;
            loop {
                let page = backend.list_below(&folder, from.as_deref(), limit).unwrap();
                assert!(page.entries.len() <= limit);
                for entry in page.entries {
                    let key = folder.join(&entry.name).unwrap();
                    match entry.content {
                        Content::Folder => folders.push(key),
                        Content::File(state) => {
                            assert_eq!(backend.stat(&key).unwrap(), state);
                            found.push(key.to_string());
                        }
                        content => panic!("{key}: {content:?}"),
                    }
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        found.sort_unstable();
        assert_eq!(found, all[1..all.len() - 1], "pages of {limit}");
    }
    assert!(matches!(backend.list_below(&key("f"), None, 5), Err(BackendError::NotFound { .. })));
    let file = backend.list_below(&key("b"), None, 5);
    assert!(matches!(file, Err(BackendError::WrongKind { .. } | BackendError::NotFound { .. })), "{file:?}");
}

/// Ranges that were announced are read as others are, and others too.
pub fn expected_ranges_are_read(fixture: &dyn Fixture) {
    let bytes = noise(9, 300_000);
    fixture.put(&key("file"), &bytes);
    let object = fixture.backend().open(&key("file")).unwrap();
    object.expect(&[1000..50_000, 50_000..50_100, 120_000..290_000]);
    object.expect(&[280_000..400_000]);
    for (start, end) in [(0, 2000), (2000, 49_999), (49_999, 130_000), (130_000, 300_000), (5, 300_000)] {
        let mut out = vec![0; end - start];
        object.read_at(start as u64, &mut out).unwrap();
        assert!(out == bytes[start..end], "{start}..{end}");
    }
    object.unchanged().unwrap();
}

/// A file that is written again is opened at its new version only.
pub fn a_new_content_has_a_new_version(fixture: &dyn Fixture) {
    let backend = fixture.backend();
    let mut seen = Vec::new();
    for seed in 0..4 {
        fixture.put(&key("file"), &noise(seed, 500));
        let found = backend.stat(&key("file")).unwrap();
        assert!(!seen.contains(&found), "{found:?}");
        assert_eq!(*backend.open(&key("file")).unwrap().found(), found);
        backend.open_at(&key("file"), &found).unwrap();
        for old in &seen {
            let read = |object: std::sync::Arc<dyn crate::Object>| object.read_at(0, &mut [0]);
            let error = backend.open_at(&key("file"), old).and_then(read).unwrap_err();
            assert!(matches!(error, BackendError::Changed { .. }), "{error:?}");
        }
        seen.push(found);
    }
}

/// Bytes that were read are of one version, or there is an error.
pub fn a_file_that_is_replaced_is_never_mixed(fixture: &dyn Fixture) {
    let (old, new) = (noise(4, 10_000), noise(5, 10_000));
    fixture.put(&key("file"), &old);
    let object = fixture.backend().open(&key("file")).unwrap();
    let mut first = vec![0; 5000];
    object.read(&[0..5000], &mut first).unwrap();
    fixture.put(&key("file"), &new);
    let mut second = vec![0; 5000];
    let read = object.read(&[5000..10_000], &mut second).and_then(|()| object.unchanged());
    match read {
        Ok(()) => assert!([first, second].concat() == old, "bytes of two versions"),
        Err(error) => {
            assert!(matches!(error, BackendError::Changed { .. }), "{error:?}");
            assert!(error.to_string().contains("file"), "{error}");
        }
    }
}

/// A removed file gives its bytes or an error.
pub fn a_file_that_is_removed_is_never_zeros(fixture: &dyn Fixture) {
    let bytes = noise(6, 10_000);
    fixture.put(&key("file"), &bytes);
    let object = fixture.backend().open(&key("file")).unwrap();
    fixture.remove(&key("file"));
    let mut out = vec![0; 10_000];
    match object.read(&[0..10_000], &mut out).and_then(|()| object.unchanged()) {
        Ok(()) => assert!(out == bytes),
        Err(error) => assert!(
            matches!(error, BackendError::NotFound { .. } | BackendError::Changed { .. }),
            "{error:?}"
        ),
    }
    assert!(matches!(fixture.backend().stat(&key("file")), Err(BackendError::NotFound { .. })));
}

/// Several threads read one object.
pub fn objects_are_read_by_many_threads(fixture: &dyn Fixture) {
    let bytes = noise(7, 200_000);
    fixture.put(&key("file"), &bytes);
    let object = fixture.backend().open(&key("file")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (object, bytes) = (&object, &bytes);
            scope.spawn(move || {
                for n in 0..50 {
                    let start = (thread * 7919 + n * 3001) % 190_000;
                    let mut out = [0; 1000];
                    object.read(&[start as u64..start as u64 + 1000], &mut out).unwrap();
                    assert!(out == bytes[start..start + 1000]);
                }
            });
        }
    });
}
