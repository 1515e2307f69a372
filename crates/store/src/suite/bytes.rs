//! Reading and writing.

use super::{Subject, all_bytes, id, with_bytes};
use crate::{
    CreateOptions, Extent, MAX_EXTENTS, MAX_INTERVALS, MAX_OBJECT_BYTES, MAX_WRITTEN_PAGE, ReadOptions,
    Result, StoreError, Version, WriteOptions,
};

/// A read fills its buffer, unless the object ends before.
pub fn reads_are_short_only_at_the_end(subject: &Subject) {
    let store = &*subject.store;
    let bytes: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    let a = with_bytes(store, "a", &bytes);
    for (offset, len) in
        [(0, 10), (0, 700_000), (0, 800_000), (699_990, 20), (700_000, 5), (1 << 40, 5), (5, 0)]
    {
        let mut buffer = vec![0xee; len];
        let n = store.read_at(&a, offset as u64, &mut buffer, ReadOptions::default()).unwrap();
        let expected = bytes.get(offset..).unwrap_or(&[]);
        assert_eq!(n, expected.len().min(len));
        assert_eq!(buffer[..n], expected[..n]);
        assert!(buffer[n..].iter().all(|byte| *byte == 0xee), "the rest of the buffer is unchanged");
    }
    let n = store.read_at(&a, u64::MAX, &mut [0; 4], ReadOptions::default()).unwrap();
    assert_eq!(n, 0);
    store.advise_sequential(&a).unwrap();
}

/// Reads and writes refuse another version, and then change nothing.
pub fn if_version_guards_reads_and_writes(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"old");
    let old = store.stat(&a).unwrap().version;
    let new =
        store.write_at(&a, 0, b"new", WriteOptions { if_version: Some(old), ..Default::default() }).unwrap();
    let mut buffer = [0; 3];
    assert_eq!(store.read_at(&a, 0, &mut buffer, ReadOptions::at(new)).unwrap(), 3);
    let is_stale = |error| matches!(error, StoreError::Stale { id, expected, actual } if id == a && expected == old && actual == new);
    assert!(is_stale(store.read_at(&a, 0, &mut buffer, ReadOptions::at(old)).unwrap_err()));
    let one = [Extent { offset: 0, len: 3 }];
    assert!(is_stale(store.read_extents(&a, &one, &mut buffer, ReadOptions::at(old)).unwrap_err()));
    let guarded = WriteOptions { if_version: Some(old), attributes: &[("k", Some(b"v"))] };
    assert!(is_stale(store.write_at(&a, 0, b"bad", guarded).unwrap_err()));
    assert!(is_stale(store.write_extents(&a, &one, b"bad", guarded).unwrap_err()));
    assert_eq!((all_bytes(store, &a), store.stat(&a).unwrap().version), (b"new".to_vec(), new));
    assert_eq!(store.get_attribute(&a, "k").unwrap(), None);
    let future = ReadOptions::at(Version(new.0 + 1));
    assert!(matches!(store.read_at(&a, 0, &mut buffer, future), Err(StoreError::Stale { .. })));
}

/// Each append begins at the end of the object.
pub fn append_returns_its_offset(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    for (piece, place) in [(&b"abc"[..], 0), (b"", 3), (b"de", 3), (b"f", 5)] {
        assert_eq!(store.append(&a, piece).unwrap().0, place);
    }
    assert_eq!(all_bytes(store, &a), b"abcdef");
    store.truncate(&a, 10).unwrap();
    assert_eq!(store.append(&a, b"g").unwrap().0, 10);
    assert_eq!(all_bytes(store, &a), b"abcdef\0\0\0\0g");
}

/// Punched bytes are zeros. The length and the other bytes stay.
pub fn punch_leaves_zeros(subject: &Subject) {
    let store = &*subject.store;
    let mut expected = vec![7u8; 300_000];
    let a = with_bytes(store, "a", &expected);
    for range in [10..20, 4096..8192, 70_001..250_003, 299_999..300_000, 5..5] {
        store.punch(&a, range.start as u64..range.end as u64).unwrap();
        expected[range].fill(0);
        assert!(all_bytes(store, &a) == expected);
    }
    store.punch(&a, 200_000..u64::MAX).unwrap();
    expected[200_000..].fill(0);
    assert!(all_bytes(store, &a) == expected);
}

/// Bytes that were cut off do not return when the object grows again.
pub fn truncate_cuts_and_grows(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"abcdef");
    store.flush(&a).unwrap();
    store.truncate(&a, 2).unwrap();
    assert_eq!(all_bytes(store, &a), b"ab");
    store.truncate(&a, 5).unwrap();
    assert_eq!(all_bytes(store, &a), b"ab\0\0\0");
    store.write_at(&a, 7, b"x", WriteOptions::default()).unwrap();
    assert_eq!(all_bytes(store, &a), b"ab\0\0\0\0\0x");
    store.truncate(&a, 0).unwrap();
    store.flush(&a).unwrap();
    assert_eq!(store.stat(&a).unwrap().length, 0);
}

/// Gather is the inverse of scatter. Both check their arguments first.
pub fn extents_scatter_and_gather(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"..........");
    let e = |offset, len| Extent { offset, len };
    let extents = [e(8, 3), e(0, 2), e(5, 0), e(4, 1)];
    store.write_extents(&a, &extents, b"ABCdeF", WriteOptions::default()).unwrap();
    assert_eq!(all_bytes(store, &a), b"de..F...ABC");
    let mut buffer = [0; 6];
    store.read_extents(&a, &extents, &mut buffer, ReadOptions::default()).unwrap();
    assert_eq!(&buffer, b"ABCdeF");
    store.write_extents(&a, &[e(0, 2), e(1, 2)], b"1234", WriteOptions::default()).unwrap();
    assert_eq!(&all_bytes(store, &a)[..4], b"134.", "the later extent wins");
    store.read_extents(&a, &[], &mut [], ReadOptions::default()).unwrap();

    let before = (all_bytes(store, &a), store.stat(&a).unwrap());
    let plain = WriteOptions::default();
    let unfit = store.write_extents(&a, &[e(0, 2)], b"abc", plain);
    assert!(matches!(unfit, Err(StoreError::Invalid { .. })));
    let unfit = store.read_extents(&a, &[e(0, 2), e(4, 2)], &mut [0; 3], ReadOptions::default());
    assert!(matches!(unfit, Err(StoreError::Invalid { .. })));
    let many = vec![e(0, 0); MAX_EXTENTS + 1];
    assert!(matches!(store.write_extents(&a, &many, b"", plain), Err(StoreError::TooLarge { .. })));
    let far = store.write_extents(&a, &[e(0, 1), e(u64::MAX, 1)], b"ab", plain);
    assert!(matches!(far, Err(StoreError::TooLarge { .. })));
    let behind = store.read_extents(&a, &[e(0, 1), e(10, 2)], &mut [0; 3], ReadOptions::default());
    assert!(matches!(behind, Err(StoreError::OutOfRange { end: 12, length: 11, .. })));
    assert_eq!((all_bytes(store, &a), store.stat(&a).unwrap()), before);
}

/// Written intervals merge, split and are listed in pages.
pub fn written_intervals(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    let plain = WriteOptions::default();
    let all = || store.written(&a, 0..u64::MAX).unwrap();
    store.write_at(&a, 10, &[1; 10], plain).unwrap();
    store.write_at(&a, 30, &[1; 10], plain).unwrap();
    assert_eq!(all(), [10..20, 30..40]);
    store.write_at(&a, 20, &[1; 5], plain).unwrap();
    assert_eq!(all(), [10..25, 30..40]);
    store.punch(&a, 12..15).unwrap();
    assert_eq!(all(), [10..12, 15..25, 30..40]);
    assert_eq!(store.written(&a, 11..32).unwrap(), [11..12, 15..25, 30..32]);
    assert_eq!(store.written(&a, 25..30).unwrap(), Vec::<std::ops::Range<u64>>::new());
    store.truncate(&a, 35).unwrap();
    store.truncate(&a, 50).unwrap();
    store.flush(&a).unwrap();
    assert_eq!(all(), [10..12, 15..25, 30..35], "new length is not written bytes");

    let b = with_bytes(store, "b", b"");
    let count = 2 * MAX_WRITTEN_PAGE as u64 + 3;
    let extents: Vec<_> = (0..count).map(|i| Extent { offset: 2 * i, len: 1 }).collect();
    store.write_extents(&b, &extents, &vec![1; extents.len()], plain).unwrap();
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let page = store.written(&b, from..u64::MAX).unwrap();
        assert!(page.len() <= MAX_WRITTEN_PAGE);
        let Some(last) = page.last() else { break };
        from = last.end;
        found.extend(page);
    }
    assert_eq!(found, (0..count).map(|i| 2 * i..2 * i + 1).collect::<Vec<_>>());
}

/// No change leaves more intervals than there may be, and a refused change changes nothing.
pub fn intervals_are_bounded(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"");
    let plain = WriteOptions::default();
    let all: Vec<_> = (0..MAX_INTERVALS as u64).map(|i| Extent { offset: 2 * i, len: 1 }).collect();
    for extents in all.chunks(MAX_EXTENTS) {
        store.write_extents(&a, extents, &vec![1; extents.len()], plain).unwrap();
    }
    let length = 2 * MAX_INTERVALS as u64;
    store.truncate(&a, length).unwrap();
    let before = store.stat(&a).unwrap();
    let refused = |result: Result<()>| {
        assert!(matches!(result, Err(StoreError::TooLarge { what: "the number of written intervals", .. })));
        assert_eq!(store.stat(&a).unwrap(), before);
    };
    refused(store.append(&a, b"x").map(drop));
    refused(store.write_at(&a, length + 5, b"x", plain).map(drop));
    // Bytes between two intervals join them, and then there is room for one more.
    store.write_at(&a, 1, b"x", plain).unwrap();
    store.append(&a, b"x").unwrap();
    assert_eq!(store.written(&a, 0..10).unwrap()[0], 0..3);
}

/// Offsets that are too large for a file are refused, and nothing changes.
pub fn offsets_are_bounded(subject: &Subject) {
    let store = &*subject.store;
    let a = with_bytes(store, "a", b"abc");
    let before = store.stat(&a).unwrap();
    let plain = WriteOptions::default();
    for offset in [MAX_OBJECT_BYTES, u64::MAX, u64::MAX - 1] {
        let written = store.write_at(&a, offset, b"xy", plain);
        assert!(matches!(written, Err(StoreError::TooLarge { .. })));
        let mut buffer = [0; 2];
        let read = store.read_extents(&a, &[Extent { offset, len: 2 }], &mut buffer, ReadOptions::default());
        assert!(matches!(read, Err(StoreError::TooLarge { .. })));
    }
    assert!(matches!(store.truncate(&a, MAX_OBJECT_BYTES + 1), Err(StoreError::TooLarge { .. })));
    assert_eq!(store.stat(&a).unwrap(), before);
}

/// A read with `if_version` returns the bytes of that version or `Stale`, while a writer is busy. Each write fills the
/// object with one value and notes its version.
pub fn conditional_reads_see_one_state(subject: &Subject) {
    const LEN: usize = 200_000;
    const WRITES: u8 = 100;
    let (store, a) = (&*subject.store, id("a"));
    store.create(&a, &CreateOptions::default()).unwrap();
    let mut named = std::collections::HashMap::new();
    let version = store.write_at(&a, 0, &[0; LEN], WriteOptions::default()).unwrap();
    named.insert(version, 0u8);
    let done = std::sync::atomic::AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = Vec::new();
            let mut buffer = vec![0; LEN];
            while !done.load(std::sync::atomic::Ordering::Acquire) || reads.is_empty() {
                let version = store.stat(&a).unwrap().version;
                match store.read_at(&a, 0, &mut buffer, ReadOptions::at(version)) {
                    Ok(n) => {
                        assert_eq!(n, LEN);
                        assert!(buffer.iter().all(|byte| *byte == buffer[0]), "two states in one read");
                        reads.push((version, buffer[0]));
                    }
                    Err(error) => assert!(matches!(error, StoreError::Stale { .. })),
                }
            }
            reads
        });
        for value in 1..=WRITES {
            named.insert(store.write_at(&a, 0, &[value; LEN], WriteOptions::default()).unwrap(), value);
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        reader.join().unwrap()
    });
    for (version, value) in reads {
        assert_eq!(named.get(&version), Some(&value), "{version} names other bytes");
    }
}
