#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::path::PathBuf;

use gristmill_backend::Stamp;

use super::*;

fn found(stamp: &str) -> Found {
    Found { length: 1 << 20, stamp: Stamp::new(stamp).unwrap() }
}

fn object(cache: &Arc<RangeCache>, server: &str, name: &str, stamp: &str) -> CachedObject {
    let place = CachePlace { cache: cache.clone(), server: server.into() };
    CachedObject::new(&place, name, &found(stamp))
}

/// The byte of the object at an offset.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(start: u64, len: u64) -> Vec<u8> {
    (start..start + len).map(byte).collect()
}

/// A cache with ranges of an object, which was closed and opened again, so that all is written.
fn filled(dir: &Path, most: u64, ranges: &[(u64, u64)]) -> Arc<RangeCache> {
    let cache = RangeCache::open(dir, most).unwrap();
    let kept = object(&cache, "", "s3://b/x", "1");
    ranges.iter().for_each(|&(start, len)| kept.keep(start, &bytes(start, len)));
    drop((kept, cache));
    RangeCache::open(dir, most).unwrap()
}

/// The parts of a range that are not there. The others have the right bytes.
fn missing(object: &CachedObject, start: u64, len: u64) -> Vec<Range<u64>> {
    let mut out = vec![0; len as usize];
    let left = object.take(vec![(start, &mut out)]);
    let gaps: Vec<Range<u64>> = left.iter().map(|(at, part)| *at..at + part.len() as u64).collect();
    for (at, found) in (start..).zip(out) {
        assert!(gaps.iter().any(|gap| gap.contains(&at)) || found == byte(at), "{at}");
    }
    gaps
}

#[test]
fn a_range_is_found_for_its_version_only_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let cache = filled(dir.path(), 1 << 20, &[(5, 100), (200, 300_000), (7, 0)]);
    let same = object(&cache, "", "s3://b/x", "1");
    assert!(missing(&same, 5, 100).is_empty() && missing(&same, 50, 1).is_empty());
    assert_eq!(missing(&same, 0, 400), [0..5, 105..200]);
    for (start, len) in [(65_536, 65_536), (66_000, 200_000), (300_199, 1), (200, 65_536), (65_735, 2)] {
        assert!(missing(&same, start, len).is_empty(), "{start}");
    }
    assert_eq!(missing(&same, 300_100, 200), [300_200..300_300]);
    assert_eq!(same.gaps(&[0..10, 50..60, 104..106]), [0..5, 105..106]);
    for other in [
        object(&cache, "", "s3://b/x", "2"),
        object(&cache, "", "s3://b/y", "1"),
        object(&cache, "h", "s3://b/x", "1"),
        object(&cache, "s3://b/x", "", "1"),
    ] {
        assert_eq!(missing(&other, 5, 100), [5..105]);
    }
    let counts = cache.counts();
    assert_eq!((counts.found, counts.missed, counts.ranges), (7, 6, 2));
}

#[test]
fn ranges_that_overlap_are_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let cache = filled(dir.path(), 1 << 20, &[(100, 100), (150, 100), (50, 300), (120, 10)]);
    assert_eq!(cache.counts().ranges, 4);
    assert!(missing(&object(&cache, "", "s3://b/x", "1"), 50, 300).is_empty());
    let mut sizes: Vec<u64> = files(dir.path()).iter().map(|path| path.metadata().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [54, 54, 104, 104]);
}

#[test]
fn the_longest_unused_ranges_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let cache = filled(dir.path(), 3 * BLOCK + 1, &[(0, 10), (10, 10), (20, 10)]);
    let kept = object(&cache, "", "s3://b/x", "1");
    // Files of one tick of the clock have any order, so each is used in turn.
    for start in [10, 20, 0] {
        assert!(missing(&kept, start, 10).is_empty());
    }
    kept.keep(30, &bytes(30, 10));
    while !kept.gaps(&[30..40]).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(kept.gaps(&[0..40]), [10..20]);
    assert_eq!((cache.counts().bytes, cache.counts().ranges), (3 * BLOCK, 3));
    // What is larger than the cache is not kept.
    kept.keep(40, &bytes(40, 3 * BLOCK));
    drop((kept, cache));
    assert_eq!(RangeCache::open(dir.path(), 1 << 20).unwrap().counts().ranges, 3);
    assert_eq!(RangeCache::open(dir.path(), BLOCK).unwrap().counts().ranges, 1);
    assert_eq!(files(dir.path()).len(), 1);
}

/// The files in the directories of ranges.
fn files(dir: &Path) -> Vec<PathBuf> {
    let below = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    below(dir).filter(|path| path.is_dir()).flat_map(|path| below(&path).collect::<Vec<_>>()).collect()
}

#[test]
fn damaged_files_are_not_there() {
    let dir = tempfile::tempdir().unwrap();
    for damage in 0..5 {
        let cache = filled(dir.path(), 1 << 20, &[(9, 100_000)]);
        let [path] = files(dir.path()).try_into().unwrap();
        let mut stored = std::fs::read(&path).unwrap();
        match damage {
            0 => stored[50] ^= 1,
            1 => stored.truncate(60),
            2 => stored.push(0),
            3 => *stored.last_mut().unwrap() ^= 1,
            _ => stored.swap(65_535, 65_536),
        }
        std::fs::write(&path, stored).unwrap();
        assert_eq!(missing(&object(&cache, "", "s3://b/x", "1"), 9, 100_000), [9..100_009], "{damage}");
        assert!(!path.exists() && cache.counts().ranges == 0);
    }
}

#[test]
fn a_file_under_another_name_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 1 << 20, &[(1, 10)]));
    let [path] = files(dir.path()).try_into().unwrap();
    let other = path.to_str().unwrap().replace("-1-a", "-2-a");
    std::fs::rename(&path, other).unwrap();
    let cache = RangeCache::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(cache.counts().ranges, 1);
    assert_eq!(missing(&object(&cache, "", "s3://b/x", "1"), 2, 10), [2..12]);
}

#[test]
fn a_directory_has_one_cache_and_keeps_other_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("ab")).unwrap();
    let of_others = ["notes", "ab/notes", "ab/abcd-1-2", "ab/ab-1-1"];
    for name in of_others {
        std::fs::write(dir.path().join(name), "mine").unwrap();
    }
    let cache = filled(dir.path(), 0, &[(1, 10)]);
    assert_eq!(cache.counts().ranges, 0);
    let second = RangeCache::open(dir.path(), 1 << 20).err().unwrap().to_string();
    assert!(second.contains("another process"), "{second}");
    drop(cache);
    assert!(of_others.iter().all(|name| dir.path().join(name).exists()));
}

#[test]
fn a_range_that_cannot_be_written_is_counted_and_the_cache_yields() {
    let dir = tempfile::tempdir().unwrap();
    let cache = filled(dir.path(), 1 << 20, &[(0, 10)]);
    let kept = object(&cache, "", "s3://b/x", "1");
    // A folder stands where the next file is written.
    std::fs::create_dir_all(dir.path().join("new")).unwrap();
    kept.keep(20, &bytes(20, 10));
    while cache.counts().failed == 0 || cache.counts().ranges > 0 {
        std::thread::yield_now();
    }
    assert_eq!(missing(&kept, 20, 10), [20..30]);
}
