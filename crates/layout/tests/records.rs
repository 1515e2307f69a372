//! Where records lie, who owns them, and stripe units that fit them.

mod model;

use gristmill_layout::{
    FixedRecords, Layout, LayoutError, MAX_FILE_BYTES, Segment, Segments, Striped, fit_unit, needs, owned,
};
use model::{part_of, world};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn records_lie_one_after_the_other(world in world(), select in part_of(40), file in part_of(700)) {
        let records = world.records;
        let walked: Vec<u64> = world.existing(&select);
        let bytes = records.bytes(select);
        prop_assert_eq!(bytes.end - bytes.start, walked.len() as u64 * records.size());
        if let Some(first) = walked.first() {
            prop_assert_eq!(bytes.start, world.start(*first));
        }
        let starting: Vec<u64> = records.starting_in(file.clone()).collect();
        let walked: Vec<u64> =
            (0..records.count()).filter(|r| file.contains(&world.start(*r))).collect();
        prop_assert_eq!(starting, walked);
        for at in 0..world.bytes.len() as u64 {
            let holds = |r: &u64| (world.start(*r)..world.start(*r) + records.size()).contains(&at);
            prop_assert_eq!(records.record_of(at), (0..records.count()).find(holds));
        }
    }

    /// Over all targets every selected record once, with the holder of its first byte, each run as long as the
    /// owner's bytes go on.
    #[test]
    fn every_record_has_one_owner(world in world(), select in part_of(60)) {
        let mut found = Vec::new();
        for target in 0..world.layout.targets() + 1 {
            let mut last_end = 0;
            for owned in owned(&world.layout, &world.records, select.clone(), target) {
                prop_assert!(!owned.records.is_empty());
                prop_assert!(owned.run.file.start >= last_end);
                last_end = owned.run.file.end;
                prop_assert_eq!(owned.run.file.start, world.start(owned.records.start));
                let all = world.records.bytes(owned.records.clone());
                prop_assert!(owned.run.file.end <= all.end);
                let first = &world.bytes[owned.run.file.start as usize];
                for (n, at) in owned.run.file.clone().enumerate() {
                    let byte = &world.bytes[at as usize];
                    prop_assert_eq!((byte.target, &byte.object), (target, &first.object));
                    prop_assert_eq!(byte.object_offset, owned.run.object_offset + n as u64);
                }
                prop_assert_eq!(owned.run.object, first.object.as_deref());
                for record in owned.records.clone() {
                    prop_assert!(owned.run.file.contains(&world.start(record)));
                    prop_assert_eq!(world.owner(record), target);
                    found.push(record);
                }
            }
        }
        found.sort_unstable();
        prop_assert_eq!(found, world.existing(&select));
    }

    #[test]
    fn a_fitted_unit_cuts_no_record(wanted in 0..5000u64, record in 1..700u64, targets in 1..6u32) {
        let unit = fit_unit(wanted, record).unwrap();
        prop_assert!(unit.is_multiple_of(record) && unit >= wanted.max(1));
        prop_assert!(unit < wanted + record || unit == record);
        let layout = Layout::from(Striped::new(unit, targets, 0).unwrap());
        let records = FixedRecords::new(unit * 3, record, 50).unwrap();
        for target in 0..targets {
            for owned in owned(&layout, &records, 0..50, target) {
                let lacking = needs(&layout, &records, target, owned.records, 0, 0..50).unwrap();
                prop_assert_eq!(lacking, []);
            }
        }
    }

    /// Records and stripes of any length, in the longest file: the owner found by stepping over is the owner.
    #[test]
    fn owners_far_out(
        unit in prop_oneof![1..100u64, 1..1u64 << 40, 1..=MAX_FILE_BYTES],
        targets in 1..=65_536u32,
        size in prop_oneof![1..100u64, 1..1u64 << 40],
        header in prop_oneof![Just(0u64), 0..1u64 << 50],
        pick in any::<u64>(),
    ) {
        let layout = Striped::new(unit, targets, 0).unwrap();
        let records = FixedRecords::new(header, size, (MAX_FILE_BYTES - header) / size).unwrap();
        let record = pick % records.count();
        let owner = layout.target_of(records.bytes(record..record + 1).start);
        let layout = Layout::from(layout);
        let found = owned(&layout, &records, record..records.count(), owner).next().unwrap();
        prop_assert_eq!(found.records.start, record);
        // And every other target's first record is really its own, and none before it is.
        let other = (owner + 1) % targets;
        let next = owned(&layout, &records, record..records.count(), other).next();
        if let Some(next) = &next {
            prop_assert_eq!(layout.target_of(next.run.file.start), Some(other));
            prop_assert_eq!(records.bytes(next.records.clone()).start, next.run.file.start);
        }
        let until = next.map_or(records.count(), |next| next.records.start);
        for between in (record..until).take(200).chain(until.saturating_sub(200).max(record)..until) {
            prop_assert_ne!(layout.target_of(records.bytes(between..between + 1).start), Some(other));
        }
    }
}

#[test]
fn a_ragged_end_says_what_to_do() {
    let error = FixedRecords::from_file_len(100, 80, 1_000).unwrap_err();
    assert_eq!(
        error,
        LayoutError::Leftover { header: 100, size: 80, count: 11, file_len: 1_000, leftover: 20 }
    );
    assert_eq!(
        error.to_string(),
        "20 bytes are left over after 11 records of 80 bytes (header 100, file 1000 bytes): check record size \
         and header, or select bytes 100..980 to leave the rest out"
    );
    let (records, leftover) = FixedRecords::fitting(100, 80, 1_000).unwrap();
    assert_eq!((records.count(), records.end(), leftover), (11, 980, 20));
}

#[test]
fn refused_records() {
    assert_eq!(FixedRecords::new(0, 0, 5), Err(LayoutError::RecordSize { size: 0 }));
    assert_eq!(FixedRecords::from_file_len(0, 0, 5), Err(LayoutError::RecordSize { size: 0 }));
    assert_eq!(FixedRecords::new(0, 1 << 63, 0), Err(LayoutError::RecordSize { size: 1 << 63 }));
    for (header, size, count) in [(1, 1, MAX_FILE_BYTES), (u64::MAX, 1, 1), (0, 1 << 40, 1 << 40)] {
        let error = LayoutError::RecordsTooLong { header, size, count };
        assert_eq!(FixedRecords::new(header, size, count), Err(error));
    }
    assert!(FixedRecords::new(0, 1, MAX_FILE_BYTES).is_ok());
    let short = LayoutError::HeaderPastEnd { header: 5, file_len: 4 };
    assert_eq!(FixedRecords::from_file_len(5, 1, 4), Err(short));
    let long = LayoutError::FileTooLong { bytes: u64::MAX };
    assert_eq!(FixedRecords::from_file_len(0, 1, u64::MAX), Err(long));
}

#[test]
fn files_without_records() {
    let layout = Layout::from(Striped::contiguous(0, 5).unwrap());
    for (header, file_len) in [(0, 0), (12, 12)] {
        let records = FixedRecords::from_file_len(header, 8, file_len).unwrap();
        assert_eq!((records.count(), records.bytes(0..9)), (0, header..header));
        assert!((0..5).all(|target| owned(&layout, &records, 0..9, target).next().is_none()));
        assert_eq!(needs(&layout, &records, 0, 0..9, 3, 0..9), Ok(vec![]));
    }
}

#[test]
fn units_that_fit() {
    assert_eq!(fit_unit(0, 80), Ok(80));
    assert_eq!(fit_unit(65_536, 80), Ok(65_600));
    assert_eq!(fit_unit(65_600, 80), Ok(65_600));
    assert_eq!(fit_unit(1, MAX_FILE_BYTES), Ok(MAX_FILE_BYTES));
    assert_eq!(fit_unit(5, 0), Err(LayoutError::RecordSize { size: 0 }));
    for (wanted, record) in [(u64::MAX, 80), (1 << 63, 1), (MAX_FILE_BYTES, 2), (1, u64::MAX)] {
        assert_eq!(fit_unit(wanted, record), Err(LayoutError::UnitTooLarge { wanted, record }));
    }
}

#[test]
fn records_past_the_end_of_a_table() {
    let piece = Segment { file: 0..100, target: 1, object: "a".into(), object_offset: 0 };
    let layout = Layout::from(Segments::new(2, [piece]).unwrap());
    let records = FixedRecords::new(0, 30, 4).unwrap();
    let error = LayoutError::RecordsPastEnd { end: 120, len: 100 };
    assert_eq!(layout.check_records(&records), Err(error.clone()));
    assert_eq!(needs(&layout, &records, 1, 0..4, 0, 0..4), Err(error));
    assert_eq!(layout.check_records(&FixedRecords::new(10, 30, 3).unwrap()), Ok(()));
}
