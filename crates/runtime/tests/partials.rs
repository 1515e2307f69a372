//! Partials and checkpoints: they join in any order, no record counts twice, and encoded bytes are checked.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Block, Ctx, DType, Input, Kernel, NoRows, catalog, saved};
use gristmill_runtime::{Checkpoint, ExtentSet, Partial, RunError};
use proptest::prelude::*;

const COUNT: u64 = 64;

fn kernel(name: &str) -> Arc<dyn Kernel> {
    catalog::bind(name, &[], &Input::elements(DType::U8)).unwrap()
}

fn ctx() -> Ctx {
    Ctx::first(0..COUNT)
}

/// The partial of these records of the bytes 0, 1, 2 ...
fn partial(kernel: &dyn Kernel, range: Range<u64>) -> Partial {
    let data: Vec<u8> = range.clone().map(|i| (i * 37 % 251) as u8).collect();
    let mut fold = kernel.begin(&ctx()).unwrap();
    if !data.is_empty() {
        fold.update(&Block::new(range.start, data.len() as u64, &data), &mut NoRows).unwrap();
    }
    Partial::new(0, ExtentSet::from_range(range), saved(&*fold))
}

fn joined(kernel: &dyn Kernel, mut parts: Vec<Partial>, order: &[prop::sample::Index]) -> Partial {
    for index in order {
        if parts.len() < 2 {
            break;
        }
        let other = parts.remove(index.index(parts.len()));
        let into = index.index(parts.len());
        parts[into].join(kernel, &ctx(), other, &mut NoRows).unwrap();
    }
    let mut first = parts.remove(0);
    for other in parts {
        first.join(kernel, &ctx(), other, &mut NoRows).unwrap();
    }
    first
}

proptest! {
    #[test]
    fn the_order_of_joining_does_not_matter(
        cuts in prop::collection::btree_set(1..COUNT, 0..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 12),
        ordered in any::<bool>(),
    ) {
        // `last` merges only neighbours, and `sum` merges across gaps.
        let kernel = kernel(if ordered { "last" } else { "sum" });
        let bounds: Vec<u64> = std::iter::once(0).chain(cuts).chain([COUNT]).collect();
        let parts: Vec<_> = bounds.windows(2).map(|pair| partial(&*kernel, pair[0]..pair[1])).collect();
        let whole = joined(&*kernel, parts, &order);
        prop_assert_eq!(whole.pieces.len(), 1);
        let state = whole.whole(&*kernel, &ctx()).unwrap();
        let expected = partial(&*kernel, 0..COUNT).whole(&*kernel, &ctx()).unwrap();
        prop_assert_eq!(state, expected);
    }

    #[test]
    fn records_that_are_covered_twice_are_refused(a in 0..COUNT, b in 0..COUNT, len in 1..20u64, ordered in any::<bool>()) {
        let kernel = kernel(if ordered { "last" } else { "sum" });
        let (first, second) = (a..(a + len).min(COUNT), b..(b + len).min(COUNT));
        let overlap = first.start.max(second.start) < first.end.min(second.end);
        let mut joined = partial(&*kernel, first);
        let result = joined.join(&*kernel, &ctx(), partial(&*kernel, second), &mut NoRows);
        prop_assert_eq!(matches!(result, Err(RunError::Overlap { .. })), overlap);
    }

    #[test]
    fn missing_records_are_an_error(from in 0..COUNT, to in 0..COUNT) {
        let kernel = kernel("sum");
        let missing = from != 0 || to != COUNT;
        let whole = partial(&*kernel, from..to.max(from)).whole(&*kernel, &ctx());
        prop_assert_eq!(matches!(whole, Err(RunError::Incomplete { .. })), missing);
    }

    #[test]
    fn an_encoded_partial_decodes_to_the_same(cuts in prop::collection::btree_set(0..COUNT, 2..9)) {
        let kernel = kernel("last");
        let bounds: Vec<u64> = cuts.into_iter().collect();
        // Only every other extent is taken, so that pieces stay apart.
        let parts: Vec<_> = bounds.windows(2).step_by(2).map(|pair| partial(&*kernel, pair[0]..pair[1])).collect();
        let partial = joined(&*kernel, parts, &[]);
        let mut bytes = Vec::new();
        partial.encode(&mut bytes);
        prop_assert_eq!(Partial::decode(&bytes).unwrap(), partial);
        for cut in 0..bytes.len() {
            prop_assert!(Partial::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn many_pieces_join_as_one_by_one(
        // Extents that follow each other. Each has a length, and belongs to the left side, to the right side, or to none.
        extents in prop::collection::vec((1u64..4, 0u8..7), 20..120),
        twice in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let kernel = kernel("last");
        let (mut left, mut right, mut single) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        for (len, whose) in extents {
            let range = at..at + len;
            at += len;
            match whose {
                0..3 => left.push(range.clone()),
                3..6 => right.push(range.clone()),
                _ => continue,
            }
            single.push(range);
        }
        let ctx = Ctx::first(0..at);
        if let (Some(twice), false) = (&twice, left.is_empty()) {
            let again = twice.get(&left).clone();
            right.push(again);
            right.sort_by_key(|range| range.start);
        }
        let of = |ranges: &[Range<u64>]| Partial {
            pieces: ranges.iter().flat_map(|range| partial(&*kernel, range.clone()).pieces).collect(),
            ..Partial::empty(0)
        };
        let mut whole = of(&left);
        let overlaps = right.iter().any(|range| left.contains(range));
        let result = whole.join(&*kernel, &ctx, of(&right), &mut NoRows);
        prop_assert_eq!(matches!(result, Err(RunError::Overlap { .. })), overlaps);
        if !overlaps {
            prop_assert!(result.is_ok());
            let mut expected = Partial::empty(0);
            for range in single.iter().rev() {
                expected.join(&*kernel, &ctx, of(std::slice::from_ref(range)), &mut NoRows).unwrap();
            }
            // Neighbours of one side are merged only where they meet pieces of the other side, so another join merges all.
            let mut settled = Partial::empty(0);
            settled.join(&*kernel, &ctx, whole, &mut NoRows).unwrap();
            prop_assert_eq!(settled, expected);
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), flips in prop::collection::vec((0usize..400, 0u8..8), 1..6)) {
        let _ = Partial::decode(&bytes);
        let _ = Checkpoint::decode(&bytes);
        let _ = Checkpoint::decode(&[b"gristck\x03", &bytes[..]].concat());
        let mut encoded = Vec::new();
        partial(&*kernel("sum"), 3..9).encode(&mut encoded);
        for (at, bit) in flips {
            let len = encoded.len();
            encoded[at % len] ^= 1 << bit;
        }
        if let Ok(partial) = Partial::decode(&encoded) {
            let _ = partial.whole(&*kernel("sum"), &ctx());
        }
    }
}

#[test]
fn thousands_of_pieces_join_to_one() {
    let kernel = kernel("last");
    let ctx = Ctx::first(0..20_000);
    let every_other = |first: u64| Partial {
        pieces: (first..20_000).step_by(2).flat_map(|at| partial(&*kernel, at..at + 1).pieces).collect(),
        ..Partial::empty(0)
    };
    let mut whole = every_other(1);
    assert_eq!(whole.pieces.len(), 10_000);
    whole.join(&*kernel, &ctx, every_other(0), &mut NoRows).unwrap();
    assert_eq!(whole.pieces.len(), 1);
    assert_eq!(
        whole.whole(&*kernel, &ctx).unwrap(),
        partial(&*kernel, 0..20_000).whole(&*kernel, &ctx).unwrap()
    );
}

#[test]
fn several_pieces_of_a_kernel_of_any_order_count_each_record_once() {
    let kernel = kernel("sum");
    let mut several = Partial {
        pieces: [0..2, 4..6].into_iter().flat_map(|at| partial(&*kernel, at).pieces).collect(),
        ..Partial::empty(0)
    };
    let twice = several.clone().join(&*kernel, &ctx(), partial(&*kernel, 5..6), &mut NoRows);
    assert!(matches!(twice, Err(RunError::Overlap { .. })), "{twice:?}");
    several.join(&*kernel, &ctx(), partial(&*kernel, 2..4), &mut NoRows).unwrap();
    assert_eq!(several.pieces.len(), 1);
    assert_eq!(several.pieces[0].covered, ExtentSet::from_range(0..6));
}

#[test]
fn partials_of_two_passes_do_not_mix() {
    let kernel = kernel("sum");
    let mut first = partial(&*kernel, 0..4);
    let other = Partial { round: 1, ..partial(&*kernel, 4..8) };
    let result = first.join(&*kernel, &ctx(), other, &mut NoRows);
    assert!(matches!(result, Err(RunError::Round { want: 0, got: 1 })), "{result:?}");
}
