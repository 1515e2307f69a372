//! Creation, removal, versions, arrival and listing.

use std::time::Duration;

use super::{Subject, all_bytes, id, with_bytes};
use crate::{
    ArrivalState, Clock, CreateOptions, Extent, MAX_LEASE, MAX_LIST_PAGE, ObjectId, ReadOptions, Result,
    StoreError, Version, WriteOptions,
};

/// An object exists from its creation to its removal, and only once.
pub fn create_stat_remove(subject: &Subject) {
    let (store, a) = (&*subject.store, id("a"));
    assert!(matches!(store.stat(&a), Err(StoreError::NotFound { .. })));
    let stat = store.create(&a, &CreateOptions::default()).unwrap();
    assert_eq!((stat.length, stat.state, stat.modified), (0, ArrivalState::Closed, subject.clock.now()));
    assert_eq!(store.stat(&a).unwrap(), stat);
    assert!(matches!(store.create(&a, &CreateOptions::default()), Err(StoreError::Exists { .. })));
    store.write_at(&a, 0, b"abc", WriteOptions::default()).unwrap();
    store.set_attribute(&a, "k", b"v").unwrap();
    store.flush(&a).unwrap();
    store.remove(&a).unwrap();
    assert!(matches!(store.stat(&a), Err(StoreError::NotFound { id }) if id == a));
    assert!(matches!(store.remove(&a), Err(StoreError::NotFound { .. })));
    let again = store.create(&a, &CreateOptions::default()).unwrap();
    assert_eq!(again.length, 0);
    assert_eq!(all_bytes(store, &a), b"");
    assert_eq!(
        store.list_attributes(&a).unwrap(),
        Vec::<String>::new(),
        "attributes are removed with the object"
    );
    assert_eq!(store.written(&a, 0..u64::MAX).unwrap(), Vec::<std::ops::Range<u64>>::new());
}

/// Each change of bytes, length or state gives a larger version, and nothing else does. A later object of the same name
/// has larger versions.
pub fn versions_grow_and_never_repeat(subject: &Subject) {
    let (store, a) = (&*subject.store, id("a"));
    let open = CreateOptions { open: Some(Duration::from_secs(60)), ..Default::default() };
    let mut last = store.create(&a, &open).unwrap().version;
    let mut step = |what: &str, changes: bool, returned: Option<Version>| {
        let now = store.stat(&a).unwrap().version;
        assert_eq!(now > last, changes, "{what}");
        assert!(now >= last && returned.is_none_or(|version| version == now), "{what}");
        last = now;
    };
    let plain = WriteOptions::default();
    step("write", true, Some(store.write_at(&a, 0, b"abcdef", plain).unwrap()));
    step("same bytes again", true, Some(store.write_at(&a, 0, b"abcdef", plain).unwrap()));
    step("nothing written", false, Some(store.write_at(&a, 99, b"", plain).unwrap()));
    let one = [Extent { offset: 2, len: 1 }];
    step("scatter", true, Some(store.write_extents(&a, &one, b"x", plain).unwrap()));
    step("append", true, Some(store.append(&a, b"g").unwrap().1));
    step("append nothing", false, Some(store.append(&a, b"").unwrap().1));
    step("punch", true, Some(store.punch(&a, 0..2).unwrap()));
    step("punch after the end", false, Some(store.punch(&a, 50..60).unwrap()));
    step("truncate", true, Some(store.truncate(&a, 3).unwrap()));
    step("truncate to the same", false, Some(store.truncate(&a, 3).unwrap()));
    store.set_attribute(&a, "k", b"v").unwrap();
    store.fetch_add(&a, "n", 1).unwrap();
    store.compare_and_swap(&a, "k", Some(b"v"), None).unwrap();
    step("attributes", false, None);
    store.flush(&a).unwrap();
    store.renew_lease(&a, Duration::from_secs(90)).unwrap();
    subject.clock.advance(Duration::from_secs(100));
    step("flush, renewal and time", false, None);
    step("close", true, Some(store.close(&a).unwrap()));
    step("close again", false, Some(store.close(&a).unwrap()));
    store.remove(&a).unwrap();
    store.create(&a, &CreateOptions::default()).unwrap();
    step("remove and create", true, None);
}

/// An object is open until it is closed. Its lease expires, and may be renewed after that. No state prevents writes.
pub fn arrival_states(subject: &Subject) {
    let (store, clock, a) = (&*subject.store, &subject.clock, id("a"));
    let (minute, start) = (Duration::from_secs(60), clock.now());
    let open = |lease| CreateOptions { open: Some(lease), ..Default::default() };
    let too_long = MAX_LEASE + Duration::from_nanos(1);
    assert!(matches!(store.create(&a, &open(too_long)), Err(StoreError::TooLarge { .. })));
    let state = |name: &ObjectId| store.stat(name).unwrap().state;
    let created = store.create(&a, &open(minute)).unwrap();
    assert_eq!(created.state, ArrivalState::Open { until: start + minute });
    clock.advance(minute - Duration::from_nanos(1));
    assert!(matches!(state(&a), ArrivalState::Open { .. }));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(state(&a), ArrivalState::LeaseExpired { since: start + minute });
    store.append(&a, b"late").unwrap();
    store.renew_lease(&a, minute).unwrap();
    assert_eq!(state(&a), ArrivalState::Open { until: start + minute + minute });
    assert!(matches!(store.renew_lease(&a, too_long), Err(StoreError::TooLarge { .. })));
    store.close(&a).unwrap();
    assert_eq!(state(&a), ArrivalState::Closed);
    assert!(matches!(store.renew_lease(&a, minute), Err(StoreError::NotOpen { .. })));
    let closed = store.stat(&a).unwrap();
    clock.advance(minute);
    let version = store.append(&a, b"r").unwrap().1;
    let written = store.stat(&a).unwrap();
    assert!(version > closed.version);
    assert_eq!((written.state, written.modified), (ArrivalState::Closed, clock.now()));
}

/// Names are listed in order, by prefix, in pages, flushed or not.
pub fn list_pages(subject: &Subject) {
    let store = &*subject.store;
    let mut names: Vec<ObjectId> =
        ["b", "a", "a.1", "a-2", "aa", "ab", "A", "_", "b0", "z9"].iter().map(|name| id(name)).collect();
    for (i, name) in names.iter().enumerate() {
        store.create(name, &CreateOptions::default()).unwrap();
        if i % 2 == 0 {
            store.flush(name).unwrap();
        }
    }
    store.create(&id("gone"), &CreateOptions::default()).unwrap();
    store.flush(&id("gone")).unwrap();
    store.remove(&id("gone")).unwrap();
    names.sort();
    for prefix in ["", "a", "aa", "a.", "b", "c", "zz", "not/a/name"] {
        let expected: Vec<_> = names.iter().filter(|n| n.as_str().starts_with(prefix)).cloned().collect();
        for limit in [1, 2, 3, 100] {
            let mut found = Vec::new();
            loop {
                let page = store.list(prefix, found.last(), limit).unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                found.extend(page);
            }
            assert_eq!(found, expected, "prefix {prefix:?} by {limit}");
        }
        assert_eq!(store.list(prefix, Some(&id("zz")), 10).unwrap(), []);
    }
    assert_eq!(store.list("a", Some(&id("A")), 1).unwrap(), [id("a")], "`after` need not have the prefix");
    assert_eq!(store.list("", None, 0).unwrap(), []);
    for i in 0..MAX_LIST_PAGE {
        store.create(&id(&format!("many{i:05}")), &CreateOptions::default()).unwrap();
    }
    assert_eq!(store.list("", None, usize::MAX).unwrap().len(), MAX_LIST_PAGE);
}

/// Names that differ only in case or by a dot are different objects.
pub fn names_do_not_collide(subject: &Subject) {
    let names = ["x", "X", "x.", "x-", "x_", "xx", "lock", "meta.sqlite", "objects"];
    let ids: Vec<_> = names.iter().map(|name| with_bytes(&*subject.store, name, name.as_bytes())).collect();
    let longest = "L".repeat(crate::MAX_ID_BYTES);
    with_bytes(&*subject.store, &longest, b"long");
    for (id, name) in ids.iter().zip(names) {
        assert_eq!(all_bytes(&*subject.store, id), name.as_bytes());
    }
}

/// Every operation returns `NotFound` if there is no such object.
pub fn operations_need_an_object(subject: &Subject) {
    let (store, a) = (&*subject.store, id("nobody"));
    let missing = |result: Result<()>| assert!(matches!(result, Err(StoreError::NotFound { id }) if id == a));
    let (plain, one) = (WriteOptions::default(), [Extent { offset: 0, len: 1 }]);
    missing(store.remove(&a));
    missing(store.read_at(&a, 0, &mut [0], ReadOptions::default()).map(drop));
    missing(store.read_extents(&a, &one, &mut [0], ReadOptions::default()));
    missing(store.write_at(&a, 0, b"x", plain).map(drop));
    missing(store.write_extents(&a, &one, b"x", plain).map(drop));
    missing(store.append(&a, b"x").map(drop));
    missing(store.punch(&a, 0..1).map(drop));
    missing(store.truncate(&a, 1).map(drop));
    missing(store.flush(&a));
    missing(store.stat(&a).map(drop));
    missing(store.get_attribute(&a, "k").map(drop));
    missing(store.set_attribute(&a, "k", b"v"));
    missing(store.remove_attribute(&a, "k").map(drop));
    missing(store.list_attributes(&a).map(drop));
    missing(store.compare_and_swap(&a, "k", None, None).map(drop));
    missing(store.fetch_add(&a, "k", 1).map(drop));
    missing(store.written(&a, 0..1).map(drop));
    missing(store.renew_lease(&a, Duration::from_secs(1)));
    missing(store.close(&a).map(drop));
    missing(store.advise_sequential(&a));
}

/// All appends of many threads arrive, each as a whole, while other objects are created and removed.
pub fn threads_share_a_store(subject: &Subject) {
    const THREADS: u8 = 4;
    const APPENDS: usize = 50;
    let store = &*subject.store;
    let log = with_bytes(store, "log", b"");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                let own = id(&format!("own{thread}"));
                for i in 0..APPENDS {
                    let (offset, version) = store.append(log, &[thread; 7]).unwrap();
                    assert!(store.stat(log).unwrap().version >= version);
                    let mut seen = [0; 7];
                    store.read_at(log, offset, &mut seen, ReadOptions::default()).unwrap();
                    assert_eq!(seen, [thread; 7]);
                    store.create(&own, &CreateOptions::default()).unwrap();
                    if i % 10 == 0 {
                        store.flush(log).unwrap();
                        store.flush(&own).unwrap();
                    }
                    store.remove(&own).unwrap();
                }
            });
        }
    });
    let bytes = all_bytes(store, &log);
    assert_eq!(bytes.len(), usize::from(THREADS) * APPENDS * 7);
    assert!(bytes.chunks(7).all(|piece| piece.iter().all(|byte| *byte == piece[0])));
    for thread in 0..THREADS {
        assert_eq!(bytes.iter().filter(|byte| **byte == thread).count(), APPENDS * 7);
    }
}
