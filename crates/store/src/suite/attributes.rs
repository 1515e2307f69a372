//! Attributes and the atomic operations on them.

use super::{Subject, id, with_bytes};
use crate::{
    CasOutcome, CreateOptions, MAX_ATTRIBUTE_BYTES, MAX_ATTRIBUTE_NAME_BYTES, MAX_ATTRIBUTES, StoreError,
    WriteOptions,
};

/// Values are bytes, names are listed in order, and a flush changes nothing visible.
pub fn set_get_list_remove(subject: &Subject) {
    let store = &*subject.store;
    let (a, b) = (with_bytes(store, "a", b""), with_bytes(store, "b", b""));
    for flush in [false, true] {
        store.set_attribute(&a, "units", b"K").unwrap();
        store.set_attribute(&a, "empty", b"").unwrap();
        store.set_attribute(&a, "zero \u{3b8}", b"\0\xff").unwrap();
        store.set_attribute(&a, "units", b"degC").unwrap();
        if flush {
            store.flush(&a).unwrap();
        }
        assert_eq!(store.get_attribute(&a, "units").unwrap().as_deref(), Some(&b"degC"[..]));
        assert_eq!(store.get_attribute(&a, "empty").unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(store.get_attribute(&a, "zero \u{3b8}").unwrap().as_deref(), Some(&b"\0\xff"[..]));
        assert_eq!(store.get_attribute(&a, "none").unwrap(), None);
        assert_eq!(store.list_attributes(&a).unwrap(), ["empty", "units", "zero \u{3b8}"]);
        assert_eq!(store.list_attributes(&b).unwrap(), Vec::<String>::new());
        assert!(store.remove_attribute(&a, "units").unwrap());
        assert!(!store.remove_attribute(&a, "units").unwrap());
        assert_eq!(store.get_attribute(&a, "units").unwrap(), None);
        assert_eq!(store.list_attributes(&a).unwrap(), ["empty", "zero \u{3b8}"]);
    }
}

/// Create and write also change attributes. A refused write changes none.
pub fn attributes_go_with_operations(subject: &Subject) {
    let (store, a) = (&*subject.store, id("a"));
    let attributes = vec![("k".into(), b"1".to_vec()), ("l".into(), b"2".to_vec())];
    store.create(&a, &CreateOptions { attributes, open: None }).unwrap();
    assert_eq!(store.list_attributes(&a).unwrap(), ["k", "l"]);
    let changes = WriteOptions { attributes: &[("k", None), ("m", Some(b"3"))], if_version: None };
    store.write_at(&a, 0, b"x", changes).unwrap();
    assert_eq!(store.list_attributes(&a).unwrap(), ["l", "m"]);
    store.write_at(&a, 0, b"", WriteOptions { attributes: &[("n", Some(b"4"))], if_version: None }).unwrap();
    assert_eq!(store.get_attribute(&a, "n").unwrap().as_deref(), Some(&b"4"[..]));
    let bad = WriteOptions { attributes: &[("o", Some(b"5")), ("", Some(b"6"))], if_version: None };
    let before = store.stat(&a).unwrap();
    assert!(matches!(store.write_at(&a, 0, b"yy", bad), Err(StoreError::InvalidAttribute { .. })));
    assert_eq!(store.stat(&a).unwrap(), before);
    assert_eq!(store.list_attributes(&a).unwrap(), ["l", "m", "n"]);
    let bad = CreateOptions { attributes: vec![("".into(), vec![])], open: None };
    assert!(matches!(store.create(&id("b"), &bad), Err(StoreError::InvalidAttribute { .. })));
    assert!(matches!(store.stat(&id("b")), Err(StoreError::NotFound { .. })));
}

/// The lengths of names and values are bounded, and so is the number of attributes.
pub fn attribute_bounds(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    let longest = "n".repeat(MAX_ATTRIBUTE_NAME_BYTES);
    store.set_attribute(&a, &longest, &vec![1; MAX_ATTRIBUTE_BYTES]).unwrap();
    for bad in ["", "a\nb", "\0", &"n".repeat(MAX_ATTRIBUTE_NAME_BYTES + 1)] {
        let refused = |error| matches!(error, StoreError::InvalidAttribute { .. });
        assert!(refused(store.set_attribute(&a, bad, b"").unwrap_err()));
        assert!(refused(store.get_attribute(&a, bad).unwrap_err()));
        assert!(refused(store.remove_attribute(&a, bad).unwrap_err()));
        assert!(refused(store.fetch_add(&a, bad, 1).unwrap_err()));
        assert!(refused(store.compare_and_swap(&a, bad, None, None).unwrap_err()));
    }
    let large = vec![1; MAX_ATTRIBUTE_BYTES + 1];
    assert!(matches!(store.set_attribute(&a, "k", &large), Err(StoreError::TooLarge { .. })));
    let swapped = store.compare_and_swap(&a, "k", None, Some(&large));
    assert!(matches!(swapped, Err(StoreError::TooLarge { .. })));
    for i in 1..MAX_ATTRIBUTES {
        store.set_attribute(&a, &format!("k{i}"), b"v").unwrap();
    }
    assert!(matches!(store.set_attribute(&a, "more", b"v"), Err(StoreError::TooLarge { .. })));
    assert!(matches!(store.fetch_add(&a, "more", 1), Err(StoreError::TooLarge { .. })));
    store.set_attribute(&a, "k1", b"replaced").unwrap();
    let swap = WriteOptions { attributes: &[("k1", None), ("more", Some(b"v"))], if_version: None };
    store.write_at(&a, 0, b"", swap).unwrap();
    assert_eq!(store.list_attributes(&a).unwrap().len(), MAX_ATTRIBUTES);
}

/// Compare-and-swap creates, replaces and removes, and returns the value that it found.
pub fn cas_swaps_only_on_match(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    let cas =
        |expected: Option<&[u8]>, new: Option<&[u8]>| store.compare_and_swap(&a, "k", expected, new).unwrap();
    let found = |value: &[u8]| CasOutcome::Mismatch { actual: Some(value.to_vec()) };
    assert_eq!(cas(Some(b"x"), Some(b"y")), CasOutcome::Mismatch { actual: None });
    assert_eq!(cas(None, Some(b"1")), CasOutcome::Swapped);
    assert_eq!(cas(None, Some(b"2")), found(b"1"));
    assert_eq!(cas(Some(b"1"), Some(b"2")), CasOutcome::Swapped);
    store.set_attribute(&a, "k", b"3").unwrap();
    assert_eq!(cas(Some(b"2"), None), found(b"3"), "it sees unflushed values");
    assert_eq!(cas(Some(b"3"), None), CasOutcome::Swapped);
    assert_eq!(cas(None, None), CasOutcome::Swapped);
    assert_eq!(store.list_attributes(&a).unwrap(), Vec::<String>::new());
}

/// Fetch-and-add starts at 0, returns the value before and wraps around.
pub fn fetch_add_counts(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    assert_eq!(store.fetch_add(&a, "n", 5).unwrap(), 0);
    assert_eq!(store.fetch_add(&a, "n", -7).unwrap(), 5);
    assert_eq!(store.get_attribute(&a, "n").unwrap().unwrap(), (-2i64).to_le_bytes());
    store.set_attribute(&a, "n", &i64::MAX.to_le_bytes()).unwrap();
    assert_eq!(store.fetch_add(&a, "n", 1).unwrap(), i64::MAX);
    assert_eq!(store.fetch_add(&a, "n", 0).unwrap(), i64::MIN);
    store.set_attribute(&a, "text", b"seven").unwrap();
    assert!(matches!(store.fetch_add(&a, "text", 1), Err(StoreError::Invalid { .. })));
    assert_eq!(store.get_attribute(&a, "text").unwrap().as_deref(), Some(&b"seven"[..]));
}

/// Counts and swaps of several threads are never lost.
pub fn counters_are_atomic(subject: &Subject) {
    const THREADS: i64 = 4;
    const EACH: i64 = 25;
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    let mut seen: Vec<i64> = std::thread::scope(|scope| {
        let count = || (0..EACH).map(|_| store.fetch_add(&a, "n", 1).unwrap()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    seen.sort();
    assert_eq!(seen, (0..THREADS * EACH).collect::<Vec<_>>());
    let winners: usize = std::thread::scope(|scope| {
        let race = || {
            usize::from(
                store.compare_and_swap(&a, "owner", None, Some(b"me")).unwrap() == CasOutcome::Swapped,
            )
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(winners, 1);
}
