//! The tree in which nodes are asked: every node once, and by no node more than the bound.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gristmill_peers::{groups, shards};
use gristmill_wire::{FAN_IN, FileMap, MAX_DEPTH, MAX_FILE_TARGETS, NodeShard, TargetPlace};
use proptest::prelude::*;

fn nodes(count: u32) -> Vec<NodeShard> {
    (0..count).map(|n| NodeShard { address: format!("10.0.0.{n}:1"), targets: vec![n, n + count] }).collect()
}

/// Number of levels that it takes to ask all these nodes, if each node asks its own groups.
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
    fn the_tree_has_the_least_depth(count in 1..300u32, most in 2..20usize) {
        // At each level at most one part in `most` of the nodes stays below a node.
        let (mut remaining, mut levels) = (count as usize, 0);
        while remaining > 0 {
            remaining = remaining.div_ceil(most) - 1;
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
            segments: false, attached: None, targets: targets.collect(),
        };
        let shards = shards(&file);
        let mut expected: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (place, n) in (0..).zip(&addresses) {
            expected.entry(format!("n{n}:1")).or_default().push(place);
        }
        let found: BTreeMap<_, _> = shards.iter().map(|s| (s.address.clone(), s.targets.clone())).collect();
        prop_assert_eq!(found.len(), shards.len(), "no node is listed twice");
        prop_assert_eq!(found, expected);
        prop_assert!(shards.is_sorted_by_key(|shard| shard.targets[0]));
    }
}

#[test]
fn the_largest_cluster_is_asked_within_the_depth_that_nodes_allow() {
    let all = nodes(MAX_FILE_TARGETS as u32);
    assert!(depth(all, FAN_IN) <= MAX_DEPTH);
}
