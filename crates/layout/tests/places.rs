//! Where bytes lie: every byte on exactly one target, dense objects, exact inverses, cuts only where needed.

mod model;

use gristmill_layout::{Layout, LayoutError, MAX_FILE_BYTES, MAX_TARGETS, Segment, Segments, Striped};
use model::{Byte, deal, layout, part_of, segment_table, striped};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn stripes_are_dealt_in_turn((unit, targets, first) in striped(), len in 0..900u64) {
        let striped = Striped::new(unit, targets, first).unwrap();
        let bytes = deal(unit, targets, first, len);
        for (at, byte) in (0..).zip(&bytes) {
            prop_assert_eq!(striped.target_of(at), byte.target);
            prop_assert_eq!(striped.object_offset(at), byte.object_offset);
            prop_assert_eq!(striped.file_offset(byte.target, byte.object_offset), Ok(at));
        }
        for target in 0..targets + 2 {
            let held = bytes.iter().filter(|byte| byte.target == target).count() as u64;
            prop_assert_eq!(striped.object_len(target, len), held);
        }
    }

    #[test]
    fn one_piece_per_target(len in 0..900u64, targets in 1..20u32) {
        let layout = Layout::from(Striped::contiguous(len, targets).unwrap());
        let extents: Vec<_> = layout.extents(0..len).collect();
        prop_assert!(extents.len() <= targets as usize);
        prop_assert!(extents.iter().zip(0..).all(|(extent, target)| extent.target == target));
        prop_assert!(extents.iter().all(|extent| extent.object_offset == 0));
    }

    #[test]
    fn extents_cover_a_range_once((layout, bytes) in layout(), a in 0..800u64, b in 0..800u64) {
        let file = a.min(b)..a.max(b).min(bytes.len() as u64);
        let mut at = file.start;
        let mut last: Option<Byte> = None;
        for extent in layout.extents(file.clone()) {
            prop_assert_eq!(extent.file.start, at);
            prop_assert!(extent.file.start < extent.file.end);
            for (n, at) in extent.file.clone().enumerate() {
                let byte = &bytes[at as usize];
                prop_assert_eq!(extent.target, byte.target);
                prop_assert_eq!(extent.object, byte.object.as_deref());
                prop_assert_eq!(extent.object_offset + n as u64, byte.object_offset);
                prop_assert_eq!(layout.target_of(at), Some(byte.target));
            }
            // A cut is there for a reason.
            let opening = bytes[extent.file.start as usize].clone();
            let continues = last.is_some_and(|last| {
                Byte { object_offset: last.object_offset + 1, ..last } == opening
            });
            prop_assert!(!continues, "cut at {} for nothing", extent.file.start);
            last = Some(bytes[extent.file.end as usize - 1].clone());
            at = extent.file.end;
        }
        prop_assert_eq!(at, file.end.max(file.start));
    }

    #[test]
    fn runs_are_the_extents_of_one_target((layout, bytes) in layout(), a in 0..800u64, b in 0..800u64) {
        let file = a.min(b)..a.max(b).min(bytes.len() as u64);
        for target in 0..layout.targets() + 1 {
            let runs: Vec<_> =
                layout.runs(target, file.clone()).map(|r| (r.file, r.object_offset, r.object)).collect();
            let extents: Vec<_> = (layout.extents(file.clone()).filter(|e| e.target == target))
                .map(|e| (e.file, e.object_offset, e.object))
                .collect();
            prop_assert_eq!(&runs, &extents);
            let held = file.clone().filter(|at| bytes[*at as usize].target == target).count() as u64;
            prop_assert_eq!(layout.bytes_on(target, file.clone()), held);
        }
    }

    #[test]
    fn a_table_says_what_it_was_given((targets, table) in segment_table(), range in part_of(900)) {
        let segments = Segments::new(targets, table.clone()).unwrap();
        prop_assert_eq!(segments.len(), table.last().map_or(0, |last| last.file.end));
        for segment in &table {
            for at in segment.file.clone() {
                let piece = segments.piece_at(at).unwrap();
                prop_assert_eq!((piece.target, piece.object), (segment.target, Some(&*segment.object)));
                prop_assert_eq!(
                    piece.object_offset + (at - piece.file.start),
                    segment.object_offset + (at - segment.file.start)
                );
            }
        }
        prop_assert_eq!(segments.piece_at(segments.len()), None);
        // Ranges past the end are cut there.
        let len = segments.len();
        let layout = Layout::from(segments);
        let bytes: u64 = layout.extents(range.clone()).map(|e| e.file.end - e.file.start).sum();
        prop_assert_eq!(bytes, range.end.min(len).saturating_sub(range.start));
    }

    /// Against 128-bit arithmetic, anywhere in the longest file.
    #[test]
    fn large_offsets_do_not_wrap(
        unit in prop_oneof![1..=MAX_FILE_BYTES, 1..1_000_000u64],
        targets in 1..=MAX_TARGETS,
        first in any::<u32>(),
        at in 0..MAX_FILE_BYTES,
    ) {
        let first = first % targets;
        let striped = Striped::new(unit, targets, first).unwrap();
        let (u, n, x) = (u128::from(unit), u128::from(targets), u128::from(at));
        let target = striped.target_of(at);
        prop_assert_eq!(u128::from(target), (u128::from(first) + x / u) % n);
        let inner = striped.object_offset(at);
        prop_assert_eq!(u128::from(inner), x / (u * n) * u + x % u);
        prop_assert_eq!(striped.file_offset(target, inner), Ok(at));
        prop_assert!(striped.object_len(target, at) <= inner);
        prop_assert_eq!(striped.object_len(target, at + 1), inner + 1);
        let layout = Layout::from(striped);
        let extent = layout.extents(at..u64::MAX).next().unwrap();
        prop_assert_eq!(layout.runs(target, at..u64::MAX).next().unwrap().file, extent.file);
    }
}

#[test]
fn ranges_that_hold_nothing() {
    let layout = Layout::from(Striped::new(4, 3, 2).unwrap());
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..0, 7..7, 9..3, u64::MAX..u64::MAX, MAX_FILE_BYTES..u64::MAX] {
        assert_eq!(layout.extents(range.clone()).count(), 0);
        assert!((0..4).all(|target| layout.runs(target, range.clone()).count() == 0));
        assert!((0..4).all(|target| layout.bytes_on(target, range.clone()) == 0));
    }
    assert_eq!(layout.target_of(MAX_FILE_BYTES), None);
    // Stripe 2^61 - 1, and 2^61 is 2 modulo 3.
    assert_eq!(layout.target_of(MAX_FILE_BYTES - 1), Some(0));
}

#[test]
fn one_target_is_one_extent() {
    let layout = Layout::from(Striped::new(1, 1, 0).unwrap());
    let extents: Vec<_> = layout.extents(5..MAX_FILE_BYTES).collect();
    assert_eq!(extents.len(), 1);
    assert_eq!((extents[0].file.clone(), extents[0].object_offset), (5..MAX_FILE_BYTES, 5));
}

#[test]
fn stripes_of_other_targets_are_not_visited() {
    // The longest file is two rows of these stripes, less one byte.
    let layout = Layout::from(Striped::new(1 << 46, MAX_TARGETS, 9).unwrap());
    let runs: Vec<_> = layout.runs(8, 0..MAX_FILE_BYTES).map(|run| (run.file, run.object_offset)).collect();
    let last_of_row = 65_535u64 << 46;
    assert_eq!(runs, [(last_of_row..1 << 62, 0), ((1 << 62) + last_of_row..MAX_FILE_BYTES, 1 << 46),]);
    // Visiting 2^63 stripes of a byte would not end.
    let fine = Layout::from(Striped::new(1, 2, 0).unwrap());
    assert_eq!(fine.runs(1, MAX_FILE_BYTES - 2..u64::MAX).count(), 1);
    assert_eq!(fine.bytes_on(1, 0..MAX_FILE_BYTES), (1 << 62) - 1);
}

#[test]
fn refused_stripes() {
    assert_eq!(Striped::new(0, 4, 0), Err(LayoutError::Unit { unit: 0 }));
    assert_eq!(Striped::new(1 << 63, 4, 0), Err(LayoutError::Unit { unit: 1 << 63 }));
    assert_eq!(Striped::new(1, 0, 0), Err(LayoutError::Targets { targets: 0 }));
    assert_eq!(Striped::new(1, 65_537, 0), Err(LayoutError::Targets { targets: 65_537 }));
    assert_eq!(Striped::new(1, 4, 4), Err(LayoutError::First { first: 4, targets: 4 }));
    assert_eq!(Striped::contiguous(1 << 63, 1), Err(LayoutError::FileTooLong { bytes: 1 << 63 }));
    assert_eq!(Striped::contiguous(5, 0), Err(LayoutError::Targets { targets: 0 }));
    let striped = Striped::new(10, 4, 0).unwrap();
    assert_eq!(striped.file_offset(4, 0), Err(LayoutError::UnknownTarget { target: 4, targets: 4 }));
    for object_offset in [MAX_FILE_BYTES / 4 + 10, u64::MAX] {
        assert_eq!(
            striped.file_offset(1, object_offset),
            Err(LayoutError::ObjectOffset { target: 1, object_offset })
        );
    }
}

fn line(file: std::ops::Range<u64>, target: u32, object: &str, object_offset: u64) -> Segment {
    Segment { file, target, object: object.to_owned(), object_offset }
}

#[test]
fn refused_tables() {
    let refused = |table: &[Segment]| Segments::new(2, table.to_vec()).unwrap_err();
    assert_eq!(
        refused(&[line(1..3, 0, "a", 0)]),
        LayoutError::SegmentOrder { index: 0, expected: 0, found: 1 }
    );
    let overlap = [line(0..4, 0, "a", 0), line(3..5, 1, "a", 0)];
    assert_eq!(refused(&overlap), LayoutError::SegmentOrder { index: 1, expected: 4, found: 3 });
    assert_eq!(refused(&[line(0..0, 0, "a", 0)]), LayoutError::SegmentEmpty { index: 0, start: 0, end: 0 });
    assert_eq!(refused(&[line(0..4, 2, "a", 0)]), LayoutError::UnknownTarget { target: 2, targets: 2 });
    assert_eq!(refused(&[line(0..4, 0, "", 0)]), LayoutError::SegmentObject { index: 0, bytes: 0 });
    let long = "n".repeat(1_025);
    assert_eq!(refused(&[line(0..4, 0, &long, 0)]), LayoutError::SegmentObject { index: 0, bytes: 1_025 });
    assert_eq!(refused(&[line(0..1 << 63, 0, "a", 0)]), LayoutError::FileTooLong { bytes: 1 << 63 });
    let object_offset = MAX_FILE_BYTES - 3;
    assert_eq!(
        refused(&[line(0..4, 1, "a", object_offset)]),
        LayoutError::ObjectOffset { target: 1, object_offset }
    );
    assert!(Segments::new(2, [line(0..4, 1, "a", object_offset - 1)]).is_ok());
    assert_eq!(Segments::new(0, []), Err(LayoutError::Targets { targets: 0 }));

    // Lines 0 and 1 are one piece; line 3 claims the last byte of it again.
    let shared =
        [line(0..4, 0, "a", 0), line(4..8, 0, "a", 4), line(8..9, 1, "a", 0), line(9..12, 0, "a", 7)];
    let error = refused(&shared);
    assert_eq!(
        error,
        LayoutError::SegmentShared { one: 0, other: 3, target: 0, object: "a".into(), object_offset: 7 }
    );
    assert!(error.to_string().contains("build it again"), "{error}");
}

#[test]
fn pieces_that_continue_are_one() {
    let table = [line(0..4, 0, "a", 10), line(4..8, 0, "a", 14), line(8..9, 0, "b", 18)];
    let segments = Segments::new(1, table).unwrap();
    assert_eq!(segments.pieces(), 2);
    assert_eq!(segments.piece_at(7).unwrap().file, 0..8);
    let empty = Segments::new(3, []).unwrap();
    assert!(empty.is_empty() && empty.piece_at(0).is_none());
    assert_eq!(Layout::from(empty).extents(0..10).count(), 0);
}
