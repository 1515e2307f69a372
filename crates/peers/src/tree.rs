//! The tree in which nodes are asked.

use std::collections::BTreeMap;

use gristmill_wire::{FileMap, NodeShard};

/// The nodes of a file, each with its targets, in the order of the layout.
pub fn shards(file: &FileMap) -> Vec<NodeShard> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out: Vec<NodeShard> = Vec::new();
    for (target, place) in (0..).zip(&file.targets) {
        let at = *places.entry(&place.address).or_insert_with(|| {
            out.push(NodeShard { address: place.address.clone(), targets: Vec::new() });
            out.len() - 1
        });
        if let Some(shard) = out.get_mut(at) {
            shard.targets.push(target);
        }
    }
    out
}

/// Divides nodes into at most `most` groups of nearly the same size. A group has the node to ask, and the nodes that it asks
/// in turn.
pub fn groups(nodes: Vec<NodeShard>, most: usize) -> Vec<(NodeShard, Vec<NodeShard>)> {
    let count = nodes.len().min(most.max(1));
    let mut groups: Vec<Vec<NodeShard>> = (0..count).map(|_| Vec::new()).collect();
    for (n, node) in nodes.into_iter().enumerate() {
        if let Some(group) = groups.get_mut(n % count.max(1)) {
            group.push(node);
        }
    }
    let split = |group: Vec<NodeShard>| {
        let mut nodes = group.into_iter();
        nodes.next().map(|first| (first, nodes.collect()))
    };
    groups.into_iter().filter_map(split).collect()
}
