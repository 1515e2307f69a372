//! What happened between two answers of the entry node.

use std::collections::{HashMap, VecDeque};

use gristmill_wire::{ClusterStatus, NodeStatus};

/// Rates that are remembered for curves.
const MAX_REMEMBERED: usize = 512;

/// Bytes a second of one node, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Folded where they lie.
    pub folded: f64,
    /// Sent to clients and other nodes.
    pub sent: f64,
}

/// What is remembered of the nodes.
#[derive(Debug, Default)]
pub struct Changes {
    nodes: HashMap<u32, Known>,
    curve: VecDeque<Rates>,
}

/// A node when it last answered, and its rates until then.
#[derive(Clone, Copy, Debug)]
struct Known {
    up_seconds: f64,
    folded: u64,
    sent: u64,
    rates: Option<Rates>,
}

impl Changes {
    /// Takes an answer in.
    pub fn take(&mut self, cluster: &ClusterStatus) {
        for node in &cluster.nodes {
            let before = self.nodes.get(&node.target);
            if node.load.is_some() {
                self.nodes.insert(node.target, after(before, node));
            } else if let Some(known) = self.nodes.get_mut(&node.target) {
                known.rates = Some(Rates::default());
            }
        }
        if let Some(rates) = self.rates() {
            self.curve.push_back(rates);
            if self.curve.len() > MAX_REMEMBERED {
                self.curve.pop_front();
            }
        }
    }

    /// The rates of a node, if it was seen twice.
    pub fn of(&self, target: u32) -> Option<Rates> {
        self.nodes.get(&target).and_then(|known| known.rates)
    }

    /// The rates of all nodes together.
    pub fn rates(&self) -> Option<Rates> {
        let seen = self.nodes.values().filter_map(|known| known.rates);
        seen.reduce(|a, b| Rates { folded: a.folded + b.folded, sent: a.sent + b.sent })
    }

    /// Bytes of all nodes since each was started: folded, and sent. Those that do not answer count as they
    /// last did.
    pub fn sums(&self) -> (u64, u64) {
        let add = |(folded, sent): (u64, u64), node: &Known| {
            (folded.saturating_add(node.folded), sent.saturating_add(node.sent))
        };
        self.nodes.values().fold((0, 0), add)
    }

    /// The last rates of all, the latest last, at most so many.
    pub fn curve(&self, most: usize) -> impl Iterator<Item = Rates> {
        self.curve.iter().skip(self.curve.len().saturating_sub(most)).copied()
    }
}

/// A node that answered, after what was known of it. It counts from its start: where that was since, from
/// nothing.
fn after(before: Option<&Known>, node: &NodeStatus) -> Known {
    let (folded, sent) = (node.bytes.folded, node.bytes.sent);
    let same = before.filter(|before| node.up_seconds >= before.up_seconds);
    let passed = node.up_seconds - same.map_or(0.0, |known| known.up_seconds);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed;
    let rates = before.and_then(|before| match passed > 0.0 {
        true => Some(Rates {
            folded: rate(folded, same.map_or(0, |known| known.folded)),
            sent: rate(sent, same.map_or(0, |known| known.sent)),
        }),
        // The entry node said the same twice.
        false => before.rates,
    });
    Known { up_seconds: node.up_seconds, folded, sent, rates }
}

#[cfg(test)]
mod tests {
    use gristmill_wire::{BytesStatus, NodeLoad};

    use super::*;

    fn said(nodes: &[(u32, f64, u64)]) -> ClusterStatus {
        let node = |(target, up_seconds, folded): &(u32, f64, u64)| NodeStatus {
            target: *target,
            up_seconds: *up_seconds,
            load: (*up_seconds > 0.0).then(NodeLoad::default),
            bytes: BytesStatus { folded: *folded, sent: folded / 2 },
            ..NodeStatus::default()
        };
        ClusterStatus { at: 0.0, nodes: nodes.iter().map(node).collect() }
    }

    #[test]
    fn rates_go_by_the_clock_of_each_node() {
        let mut changes = Changes::default();
        changes.take(&said(&[(0, 10.0, 1000), (1, 50.0, 0)]));
        assert_eq!((changes.of(0), changes.rates(), changes.curve(9).count()), (None, None, 0));
        changes.take(&said(&[(0, 12.0, 3000), (1, 51.0, 10)]));
        assert_eq!(changes.of(0), Some(Rates { folded: 1000.0, sent: 500.0 }));
        assert_eq!(changes.rates(), Some(Rates { folded: 1010.0, sent: 505.0 }));
        assert_eq!(changes.sums(), (3010, 1505));
        // The same answer again.
        changes.take(&said(&[(0, 12.0, 3000), (1, 51.0, 10)]));
        assert_eq!(changes.of(0), Some(Rates { folded: 1000.0, sent: 500.0 }));
    }

    #[test]
    fn a_node_that_was_started_again_counts_from_its_start() {
        let mut changes = Changes::default();
        changes.take(&said(&[(0, 100.0, 1 << 40)]));
        // It does not answer: what it did is remembered, and it does nothing now.
        changes.take(&said(&[(0, 0.0, 0)]));
        assert_eq!((changes.of(0), changes.sums().0), (Some(Rates::default()), 1 << 40));
        changes.take(&said(&[(0, 2.0, 600)]));
        assert_eq!((changes.of(0), changes.sums().0), (Some(Rates { folded: 300.0, sent: 150.0 }), 600));
    }

    #[test]
    fn curves_are_bounded() {
        let mut changes = Changes::default();
        for second in 1..2 * MAX_REMEMBERED as u64 {
            changes.take(&said(&[(0, second as f64, second * 10)]));
        }
        assert_eq!(changes.curve.len(), MAX_REMEMBERED);
        assert_eq!(changes.curve(7).count(), 7);
    }
}
