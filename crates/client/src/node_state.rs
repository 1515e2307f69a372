//! States of the nodes of a cluster.

use gristmill_wire::NodeStatus;
use gristmill_wire::action::Node;

use crate::{ClientError, Cluster};

/// State of a storage node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node answers.
    Up,
    /// The node does not answer.
    Down {
        /// Time of its last message to the entry node, in seconds since 1970. Nodes send one every five seconds.
        since: u64,
        /// Why it gave no answer.
        why: String,
    },
    /// The node does not answer, and sent no message since the entry node was started.
    NeverSeen {
        /// Why it gave no answer.
        why: String,
    },
}

impl NodeState {
    /// Returns the state of a node from its status at `at`, in seconds since 1970.
    fn from_status(status: Option<&NodeStatus>, at: f64) -> NodeState {
        let Some(status) = status else {
            return NodeState::NeverSeen { why: "the entry node has no status of it".into() };
        };
        if status.load.is_some() {
            return NodeState::Up;
        }
        let why = status.error.clone().unwrap_or_else(|| "it gave no answer".into());
        match status.silent_seconds {
            Some(silent) => NodeState::Down { since: (at - silent).max(0.0) as u64, why },
            None => NodeState::NeverSeen { why },
        }
    }
}

impl Cluster {
    /// Returns the storage nodes with their states, which the entry node asks for now.
    ///
    /// # Errors
    /// Returns an error if the entry node cannot be reached, does not answer or refuses.
    pub fn node_states(&self) -> Result<Vec<(Node, NodeState)>, ClientError> {
        let nodes = self.nodes()?;
        let status = self.status()?;
        let find = |node: &Node| status.nodes.iter().find(|one| one.target == node.number);
        let state = |node: &Node| NodeState::from_status(find(node), status.at);
        Ok(nodes.into_iter().map(|node| (node.clone(), state(&node))).collect())
    }
}
