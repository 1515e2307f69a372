//! What owners pull: needs, batches and their sum, against a world of single bytes.

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use gristmill_layout::{
    BATCH_WINDOW, FixedRecords, Layout, LayoutError, MAX_FILE_BYTES, MAX_NEEDS, Need, Striped, batches,
    batches_in_windows, needs, owned, traffic, traffic_in_windows,
};
use model::{World, part_of, world};
use proptest::prelude::*;

fn window(bytes: u64) -> NonZeroU64 {
    NonZeroU64::new(bytes).unwrap_or(NonZeroU64::MIN)
}

fn halo() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0u64), 2 => 0..4u64, 1 => 0..80u64, 1 => Just(u64::MAX)]
}

/// A selection and what its halo may reach into, which holds it.
fn select_within() -> impl Strategy<Value = (std::ops::Range<u64>, std::ops::Range<u64>)> {
    (part_of(80), 0..9u64, 0..9u64)
        .prop_map(|(select, a, b)| (select.clone(), select.start.saturating_sub(a)..select.end + b))
}

/// Smaller than the halo arithmetic of the model can bear, larger than any world.
fn tame(halo: u64) -> u64 {
    halo.min(10_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn own_bytes_and_needs_are_the_whole_reach(
        world in world(), halo in halo(), (middle, within) in select_within(), owner in 0..9u32,
    ) {
        let lacking = needs(&world.layout, &world.records, owner, middle.clone(), halo, within.clone()).unwrap();
        let mut pulled = BTreeMap::new();
        for need in &lacking {
            for at in need.file.clone() {
                prop_assert!(pulled.insert(at, need.target).is_none(), "byte {} twice", at);
            }
        }
        let existing = world.existing(&middle);
        let reach = match (existing.first(), existing.last()) {
            (Some(first), Some(last)) => world.reach(*first..last + 1, tame(halo), &within),
            _ => BTreeSet::new(),
        };
        let expected: BTreeMap<u64, u32> = (reach.into_iter())
            .map(|at| (at, world.bytes[at as usize].target))
            .filter(|(_, target)| *target != owner)
            .collect();
        prop_assert_eq!(pulled, expected);
        for pair in lacking.windows(2) {
            prop_assert!(pair[0].file.end <= pair[1].file.start);
            prop_assert!(pair[0].file.end < pair[1].file.start || pair[0].target != pair[1].target);
        }
    }

    #[test]
    fn batches_hold_every_need_once(
        world in world(), halo in halo(), (select, within) in select_within(), length in 1..300u64,
    ) {
        for owner in 0..world.layout.targets() + 1 {
            let mut pulled = BTreeMap::new();
            let mut last_window = 0;
            let (select, within, length) = (select.clone(), within.clone(), window(length));
            let list = batches_in_windows(
                &world.layout, &world.records, owner, select.clone(), halo, within.clone(), length,
            );
            for batch in list {
                prop_assert_eq!(batch.owner, owner);
                prop_assert_eq!(batch.window.start % length, 0);
                prop_assert_eq!(batch.window.end - batch.window.start, length.get());
                prop_assert!(batch.window.end > last_window, "a second batch for one window");
                last_window = batch.window.end;
                prop_assert!(!batch.from.is_empty());
                prop_assert!(batch.from.windows(2).all(|pair| pair[0].0 < pair[1].0), "a holder twice");
                for (holder, ranges) in &batch.from {
                    prop_assert!(!ranges.is_empty());
                    prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
                    for at in ranges.iter().cloned().flatten() {
                        prop_assert!(batch.window.contains(&at));
                        prop_assert!(pulled.insert(at, *holder).is_none(), "byte {} twice", at);
                    }
                }
            }
            let expected: BTreeMap<u64, u32> =
                (world.needed(owner, &select, tame(halo), &within).into_iter())
                    .map(|at| (at, world.bytes[at as usize].target))
                    .filter(|(_, target)| *target != owner)
                    .collect();
            prop_assert_eq!(&pulled, &expected);
            // And the same bytes, run by run.
            let mut by_run = BTreeMap::new();
            for owned in owned(&world.layout, &world.records, select.clone(), owner) {
                let lacking =
                    needs(&world.layout, &world.records, owner, owned.records, halo, within.clone()).unwrap();
                for need in lacking {
                    by_run.extend(need.file.clone().map(|at| (at, need.target)));
                }
            }
            prop_assert_eq!(pulled, by_run);
        }
    }

    #[test]
    fn traffic_is_the_sum(
        world in world(), halo in halo(), (select, within) in select_within(), length in 1..300u64,
    ) {
        check_traffic(&world, select, halo, within, length)?;
    }

    /// Small periods in long files, so that the repeated middle is counted once and multiplied.
    #[test]
    fn traffic_repeats(
        unit in 1..7u64, targets in 1..5u32, size in 1..9u64, header in 0..20u64, halo in 0..4u64,
        length in prop_oneof![Just(1u64), 1..9u64, Just(60u64)],
        len in 300..1500u64, cut in (0..20u64, 0..20u64),
    ) {
        let (records, _) = FixedRecords::fitting(header, size, len).unwrap();
        let world = World {
            layout: Striped::new(unit, targets, targets - 1).unwrap().into(),
            bytes: model::deal(unit, targets, targets - 1, len),
            records,
        };
        let select = cut.0..records.count().saturating_sub(cut.1).max(cut.0);
        check_traffic(&world, select, halo, 2..records.count(), length)?;
    }
}

fn check_traffic(
    world: &World,
    select: std::ops::Range<u64>,
    halo: u64,
    within: std::ops::Range<u64>,
    length: u64,
) -> Result<(), TestCaseError> {
    let found = traffic_in_windows(
        &world.layout,
        &world.records,
        select.clone(),
        halo,
        within.clone(),
        window(length),
    );
    // The halo is never cut inside the selection.
    let within = within.start.min(select.start)..within.end.max(select.end);
    let (mut moved, mut own, mut messages) = (0, 0, BTreeSet::new());
    for owner in 0..world.layout.targets() {
        for at in world.needed(owner, &select, tame(halo), &within) {
            let holder = world.bytes[at as usize].target;
            if holder == owner {
                own += 1;
            } else {
                moved += 1;
                messages.insert((owner, holder, at / length));
            }
        }
    }
    prop_assert!(!found.estimated);
    prop_assert_eq!((found.moved_bytes, found.own_bytes), (moved, own));
    prop_assert_eq!(found.messages, messages.len() as u64);
    Ok(())
}

/// The sum of all batches, for files too long for the model.
fn summed(layout: &Layout, records: &FixedRecords, select: std::ops::Range<u64>, halo: u64) -> (u64, u64) {
    let (mut moved, mut messages) = (0, 0);
    for owner in 0..layout.targets() {
        for batch in batches(layout, records, owner, select.clone(), halo, select.clone()) {
            messages += batch.from.len() as u64;
            moved += batch.from.iter().flat_map(|(_, ranges)| ranges).map(|r| r.end - r.start).sum::<u64>();
        }
    }
    (moved, messages)
}

#[test]
fn traffic_is_the_sum_of_the_batches_over_many_windows() {
    // Period with windows: 5 MiB and 320 MiB * 7; the first repeats, the second does not.
    for (unit, targets, size, header, halo) in [
        (4_096, 5, 80, 44, 0),
        (4_096, 5, 80, 44, 7),
        (65_536, 7, 9_720, 1_000, 2),
        (100, 3, 3_000_000, 5, 1),
    ] {
        let layout = Layout::from(Striped::new(unit, targets, 1).unwrap());
        let (records, _) = FixedRecords::fitting(header, size, 50 << 20).unwrap();
        let select = 3..records.count() - 2;
        let found = traffic(&layout, &records, select.clone(), halo);
        assert!(!found.estimated);
        assert_eq!((found.moved_bytes, found.messages), summed(&layout, &records, select, halo));
    }
}

#[test]
fn a_record_over_five_targets() {
    let layout = Layout::from(Striped::new(10, 6, 4).unwrap());
    let records = FixedRecords::new(7, 45, 2).unwrap();
    // Record 0 is bytes 7..52: three bytes on target 4, then 5, 0, 1, 2 whole, and two on 3.
    let found: Vec<_> = owned(&layout, &records, 0..1, 4).collect();
    assert_eq!((found.len(), found[0].run.file.clone(), found[0].run.object_offset), (1, 7..10, 7));
    let lacking = needs(&layout, &records, 4, 0..1, 0, 0..2).unwrap();
    let expected = [(5, 10..20), (0, 20..30), (1, 30..40), (2, 40..50), (3, 50..52)];
    assert_eq!(lacking, expected.map(|(target, file)| Need { target, file }));
    let all: Vec<_> = batches(&layout, &records, 4, 0..1, 0, 0..2).collect();
    assert_eq!((all.len(), all[0].window.clone(), all[0].from.len()), (1, 0..BATCH_WINDOW, 5));
}

#[test]
fn many_stripes_of_one_holder_are_one_message() {
    // A record of 1 MiB in stripes of 4 KiB over two targets: 128 stripes of the other, one message.
    let layout = Layout::from(Striped::new(4_096, 2, 0).unwrap());
    let records = FixedRecords::new(0, 1 << 20, 2).unwrap();
    let all: Vec<_> = batches(&layout, &records, 0, 0..2, 0, 0..2).collect();
    assert_eq!(all.len(), 2);
    for batch in &all {
        assert_eq!((batch.from.len(), batch.from[0].0, batch.from[0].1.len()), (1, 1, 128));
    }
    // It owns both, so it moves half of what a plain read would.
    let cost = traffic(&layout, &records, 0..2, 0);
    assert_eq!((cost.moved_bytes, cost.own_bytes, cost.messages), (1 << 20, 1 << 20, 2));
}

#[test]
fn more_pieces_than_one_call_lists() {
    let layout = Layout::from(Striped::new(1, 3, 0).unwrap());
    let records = FixedRecords::new(0, MAX_NEEDS as u64 * 3 / 2, 2).unwrap();
    assert_eq!(needs(&layout, &records, 0, 0..1, 0, 0..2).unwrap().len(), MAX_NEEDS);
    assert_eq!(needs(&layout, &records, 0, 0..2, 0, 0..2), Err(LayoutError::TooManyNeeds));
}

#[test]
fn a_tebibyte_in_small_stripes_repeats() {
    let layout = Layout::from(Striped::new(4_096, 5, 0).unwrap());
    let (records, _) = FixedRecords::fitting(0, 80, 1 << 40).unwrap();
    let cost = traffic(&layout, &records, 0..records.count(), 0);
    assert!(!cost.estimated);
    assert_eq!(u128::from(cost.moved_bytes + cost.own_bytes), u128::from(records.count()) * 80);
    // Each cut inside a record leaves its rest on the next target; boundaries repeat 16, 32, 48, 64, 0.
    let cuts = |rest: u64| (1..=records.end() / 4_096).filter(|b| b * 4_096 % 80 == 80 - rest).count() as u64;
    let expected: u64 = [16, 32, 48, 64].iter().map(|rest| rest * cuts(*rest)).sum();
    assert_eq!(cost.moved_bytes, expected);
}

#[test]
fn the_longest_files_are_exact_where_they_repeat() {
    let layout = Layout::from(Striped::new(65_536, 16, 3).unwrap());
    let records = FixedRecords::new(0, 1 << 20, MAX_FILE_BYTES >> 20).unwrap();
    let cost = traffic(&layout, &records, 0..records.count(), 0);
    // Each record is one stripe on each of the 16 targets.
    let n = records.count();
    assert_eq!((cost.moved_bytes, cost.own_bytes, cost.messages), (n * 15 * 65_536, n * 65_536, n * 15));
    assert!(!cost.estimated);
    // No file holds a second cycle of these stripes: one piece per target.
    let pieces = Layout::from(Striped::contiguous(MAX_FILE_BYTES, 16).unwrap());
    let records = FixedRecords::new(3, 1_000_003, (MAX_FILE_BYTES - 3) / 1_000_003).unwrap();
    let cost = traffic(&pieces, &records, 0..records.count(), 0);
    assert!(!cost.estimated && cost.moved_bytes < 15 * 1_000_003 && cost.messages <= 30);
}

#[test]
fn what_neither_repeats_nor_ends_is_estimated() {
    let layout = Layout::from(Striped::new(4_099, 7, 0).unwrap());
    let records = FixedRecords::new(0, 1_000_003, (1 << 62) / 1_000_003).unwrap();
    let cost = traffic(&layout, &records, 0..records.count(), 0);
    assert!(cost.estimated);
    // A record is 243 stripes and a bit: a seventh is the owner's, up to one stripe more or less.
    let total = records.end() as f64;
    assert!((cost.moved_bytes as f64 / total - 6.0 / 7.0).abs() < 0.005, "{cost:?}");
    assert!(((cost.moved_bytes as f64 + cost.own_bytes as f64) / total - 1.0).abs() < 0.005, "{cost:?}");
}

#[test]
fn more_than_a_u64_is_said_to_be_inexact() {
    // Every target pulls nearly all of the longest file.
    let layout = Layout::from(Striped::new(1 << 20, 65_536, 0).unwrap());
    let records = FixedRecords::new(0, 1 << 20, MAX_FILE_BYTES >> 20).unwrap();
    let cost = traffic(&layout, &records, 0..records.count(), u64::MAX);
    assert!(cost.estimated);
    assert_eq!(cost.moved_bytes, u64::MAX);
}

#[test]
fn no_records_no_traffic() {
    let layout = Layout::from(Striped::new(10, 3, 0).unwrap());
    let records = FixedRecords::new(0, 8, 0).unwrap();
    let cost = traffic(&layout, &records, 0..9, 5);
    assert_eq!((cost.moved_bytes, cost.own_bytes, cost.messages, cost.estimated), (0, 0, 0, false));
    assert!(batches(&layout, &records, 0, 0..9, 5, 0..9).next().is_none());
}
