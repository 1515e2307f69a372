//! A file as a list of bytes, each with its target, object and place in that object: dealt out one by one, and
//! asked one by one.
#![allow(dead_code)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // Tests only, but clippy sees no test function here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gristmill_layout::{FixedRecords, Layout, Segment, Segments, Striped};
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Byte {
    pub target: u32,
    pub object: Option<String>,
    pub object_offset: u64,
}

#[derive(Debug, Clone)]
pub struct World {
    pub layout: Layout,
    pub bytes: Vec<Byte>,
    pub records: FixedRecords,
}

/// Deal a striped file out, byte by byte.
pub fn deal(unit: u64, targets: u32, first: u32, len: u64) -> Vec<Byte> {
    let mut filled = vec![0u64; targets as usize];
    let (mut target, mut in_stripe) = (first, 0);
    let mut bytes = Vec::new();
    for _ in 0..len {
        if in_stripe == unit {
            in_stripe = 0;
            target = if target + 1 == targets { 0 } else { target + 1 };
        }
        let object_offset = filled[target as usize];
        bytes.push(Byte { target, object: None, object_offset });
        filled[target as usize] += 1;
        in_stripe += 1;
    }
    bytes
}

pub fn striped() -> impl Strategy<Value = (u64, u32, u32)> {
    (prop_oneof![1..6u64, 1..40u64, 200..2000u64], 1..9u32)
        .prop_flat_map(|(unit, targets)| (Just(unit), Just(targets), 0..targets))
}

/// A table whose pieces often continue each other, so that joining is exercised.
pub fn segment_table() -> impl Strategy<Value = (u32, Vec<Segment>)> {
    (1..6u32, prop::collection::vec((0..6u32, 0..3u8, 1..30u64, 0..4u64, any::<bool>()), 0..40)).prop_map(
        |(targets, lines)| {
            let mut filled: BTreeMap<(u32, String), u64> = BTreeMap::new();
            let mut table: Vec<Segment> = Vec::new();
            let mut at = 0;
            for (target, object, len, gap, again) in lines {
                let (target, object) = match table.last() {
                    Some(last) if again => (last.target, last.object.clone()),
                    _ => (target % targets, format!("job-{object}")),
                };
                let filled = filled.entry((target, object.clone())).or_default();
                // A gap in the object: bytes that were written and then not used.
                let object_offset = *filled + if again { 0 } else { gap };
                *filled = object_offset + len;
                table.push(Segment { file: at..at + len, target, object, object_offset });
                at += len;
            }
            (targets, table)
        },
    )
}

pub fn bytes_of(table: &[Segment]) -> Vec<Byte> {
    let mut bytes = Vec::new();
    for segment in table {
        for n in 0..segment.file.end - segment.file.start {
            bytes.push(Byte {
                target: segment.target,
                object: Some(segment.object.clone()),
                object_offset: segment.object_offset + n,
            });
        }
    }
    bytes
}

/// A layout of either kind with its bytes.
pub fn layout() -> impl Strategy<Value = (Layout, Vec<Byte>)> {
    prop_oneof![
        3 => (striped(), 0..700u64).prop_map(|((unit, targets, first), len)| {
            (Striped::new(unit, targets, first).unwrap().into(), deal(unit, targets, first, len))
        }),
        1 => (0..700u64, 1..9u32).prop_map(|(len, targets)| {
            let layout = Striped::contiguous(len, targets).unwrap();
            (layout.into(), deal(layout.unit(), targets, 0, len))
        }),
        2 => segment_table().prop_map(|(targets, table)| {
            (Segments::new(targets, table.clone()).unwrap().into(), bytes_of(&table))
        }),
    ]
}

/// A file with a header, records of any length against its stripes, and a ragged end.
pub fn world() -> impl Strategy<Value = World> {
    (layout(), prop_oneof![1..4u64, 1..30u64, 30..400u64], prop_oneof![Just(0u64), 0..20u64, 0..400u64])
        .prop_map(|((layout, bytes), size, header)| {
            let len = bytes.len() as u64;
            let (records, _) = FixedRecords::fitting(header.min(len), size, len).unwrap();
            World { layout, bytes, records }
        })
}

/// A range below `end`, sometimes empty, sometimes past it.
pub fn part_of(end: u64) -> impl Strategy<Value = Range<u64>> {
    prop_oneof![Just(0..end), (0..=end + 2, 0..=end + 2).prop_map(|(a, b)| a.min(b)..a.max(b))]
}

impl World {
    /// First byte of a record.
    pub fn start(&self, record: u64) -> u64 {
        self.records.header() + record * self.records.size()
    }

    pub fn owner(&self, record: u64) -> u32 {
        self.bytes[self.start(record) as usize].target
    }

    /// Records of a range that exist.
    pub fn existing(&self, records: &Range<u64>) -> Vec<u64> {
        (records.start..records.end).filter(|r| *r < self.records.count()).collect()
    }

    /// Every byte that `owner` needs of the records it owns among `select` and of their halo.
    pub fn needed(&self, owner: u32, select: &Range<u64>, halo: u64, within: &Range<u64>) -> BTreeSet<u64> {
        let mut needed = BTreeSet::new();
        for middle in self.existing(select).into_iter().filter(|r| self.owner(*r) == owner) {
            needed.extend(self.reach(middle..middle + 1, halo, within));
        }
        needed
    }

    /// Every byte of these records and of their halo.
    pub fn reach(&self, middle: Range<u64>, halo: u64, within: &Range<u64>) -> BTreeSet<u64> {
        let mut bytes = BTreeSet::new();
        for record in 0..self.records.count() {
            let beside = record + halo >= middle.start && record < middle.end + halo;
            if middle.contains(&record) || (beside && within.contains(&record)) {
                bytes.extend(self.start(record)..self.start(record) + self.records.size());
            }
        }
        bytes
    }
}
