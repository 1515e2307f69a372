//! How the nodes of a cluster are.

use gristmill_wire::NodeStatus;
use gristmill_wire::action::Node;

use crate::{ClientError, Cluster};

/// How a storage node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It answers.
    Up,
    /// It does not.
    Down {
        /// When it last made itself known, in seconds since 1970. Nodes do every five seconds.
        since: u64,
        /// Why it gave no answer.
        why: String,
    },
    /// It does not answer, and did not make itself known since the entry node was started.
    NeverSeen {
        /// Why it gave no answer.
        why: String,
    },
}

impl NodeState {
    /// What the entry node says of a node at `at`, in seconds since 1970.
    fn of(said: Option<&NodeStatus>, at: f64) -> NodeState {
        let Some(said) = said else {
            return NodeState::NeverSeen { why: "the entry node says nothing of it".into() };
        };
        if said.load.is_some() {
            return NodeState::Up;
        }
        let why = said.error.clone().unwrap_or_else(|| "it gave no answer".into());
        match said.silent_seconds {
            Some(silent) => NodeState::Down { since: (at - silent).max(0.0) as u64, why },
            None => NodeState::NeverSeen { why },
        }
    }
}

impl Cluster {
    /// The storage nodes, each asked by the entry node just now.
    ///
    /// # Errors
    /// The entry node does not answer.
    pub fn node_states(&self) -> Result<Vec<(Node, NodeState)>, ClientError> {
        let nodes = self.nodes()?;
        let said = self.status()?;
        let of = |node: &Node| said.nodes.iter().find(|one| one.target == node.number);
        Ok(nodes.into_iter().map(|node| (node.clone(), NodeState::of(of(&node), said.at))).collect())
    }
}
