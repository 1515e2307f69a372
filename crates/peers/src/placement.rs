//! The placement of each part of a request, from the load that its nodes report.
//!
//! The client decides once, before the request begins. Nodes may revise the decision while it runs.

mod client_capacity;
mod decide;
mod extra_work;
mod machine;
mod recent_loads;
mod reported_load;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gristmill_kernel::Spec;
use gristmill_layout::Layout;
use gristmill_runtime::RunError;
use gristmill_wire::{FileMap, MAX_LOAD_BYTES, NodeLoad};

pub use client_capacity::ClientCapacity;
pub use extra_work::ExtraWork;
pub(crate) use machine::Machine;
pub(crate) use recent_loads::RecentLoads;

use crate::bytes::node_name;
use crate::error::unavailable;
use crate::{Files, Peers, Plan, shards};

/// Longest time that a client waits for the load of nodes.
const LOAD_WAIT: Duration = Duration::from_secs(1);

/// Least ratio of the time at the client to the time on storage at which remembered loads are enough.
const CLEAR_RATIO: f64 = 2.0;

/// Expected seconds from which a request always asks its nodes for their load.
const MIN_ASKING_SECONDS: f64 = 1.0;

/// Share of a node's processors from which its folds are slow if other work uses it. Usually folds get what other work
/// leaves.
const SHORT_OF_PROCESSORS: f64 = 0.75;

/// Fewest bytes for which a placement is decided. Smaller requests take less time than the decision.
pub const MIN_DECIDED_BYTES: u64 = 1 << 20;

/// The decision for one node, with the expected times.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDecision {
    /// The node, as messages name it.
    pub node: String,
    /// Its targets, as places in the file's layout.
    pub targets: Vec<u32>,
    /// Bytes of the request on these targets.
    pub bytes: u64,
    /// Whether the client folds them.
    pub at_client: bool,
    /// Expected seconds on the node. `client_seconds` is for the client.
    pub storage_seconds: Option<f64>,
    /// See [`storage_seconds`](NodeDecision::storage_seconds).
    pub client_seconds: Option<f64>,
    /// Whether the node runs on the processors of this process.
    pub shares_processors: bool,
    /// Share of its processors that other work than folds used in the last seconds, 0 to 1, if it reported that. Folds of
    /// other nodes of the file on the same processors are not counted.
    pub others: Option<f64>,
    /// The load that the node reported. `None` if it did not answer.
    pub load: Option<NodeLoad>,
}

/// The placement of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// One entry for each node that has a part.
    pub nodes: Vec<NodeDecision>,
    /// Expected seconds of the request.
    pub seconds: f64,
}

impl NodeDecision {
    /// The share of its processors that other work than folds used, if it is so large that folds are slow there.
    pub fn shortage(&self) -> Option<f64> {
        self.others.filter(|others| *others >= SHORT_OF_PROCESSORS)
    }

    /// Whether the part stays for any length of its node's queue. The node runs on the processors of this process without
    /// a cap, and this process would not be faster on them.
    fn stays_anyway(&self) -> bool {
        let processors = self.load.as_ref().and_then(|load| load.processors.as_ref());
        self.shares_processors && processors.is_some_and(|all| all.most >= all.cores)
    }
}

impl Decision {
    /// Targets that the client folds.
    pub fn client_targets(&self) -> Vec<u32> {
        self.nodes
            .iter()
            .filter(|node| node.at_client)
            .flat_map(|node| node.targets.iter().copied())
            .collect()
    }

    /// Whether the client folds all parts.
    pub fn all_at_client(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.at_client)
    }

    /// Whether all parts stay on their nodes, also if the nodes have somewhat more work than they reported. If that is
    /// wrong, a node with much more work hands its part back. A clear short request need not ask for loads each time.
    fn is_clear(&self) -> bool {
        let clear = |node: &NodeDecision| match (node.storage_seconds, node.client_seconds) {
            _ if node.at_client => false,
            _ if node.stays_anyway() => true,
            (Some(storage), Some(client)) => {
                self.seconds < MIN_ASKING_SECONDS && client >= CLEAR_RATIO * storage
            }
            _ => false,
        };
        self.nodes.iter().all(clear)
    }
}

impl Peers {
    /// The loads of the nodes of a file. `None` for a node that does not answer in time.
    fn loads(&self, nodes: &[String], grant: &Arc<str>, kernel: &str) -> Vec<Option<NodeLoad>> {
        let asked = nodes.iter().map(|address| async move {
            let load = tokio::time::timeout(LOAD_WAIT, self.load(address, grant, kernel)).await.ok()?.ok()?;
            self.loads.learn(address, kernel, &load);
            Some(load)
        });
        self.wait(async { join_all(asked).await })
    }

    async fn load(&self, address: &str, grant: &str, kernel: &str) -> Result<NodeLoad, RunError> {
        let text = self.get(address, &format!("/load/{kernel}"), Some(grant), MAX_LOAD_BYTES).await?;
        serde_json::from_slice(&text).map_err(|error| unavailable(address, error))
    }

    /// Asks the nodes of a file for their load with `kernel`, and places the parts of a planned request that may run
    /// anywhere. `capacity` is the capacity of this process. `None` if there is nothing to decide.
    pub fn decide(
        &self,
        (kernel, spec): (&str, &Spec),
        plan: &Plan,
        files: &Files,
        layout: &Layout,
        capacity: &ClientCapacity,
    ) -> Option<Decision> {
        if plan.client_bytes < MIN_DECIDED_BYTES || !spec.can_save {
            return None;
        }
        let (file, grant): (&FileMap, Arc<str>) = (files.map(), files.grant());
        let mut nodes = Vec::new();
        for shard in shards(file) {
            let bytes = shard.targets.iter().map(|target| plan.bytes_on_target(layout, *target)).sum::<u64>();
            if bytes > 0 {
                nodes.push((shard, bytes));
            }
        }
        let addresses: Vec<String> = nodes.iter().map(|(shard, _)| shard.address.clone()).collect();
        let count = nodes.len().max(1) as u64;
        let extra_work = plan.extra_work.shared_by(count);
        let decided = |loads: Vec<Option<NodeLoad>>| {
            let parts = nodes.iter().zip(loads).map(|((shard, bytes), load)| {
                let number = shard.targets.first().and_then(|target| file.targets.get(*target as usize));
                let node = node_name(number.map_or(0, |target| target.number), &shard.address);
                NodeDecision {
                    node,
                    targets: shard.targets.clone(),
                    bytes: *bytes,
                    at_client: false,
                    storage_seconds: None,
                    client_seconds: None,
                    shares_processors: false,
                    others: None,
                    load,
                }
            });
            let mut parts: Vec<NodeDecision> = parts.collect();
            let seconds = decide::decide(spec, &mut parts, extra_work, capacity).ok()?;
            Some(Decision { nodes: parts, seconds })
        };
        let remembered = self.loads.get(&addresses, kernel).and_then(&decided).filter(Decision::is_clear);
        remembered.or_else(|| decided(self.loads(&addresses, &grant, kernel)))
    }
}

#[cfg(test)]
mod tests {
    use gristmill_wire::Processors;

    use super::reported_load::UNKNOWN;
    use super::*;

    fn decision(at_client: bool, shares_processors: bool, most: f64, storage: f64, client: f64) -> Decision {
        let processors = Some(Processors { name: "0".repeat(16), cores: 2.0, most, used: 0.0 });
        let load = Some(NodeLoad { processors, ..UNKNOWN });
        let (storage_seconds, client_seconds) = (Some(storage), Some(client));
        let node = NodeDecision {
            node: "0".into(),
            targets: vec![0],
            bytes: 1,
            at_client,
            storage_seconds,
            client_seconds,
            shares_processors,
            others: None,
            load,
        };
        Decision { nodes: vec![node], seconds: storage }
    }

    #[test]
    fn only_short_requests_that_clearly_stay_are_decided_without_asking() {
        for (decision, clear) in [
            (decision(false, false, 2.0, 0.1, 0.2), true),
            (decision(false, false, 2.0, 0.1, 0.19), false),
            (decision(false, false, 2.0, 1.1, 9.0), false),
            (decision(true, false, 2.0, 0.1, 0.01), false),
            // The node runs on the processors of the client. The part stays for any time, unless the node may not use
            // all of them.
            (decision(false, true, 2.0, 5.0, 5.0), true),
            (decision(false, true, 0.5, 5.0, 5.0), false),
        ] {
            assert_eq!(decision.is_clear(), clear, "{decision:?}");
        }
    }
}
