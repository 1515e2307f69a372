//! Rates between two answers of the entry node.

use std::collections::{HashMap, VecDeque};

use gristmill_wire::{ClusterStatus, NodeStatus};

/// Most rates that are kept for curves.
const MAX_REMEMBERED: usize = 512;

/// Bytes per second of one node, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Read by active requests where the bytes are stored.
    pub folded: f64,
    /// Sent to clients and other nodes.
    pub sent: f64,
}

/// The last counters and rates of each node, and the last rates of all.
#[derive(Debug, Default)]
pub struct Changes {
    nodes: HashMap<u32, NodeCounters>,
    curve: VecDeque<Rates>,
}

/// Counters of a node at its last answer, and its rates before that answer.
#[derive(Clone, Copy, Debug)]
struct NodeCounters {
    up_seconds: f64,
    folded: u64,
    sent: u64,
    rates: Option<Rates>,
}

impl Changes {
    /// Takes an answer.
    pub fn update(&mut self, cluster: &ClusterStatus) {
        for node in &cluster.nodes {
            let before = self.nodes.get(&node.target);
            if node.load.is_some() {
                self.nodes.insert(node.target, next_counters(before, node));
            } else if let Some(counters) = self.nodes.get_mut(&node.target) {
                counters.rates = Some(Rates::default());
            }
        }
        if let Some(rates) = self.total_rates() {
            self.curve.push_back(rates);
            if self.curve.len() > MAX_REMEMBERED {
                self.curve.pop_front();
            }
        }
    }

    /// The rates of a node; `None` until it has answered twice.
    pub fn node_rates(&self, target: u32) -> Option<Rates> {
        self.nodes.get(&target).and_then(|counters| counters.rates)
    }

    /// The sum of the rates of all nodes.
    pub fn total_rates(&self) -> Option<Rates> {
        let known = self.nodes.values().filter_map(|counters| counters.rates);
        known.reduce(|a, b| Rates { folded: a.folded + b.folded, sent: a.sent + b.sent })
    }

    /// Bytes of all nodes since each was started: folded, and sent. A node that does not answer counts with its last
    /// answer.
    pub fn total_bytes(&self) -> (u64, u64) {
        let add = |(folded, sent): (u64, u64), node: &NodeCounters| {
            (folded.saturating_add(node.folded), sent.saturating_add(node.sent))
        };
        self.nodes.values().fold((0, 0), add)
    }

    /// The sums of rates over time, the latest last, at most `most` of them.
    pub fn curve(&self, most: usize) -> impl Iterator<Item = Rates> {
        self.curve.iter().skip(self.curve.len().saturating_sub(most)).copied()
    }
}

/// The counters of a node that answered, and its rates since `before`. Counters begin at the start of the node, so a
/// node that was started again counts from zero.
fn next_counters(before: Option<&NodeCounters>, node: &NodeStatus) -> NodeCounters {
    let (folded, sent) = (node.bytes.folded, node.bytes.sent);
    let same = before.filter(|before| node.up_seconds >= before.up_seconds);
    let passed = node.up_seconds - same.map_or(0.0, |counters| counters.up_seconds);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed;
    let rates = before.and_then(|before| match passed > 0.0 {
        true => Some(Rates {
            folded: rate(folded, same.map_or(0, |counters| counters.folded)),
            sent: rate(sent, same.map_or(0, |counters| counters.sent)),
        }),
        // The entry node gave the same answer twice.
        false => before.rates,
    });
    NodeCounters { up_seconds: node.up_seconds, folded, sent, rates }
}

#[cfg(test)]
mod tests {
    use gristmill_wire::{BytesStatus, NodeLoad};

    use super::*;

    fn status(nodes: &[(u32, f64, u64)]) -> ClusterStatus {
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
        changes.update(&status(&[(0, 10.0, 1000), (1, 50.0, 0)]));
        assert_eq!((changes.node_rates(0), changes.total_rates(), changes.curve(9).count()), (None, None, 0));
        changes.update(&status(&[(0, 12.0, 3000), (1, 51.0, 10)]));
        assert_eq!(changes.node_rates(0), Some(Rates { folded: 1000.0, sent: 500.0 }));
        assert_eq!(changes.total_rates(), Some(Rates { folded: 1010.0, sent: 505.0 }));
        assert_eq!(changes.total_bytes(), (3010, 1505));
        // The same answer again.
        changes.update(&status(&[(0, 12.0, 3000), (1, 51.0, 10)]));
        assert_eq!(changes.node_rates(0), Some(Rates { folded: 1000.0, sent: 500.0 }));
    }

    #[test]
    fn a_node_that_was_started_again_counts_from_its_start() {
        let mut changes = Changes::default();
        changes.update(&status(&[(0, 100.0, 1 << 40)]));
        // The node does not answer: its bytes are remembered, and its rates are zero.
        changes.update(&status(&[(0, 0.0, 0)]));
        assert_eq!((changes.node_rates(0), changes.total_bytes().0), (Some(Rates::default()), 1 << 40));
        changes.update(&status(&[(0, 2.0, 600)]));
        assert_eq!(
            (changes.node_rates(0), changes.total_bytes().0),
            (Some(Rates { folded: 300.0, sent: 150.0 }), 600)
        );
    }

    #[test]
    fn curves_are_bounded() {
        let mut changes = Changes::default();
        for second in 1..2 * MAX_REMEMBERED as u64 {
            changes.update(&status(&[(0, second as f64, second * 10)]));
        }
        assert_eq!(changes.curve.len(), MAX_REMEMBERED);
        assert_eq!(changes.curve(7).count(), 7);
    }
}
