//! The status of a node, `GET /status` with a grant, and of all nodes, `GET /cluster`.

use serde::{Deserialize, Serialize};

use crate::{MAX_FILE_TARGETS, NodeLoad, WireError};

/// Longest answer of one node, in bytes.
pub const MAX_STATUS_BYTES: usize = 128 << 10;

/// Longest answer of the entry node about all nodes, in bytes.
pub const MAX_CLUSTER_BYTES: usize = 32 << 20;

/// Most active requests that a node lists, the oldest first.
pub const MAX_LISTED: usize = 64;

/// Most active requests that are listed for all nodes together. [`LEAST_LISTED`] for each node are always listed.
pub const MAX_ALL_LISTED: usize = 4096;

/// Active requests of a node that are listed for any number of nodes.
pub const LEAST_LISTED: usize = 4;

/// Most requests that were handed back and are listed, the latest ones.
pub const MAX_HANDED_BACK: usize = 16;

/// Principal of the requests of other users, for everybody but administrators.
pub const ANOTHER_USER: &str = "another user";

/// Most kernels that a node lists.
pub const MAX_KERNELS_LISTED: usize = 256;

/// The status of a node: its work now and since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Number of its target.
    pub target: u32,
    /// The address on which it listens.
    pub address: String,
    /// Its load, without the numbers of a kernel. `None`: it did not answer.
    #[serde(default)]
    pub load: Option<NodeLoad>,
    /// The reason why there is no load.
    #[serde(default)]
    pub error: Option<String>,
    /// Seconds since it last joined at the entry node. `None`: it has not joined since the entry node started, or the
    /// time is unknown.
    #[serde(default)]
    pub silent_seconds: Option<f64>,
    /// Seconds since it started. All counts begin then.
    #[serde(default)]
    pub up_seconds: f64,
    /// Kernels that were requested, by name.
    #[serde(default)]
    pub kernels: Vec<KernelStatus>,
    /// Active requests in the order of their arrival, at most [`MAX_LISTED`]. [`NodeLoad::active`] counts all.
    #[serde(default)]
    pub requests: Vec<RequestStatus>,
    /// The last requests that were handed back, the latest first, at most [`MAX_HANDED_BACK`].
    #[serde(default)]
    pub handed_back: Vec<HandedBack>,
    /// Bytes that were folded here and bytes that were sent.
    #[serde(default)]
    pub bytes: BytesStatus,
}

/// One kernel on one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelStatus {
    /// Its name.
    pub kernel: String,
    /// Bytes per second that one processor folds with it.
    pub rate: f64,
    /// Whether the rate was measured. If not, it is the initial estimate.
    pub measured: bool,
    /// Number of active requests that ended here.
    pub ended: u64,
    /// Number of active requests that were handed back.
    pub handed_back: u64,
    /// Bytes folded, including those of running requests.
    pub folded: u64,
}

/// The state of an active request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// It waits for a turn.
    #[default]
    Waiting,
    /// It is being folded.
    Running,
    /// It is stopping, and goes back to the client.
    Leaving,
}

/// An active request on one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// Number of the request, unique on this node since it started.
    pub number: u64,
    /// The kernel.
    pub kernel: String,
    /// Its state.
    pub state: RequestState,
    /// Its bytes on this node.
    pub bytes: u64,
    /// Approximate number of these bytes that were folded in this pass.
    pub folded: u64,
    /// The principal of its grant, or [`ANOTHER_USER`].
    pub principal: String,
    /// Name of the process that would continue it; `None` if the client gave no name.
    #[serde(default)]
    pub asker: Option<String>,
    /// Seconds since it arrived.
    pub age_seconds: f64,
}

/// An active request that was handed back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandedBack {
    /// Its number among the [requests](NodeStatus::requests).
    pub number: u64,
    /// The kernel.
    pub kernel: String,
    /// The principal of its grant, or [`ANOTHER_USER`].
    pub principal: String,
    /// Name of the process that continues it.
    #[serde(default)]
    pub asker: Option<String>,
    /// Approximate number of bytes of the current pass that the client folds; 0 if it was handed back between two
    /// passes.
    pub bytes: u64,
    /// The reason.
    pub why: String,
    /// Seconds since it was handed back.
    pub ago_seconds: f64,
}

/// Bytes of a node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesStatus {
    /// Bytes that active requests read on this node. They were not moved. Bytes of neighbours, at the ends of records,
    /// count for the node that folds them. Each pass counts.
    pub folded: u64,
    /// Bytes sent to clients and other nodes: bodies of plain reads (of objects, extents and files) and the messages of
    /// Flight that answer active requests. Written bytes, values that members of a group exchange, management and HTTP
    /// headers are not counted. A file that is read from the entry node by its path crosses the network twice and
    /// counts twice: on its storage node and on the entry node.
    pub sent: u64,
}

/// The status of all nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The time of the request, in seconds since 1970, on the clock of the entry node.
    pub at: f64,
    /// The nodes, by number.
    pub nodes: Vec<NodeStatus>,
}

impl NodeStatus {
    /// Decodes the answer of a node. Lists beyond their bounds are cut.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_STATUS_BYTES`], and
    /// [`WireError::Malformed`] if they are not such JSON.
    pub fn decode(bytes: &[u8]) -> Result<NodeStatus, WireError> {
        const WHAT: &str = "status of a node";
        if bytes.len() > MAX_STATUS_BYTES {
            return Err(WireError::TooLong { what: WHAT, bytes: bytes.len(), max: MAX_STATUS_BYTES });
        }
        let status: NodeStatus = serde_json::from_slice(bytes)
            .map_err(|error| WireError::Malformed { what: WHAT, why: error.to_string() })?;
        Ok(status.limit_lists(MAX_LISTED))
    }

    /// The status without the names of other users and of their processes.
    pub fn seen_by(mut self, principal: &str) -> NodeStatus {
        let hide = |name: &mut String, asker: &mut Option<String>| {
            if name != principal {
                ANOTHER_USER.clone_into(name);
                *asker = None;
            }
        };
        self.requests.iter_mut().for_each(|one| hide(&mut one.principal, &mut one.asker));
        self.handed_back.iter_mut().for_each(|one| hide(&mut one.principal, &mut one.asker));
        self
    }

    /// Cuts the lists to at most `most` requests.
    pub fn limit_lists(mut self, most: usize) -> NodeStatus {
        self.requests.truncate(most);
        self.handed_back.truncate(MAX_HANDED_BACK.min(most));
        self.kernels.truncate(MAX_KERNELS_LISTED);
        self
    }
}

impl ClusterStatus {
    /// Number of requests that each of this number of nodes may list.
    pub fn listed_per_node(nodes: usize) -> usize {
        (MAX_ALL_LISTED / nodes.max(1)).clamp(LEAST_LISTED, MAX_LISTED)
    }

    /// The status without the names of other users and of their processes.
    pub fn seen_by(mut self, principal: &str) -> ClusterStatus {
        self.nodes = self.nodes.into_iter().map(|node| node.seen_by(principal)).collect();
        self
    }

    /// Decodes the answer of the entry node.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_CLUSTER_BYTES`], and
    /// [`WireError::Malformed`] if they are not such JSON or have more than [`MAX_FILE_TARGETS`] nodes.
    pub fn decode(bytes: &[u8]) -> Result<ClusterStatus, WireError> {
        const WHAT: &str = "status of a cluster";
        if bytes.len() > MAX_CLUSTER_BYTES {
            return Err(WireError::TooLong { what: WHAT, bytes: bytes.len(), max: MAX_CLUSTER_BYTES });
        }
        let malformed = |why: String| WireError::Malformed { what: WHAT, why };
        let status: ClusterStatus =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if status.nodes.len() > MAX_FILE_TARGETS {
            return Err(malformed(format!("{} nodes are too many", status.nodes.len())));
        }
        Ok(status)
    }
}
