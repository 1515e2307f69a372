//! Where each part of a request had better run, from what its nodes say of their load.
//!
//! Whoever asks decides once, before it begins; nodes may think again while it runs.

mod asking;
mod decide;
mod machine;
mod near;
mod said;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gristmill_kernel::Spec;
use gristmill_layout::Layout;
use gristmill_runtime::RunError;
use gristmill_wire::{FileMap, MAX_LOAD_BYTES, NodeLoad};

pub use asking::Asking;
pub(crate) use machine::Machine;
pub(crate) use near::NearLoads;

use crate::bytes::node_name;
use crate::error::unavailable;
use crate::{Files, Peers, Plan, shards};

/// Longest time that somebody waits for what nodes say.
const LOAD_WAIT: Duration = Duration::from_secs(1);

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

impl Decision {
    /// Targets that whoever asks folds.
    pub fn here(&self) -> Vec<u32> {
        self.nodes.iter().filter(|node| node.here).flat_map(|node| node.targets.iter().copied()).collect()
    }

    /// Whether whoever asks folds all of it.
    pub fn all_here(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.here)
    }
}

impl Peers {
    /// What the nodes of a file say of their load; nothing of those that do not answer in time.
    fn loads(
        &self,
        nodes: &[String],
        grant: &Arc<str>,
        kernel: &str,
        here: Option<&str>,
    ) -> Vec<Option<NodeLoad>> {
        let near: Option<Vec<NodeLoad>> =
            nodes.iter().map(|address| self.near.get(address, kernel)).collect();
        if let Some(loads) = near {
            return loads.into_iter().map(Some).collect();
        }
        let asked = nodes.iter().map(|address| async move {
            let load = tokio::time::timeout(LOAD_WAIT, self.load(address, grant, kernel)).await.ok()?.ok()?;
            self.near.learn(address, kernel, &load, here);
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
        let loads = self.loads(&addresses, &grant, kernel, asking.processors.as_deref());
        let parts = nodes.into_iter().zip(loads).map(|((shard, bytes), load)| {
            let number = shard.targets.first().and_then(|target| file.targets.get(*target as usize));
            let node = node_name(number.map_or(0, |target| target.number), &shard.address);
            NodeDecision {
                node,
                targets: shard.targets,
                bytes,
                here: false,
                storage_seconds: None,
                client_seconds: None,
                near: false,
                load,
            }
        });
        let mut parts: Vec<NodeDecision> = parts.collect();
        let nodes = parts.len().max(1) as u64;
        let pulled =
            decide::Pulled { bytes: plan.pulled_bytes / nodes, messages: plan.pull_messages / nodes };
        let seconds = decide::decide(spec, &mut parts, pulled, asking).ok()?;
        Some(Decision { nodes: parts, seconds })
    }
}
