//! Where each part of a request had better run, from what its nodes say of their load.
//!
//! Whoever asks decides once, before it begins; nodes may think again while it runs.

mod asking;
mod besides;
mod decide;
mod machine;
mod remembered;
mod said;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gristmill_kernel::Spec;
use gristmill_layout::Layout;
use gristmill_runtime::RunError;
use gristmill_wire::{FileMap, MAX_LOAD_BYTES, NodeLoad};

pub use asking::Asking;
pub use besides::Besides;
pub(crate) use machine::Machine;
pub(crate) use remembered::Remembered;

use crate::bytes::node_name;
use crate::error::unavailable;
use crate::{Files, Peers, Plan, shards};

/// Longest time that somebody waits for what nodes say.
const LOAD_WAIT: Duration = Duration::from_secs(1);

/// A request that stays on its nodes would take at least so many times as long here, if there is no doubt about it.
const CLEAR: f64 = 2.0;

/// A request that is expected to take so long is worth asking about, in seconds.
const WORTH_ASKING: f64 = 1.0;

/// Below so many bytes nobody asks: sooner done than decided.
pub const LEAST_DECIDED: u64 = 1 << 20;

/// What one node is to do, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDecision {
    /// The node, as messages name it.
    pub node: String,
    /// Its targets, as places in the file's layout.
    pub targets: Vec<u32>,
    /// Bytes that these have of what is asked.
    pub bytes: u64,
    /// Whether whoever asks folds them.
    pub here: bool,
    /// Seconds on the node, and here, if everything else is as decided.
    pub storage_seconds: Option<f64>,
    /// See [`storage_seconds`](NodeDecision::storage_seconds).
    pub client_seconds: Option<f64>,
    /// Whether it runs on the processors of this process.
    pub near: bool,
    /// What the node said; nothing if it did not answer.
    pub load: Option<NodeLoad>,
}

/// Where all of it is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// One entry for each node that has some of it.
    pub nodes: Vec<NodeDecision>,
    /// Seconds that it is expected to take.
    pub seconds: f64,
}

impl NodeDecision {
    /// Whether the part stays however long the queue of its node is: it runs on the processors of this process without a cap,
    /// and this process can do nothing sooner on the same processors.
    fn stays_anyway(&self) -> bool {
        let its = self.load.as_ref().and_then(|load| load.processors.as_ref());
        self.near && its.is_some_and(|its| its.most >= its.cores)
    }
}

impl Decision {
    /// Targets that whoever asks folds.
    pub fn here(&self) -> Vec<u32> {
        self.nodes.iter().filter(|node| node.here).flat_map(|node| node.targets.iter().copied()).collect()
    }

    /// Whether whoever asks folds all of it.
    pub fn all_here(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.here)
    }

    /// Whether all of it stays on its nodes, and would if these had somewhat more to do than they said. If that is wrong, a
    /// node that has much more to do hands its part back. A short request that is clear need not ask each time.
    fn is_clear(&self) -> bool {
        let clear = |node: &NodeDecision| match (node.storage_seconds, node.client_seconds) {
            _ if node.here => false,
            _ if node.stays_anyway() => true,
            (Some(storage), Some(client)) => self.seconds < WORTH_ASKING && client >= CLEAR * storage,
            _ => false,
        };
        self.nodes.iter().all(clear)
    }
}

impl Peers {
    /// What the nodes of a file say of their load; nothing of those that do not answer in time.
    fn loads(&self, nodes: &[String], grant: &Arc<str>, kernel: &str) -> Vec<Option<NodeLoad>> {
        let asked = nodes.iter().map(|address| async move {
            let load = tokio::time::timeout(LOAD_WAIT, self.load(address, grant, kernel)).await.ok()?.ok()?;
            self.loads.learn(address, kernel, &load);
            Some(load)
        });
        self.wait(async { join_all(asked).await })
    }

    async fn load(&self, address: &str, grant: &str, kernel: &str) -> Result<NodeLoad, RunError> {
        let text = self.told(address, &format!("/load/{kernel}"), Some(grant), MAX_LOAD_BYTES).await?;
        serde_json::from_slice(&text).map_err(|error| unavailable(address, error))
    }

    /// Asks the nodes of a file how fast they are at `kernel`, and decides where the parts of a planned request run that may run anywhere. `asking` is
    /// what is known of this process. `None` if there is nothing to decide.
    pub fn decide(
        &self,
        (kernel, spec): (&str, &Spec),
        plan: &Plan,
        files: &Files,
        layout: &Layout,
        asking: &Asking,
    ) -> Option<Decision> {
        if plan.client_bytes < LEAST_DECIDED || !spec.can_save {
            return None;
        }
        let (file, grant): (&FileMap, Arc<str>) = (files.map(), files.grant());
        let mut nodes = Vec::new();
        for shard in shards(file) {
            let has = shard.targets.iter().map(|target| plan.on_target(layout, *target)).sum::<u64>();
            if has > 0 {
                nodes.push((shard, has));
            }
        }
        let addresses: Vec<String> = nodes.iter().map(|(shard, _)| shard.address.clone()).collect();
        let count = nodes.len().max(1) as u64;
        let besides = plan.besides.shared_by(count);
        let decided = |loads: Vec<Option<NodeLoad>>| {
            let parts = nodes.iter().zip(loads).map(|((shard, bytes), load)| {
                let number = shard.targets.first().and_then(|target| file.targets.get(*target as usize));
                let node = node_name(number.map_or(0, |target| target.number), &shard.address);
                NodeDecision {
                    node,
                    targets: shard.targets.clone(),
                    bytes: *bytes,
                    here: false,
                    storage_seconds: None,
                    client_seconds: None,
                    near: false,
                    load,
                }
            });
            let mut parts: Vec<NodeDecision> = parts.collect();
            let seconds = decide::decide(spec, &mut parts, besides, asking).ok()?;
            Some(Decision { nodes: parts, seconds })
        };
        let remembered = self.loads.get(&addresses, kernel).and_then(&decided).filter(Decision::is_clear);
        remembered.or_else(|| decided(self.loads(&addresses, &grant, kernel)))
    }
}

#[cfg(test)]
mod tests {
    use gristmill_wire::Processors;

    use super::said::UNKNOWN;
    use super::*;

    fn decision(here: bool, near: bool, most: f64, storage: f64, client: f64) -> Decision {
        let processors = Some(Processors { name: "0".repeat(16), cores: 2.0, most, used: 0.0 });
        let load = Some(NodeLoad { processors, ..UNKNOWN });
        let (storage_seconds, client_seconds) = (Some(storage), Some(client));
        let node = NodeDecision {
            node: "0".into(),
            targets: vec![0],
            bytes: 1,
            here,
            storage_seconds,
            client_seconds,
            near,
            load,
        };
        Decision { nodes: vec![node], seconds: storage }
    }

    #[test]
    fn only_what_stays_beyond_doubt_and_is_short_is_decided_without_asking() {
        for (decision, clear) in [
            (decision(false, false, 2.0, 0.1, 0.2), true),
            (decision(false, false, 2.0, 0.1, 0.19), false),
            (decision(false, false, 2.0, 1.1, 9.0), false),
            (decision(true, false, 2.0, 0.1, 0.01), false),
            // On the processors of whoever asks: whatever it takes, unless the node may not use all of them.
            (decision(false, true, 2.0, 5.0, 5.0), true),
            (decision(false, true, 0.5, 5.0, 5.0), false),
        ] {
            assert_eq!(decision.is_clear(), clear, "{decision:?}");
        }
    }
}
