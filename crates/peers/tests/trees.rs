//! Who asks whom: every node once, nobody more than so many.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gristmill_peers::{groups, shards};
use gristmill_wire::{FAN_IN, FileMap, MAX_DEPTH, MAX_FILE_TARGETS, NodeShard, TargetPlace};
use proptest::prelude::*;

fn nodes(count: u32) -> Vec<NodeShard> {
    (0..count).map(|n| NodeShard { address: format!("10.0.0.{n}:1"), targets: vec![n, n + count] }).collect()
}

/// How many levels of nodes it takes to ask all of these, as each passes on to its own groups.
fn depth(nodes: Vec<NodeShard>, most: usize) -> u32 {
    groups(nodes, most).into_iter().map(|(_, rest)| 1 + depth(rest, most)).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn every_node_is_asked_once(count in 0..200u32, most in 0..40usize) {
        let all = nodes(count);
        let groups = groups(all.clone(), most);
        prop_assert!(groups.len() <= most.max(1));
        let sizes: Vec<_> = groups.iter().map(|(_, rest)| 1 + rest.len()).collect();
        let spread = sizes.iter().max().copied().unwrap_or(0) - sizes.iter().min().copied().unwrap_or(0);
        prop_assert!(spread <= 1, "{sizes:?}");
        let mut asked: Vec<_> =
            groups.into_iter().flat_map(|(first, rest)| std::iter::once(first).chain(rest)).collect();
        asked.sort_by_key(|node| node.targets[0]);
        prop_assert_eq!(asked, all);
    }

    #[test]
    fn passing_on_ends(count in 1..300u32, most in 2..20usize) {
        // Each level leaves at most one part in `most` of the nodes below any one.
        let (mut left, mut levels) = (count as usize, 0);
        while left > 0 {
            left = left.div_ceil(most) - 1;
            levels += 1;
        }
        prop_assert_eq!(depth(nodes(count), most), levels);
    }

    #[test]
    fn a_node_has_all_its_targets_in_the_order_of_the_layout(
        addresses in prop::collection::vec(0..6u32, 0..30),
    ) {
        let targets = (0..).zip(&addresses)
            .map(|(number, n)| TargetPlace { number: 100 + number, address: format!("n{n}:1"), version: 1 });
        let file = FileMap {
            id: "0".repeat(32), path: "/f".into(), length: 1, unit: 1, first: 0, record: None,
            segments: false, targets: targets.collect(),
        };
        let shards = shards(&file);
        let mut expected: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (place, n) in (0..).zip(&addresses) {
            expected.entry(format!("n{n}:1")).or_default().push(place);
        }
        let found: BTreeMap<_, _> = shards.iter().map(|s| (s.address.clone(), s.targets.clone())).collect();
        prop_assert_eq!(found.len(), shards.len(), "no node is there twice");
        prop_assert_eq!(found, expected);
        prop_assert!(shards.is_sorted_by_key(|shard| shard.targets[0]));
    }
}

#[test]
fn the_largest_cluster_is_asked_within_the_depth_that_nodes_allow() {
    let all = nodes(MAX_FILE_TARGETS as u32);
    assert!(depth(all, FAN_IN) <= MAX_DEPTH);
}
