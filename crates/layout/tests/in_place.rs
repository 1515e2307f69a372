//! Files that lie in one piece where all targets read them: records have owners, and nothing is pulled.
#![allow(clippy::unwrap_used)]

mod model;

use gristmill_layout::{
    Component, FixedRecords, Layout, LayoutError, MAX_CYCLE, MAX_STRIPES_IN_PLACE, Segments, Striped,
    batches, needs, owned, traffic,
};
use model::{deal, striped};
use proptest::prelude::*;

proptest! {
    #[test]
    fn owners_are_those_of_the_stripes_and_lack_nothing(
        (unit, targets, first) in striped(),
        (header, size, count) in (0..50u64, 1..60u64, 0..60u64),
        halo in 0..5u64,
        (from, len) in (0..900u64, 0..900u64),
    ) {
        let stripes = Striped::new(unit, targets, first).unwrap();
        let (dealt, placed) = (Layout::from(stripes), Layout::from(stripes.in_place()));
        prop_assert!(placed.is_in_place() && !dealt.is_in_place());
        let records = FixedRecords::new(header, size, count).unwrap();
        let total = traffic(&placed, &records, 0..count, halo);
        prop_assert_eq!((total.moved_bytes, total.messages, total.estimated), (0, 0, false));
        for target in 0..targets {
            prop_assert_eq!(placed.bytes_on(target, from..from + len), dealt.bytes_on(target, from..from + len));
            let records_of = |layout| owned(layout, &records, 0..count, target).map(|own| own.records).collect::<Vec<_>>();
            prop_assert_eq!(records_of(&placed), records_of(&dealt));
            for own in owned(&placed, &records, 0..count, target) {
                prop_assert_eq!(own.run.object_offset, own.run.file.start);
            }
            prop_assert!(needs(&placed, &records, target, 0..count, halo, 0..count).unwrap().is_empty());
            prop_assert!(batches(&placed, &records, target, 0..count, halo, 0..count).next().is_none());
            let read: Vec<_> = placed.extents_for(target, from..from + len).collect();
            prop_assert_eq!(read.len(), usize::from(len > 0));
            for extent in read {
                prop_assert_eq!((extent.target, extent.file, extent.object_offset), (target, from..from + len, from));
            }
        }
        for (at, byte) in (0..).zip(deal(unit, targets, first, from)) {
            prop_assert_eq!(stripes.in_place().target_of(at), byte.target);
            prop_assert_eq!(stripes.in_place().file_offset(byte.target, at).unwrap(), at);
        }
    }

    #[test]
    fn joined_files_are_in_place_if_all_are(
        files in prop::collection::vec((striped(), 0..500u64, any::<bool>()), 1..5),
        owner in 0..9u32,
    ) {
        let parts: Vec<_> = files
            .iter()
            .map(|((unit, targets, first), length, dealt)| {
                let stripes = Striped::new(*unit, *targets, *first).unwrap();
                let layout = if *dealt { stripes } else { stripes.in_place() };
                (Layout::from(layout), *length, (0..*targets).collect())
            })
            .collect();
        let all = Layout::joined(&parts, 9).unwrap();
        let (in_place, any) = files.iter().filter(|(_, length, _)| *length > 0)
            .fold((true, false), |(all, _), (.., dealt)| (all && !dealt, true));
        prop_assert_eq!(all.is_in_place(), in_place && any);
        let mut begin = 0;
        for (number, (_, length, _)) in files.iter().enumerate() {
            let mut at = begin;
            for extent in all.extents_for(owner, begin..begin + length) {
                prop_assert_eq!(extent.file.start, at);
                let name = number.to_string();
                prop_assert_eq!(extent.object, Some(name.as_str()));
                if all.is_in_place() {
                    prop_assert_eq!((extent.target, extent.object_offset), (owner, at - begin));
                }
                at = extent.file.end;
            }
            begin += length;
            prop_assert_eq!(at, begin);
        }
    }

    #[test]
    fn stripes_of_components_repeat_their_cycles(
        components in prop::collection::vec((0..300u64, 1..40u64, prop::collection::vec(0..5u32, 1..7)), 1..4),
        length in 0..900u64,
        (size, halo) in (1..60u64, 0..3u64),
    ) {
        let last = components.len() - 1;
        let mut end = 0;
        let of = |(n, (bytes, unit, cycle)): (usize, &(u64, u64, Vec<u32>))| {
            end += bytes;
            (if n == last { u64::MAX } else { end }, *unit, cycle.clone())
        };
        let components: Vec<_> = components.iter().enumerate().map(of).collect();
        let parts = components.iter().map(|(end, unit, cycle)| Component { end: *end, unit: *unit, cycle });
        let layout = Layout::from(Segments::of_components(5, length, parts).unwrap());
        prop_assert!(layout.is_in_place());
        let owner = |at: u64| {
            let (_, unit, cycle) = components.iter().find(|(end, ..)| at < *end).unwrap();
            cycle[(at / unit % cycle.len() as u64) as usize]
        };
        for at in 0..length {
            prop_assert_eq!(layout.target_of(at), Some(owner(at)));
        }
        let records = FixedRecords::from_file_len(0, size, length / size * size).unwrap();
        prop_assert_eq!(traffic(&layout, &records, 0..records.count(), halo).moved_bytes, 0);
        let mut owned_by = vec![None; records.count() as usize];
        for target in 0..5 {
            for own in owned(&layout, &records, 0..records.count(), target) {
                prop_assert_eq!(own.run.object_offset, own.run.file.start);
                for record in own.records {
                    prop_assert_eq!(owned_by[record as usize].replace(target), None);
                }
            }
        }
        for (record, target) in owned_by.into_iter().enumerate() {
            prop_assert_eq!(target, Some(owner(record as u64 * size)));
        }
        // Such a file joins others.
        let all = Layout::joined(&[(layout.clone(), length, (0..5).collect()), (layout, length, (1..6).collect())], 6);
        let all = all.unwrap();
        for at in 0..length {
            prop_assert_eq!(all.target_of(at), Some(owner(at)));
            prop_assert_eq!(all.target_of(length + at), Some(owner(at) + 1));
        }
    }
}

#[test]
fn components_that_are_no_layout_are_refused() {
    let made = |length, component| Segments::of_components(2, length, [component]);
    let fine = Component { end: 10, unit: 4, cycle: &[0, 1] };
    assert!(made(10, fine).is_ok());
    assert_eq!(made(11, fine), Err(LayoutError::Components { why: "they end before the file" }));
    assert_eq!(made(10, Component { unit: 0, ..fine }), Err(LayoutError::Unit { unit: 0 }));
    let (empty, long) = (made(10, Component { cycle: &[], ..fine }), vec![0; MAX_CYCLE + 1]);
    assert!(matches!(empty, Err(LayoutError::Components { .. })));
    assert!(matches!(made(10, Component { cycle: &long, ..fine }), Err(LayoutError::Components { .. })));
    let unknown = made(10, Component { cycle: &[0, 2], ..fine });
    assert_eq!(unknown, Err(LayoutError::UnknownTarget { target: 2, targets: 2 }));
    let most = MAX_STRIPES_IN_PLACE as u64;
    let small = Component { end: u64::MAX, unit: 1, cycle: &[0, 1] };
    assert!(made(most, small).is_ok());
    assert_eq!(made(most + 1, small), Err(LayoutError::Components { why: "there are too many stripes" }));
    assert!(Segments::of_components(2, 0, []).is_ok_and(|none| none.is_empty()));
}
