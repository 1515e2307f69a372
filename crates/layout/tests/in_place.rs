//! Files that lie in one piece where all targets read them: records have owners, and nothing is pulled.
#![allow(clippy::unwrap_used)]

mod model;

use gristmill_layout::{FixedRecords, Layout, Striped, batches, needs, owned, traffic};
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
}
