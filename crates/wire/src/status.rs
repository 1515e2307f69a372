//! What a node says of itself to those who watch: `GET /status` with a grant; of all nodes, `GET /cluster`.

use serde::{Deserialize, Serialize};

use crate::{MAX_FILE_TARGETS, NodeLoad, WireError};

/// Longest answer of one node, in bytes.
pub const MAX_STATUS_BYTES: usize = 128 << 10;

/// Longest answer of the entry node about all of them, in bytes.
pub const MAX_CLUSTER_BYTES: usize = 32 << 20;

/// Active requests that a node lists, the oldest first.
pub const MAX_LISTED: usize = 64;

/// Active requests that are listed of all nodes together, but for [`LEAST_LISTED`] of each.
pub const MAX_ALL_LISTED: usize = 4096;

/// Active requests of a node that are listed however many nodes there are.
pub const LEAST_LISTED: usize = 4;

/// Active requests that were handed back and are listed, the last ones.
pub const MAX_HANDED_BACK: usize = 16;

/// Kernels that a node lists.
pub const MAX_KERNELS_LISTED: usize = 256;

/// A node, what it does, and what it did since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Number of its target.
    pub target: u32,
    /// Where it listens.
    pub address: String,
    /// Its load; the figures of the kernel in it are those of no kernel. `None`: it did not answer.
    #[serde(default)]
    pub load: Option<NodeLoad>,
    /// Why there is no load.
    #[serde(default)]
    pub error: Option<String>,
    /// Seconds since it made itself known to the entry node; `None`: not since that started, or not told.
    #[serde(default)]
    pub silent_seconds: Option<f64>,
    /// Seconds since it started. All that is counted begins then.
    #[serde(default)]
    pub up_seconds: f64,
    /// Kernels that were asked for, by name.
    #[serde(default)]
    pub kernels: Vec<KernelStatus>,
    /// Active requests in the order in which they came, at most [`MAX_LISTED`]; [`NodeLoad::active`] counts all.
    #[serde(default)]
    pub requests: Vec<RequestStatus>,
    /// The last that were handed back, the latest first, at most [`MAX_HANDED_BACK`].
    #[serde(default)]
    pub handed_back: Vec<HandedBack>,
    /// Bytes that stayed and bytes that went.
    #[serde(default)]
    pub bytes: BytesStatus,
}

/// One kernel on one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelStatus {
    /// Its name.
    pub kernel: String,
    /// Bytes a second that one processor folds with it.
    pub rate: f64,
    /// Whether that was measured, or is what is said of every kernel at first.
    pub measured: bool,
    /// Active requests that ended here.
    pub ended: u64,
    /// Active requests that were handed back.
    pub handed_back: u64,
    /// Bytes folded, with those of requests under way.
    pub folded: u64,
}

/// What is done with an active request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// It has no turn yet.
    #[default]
    Waiting,
    /// It is folded.
    Running,
    /// It was told to stop, and goes back to whoever asked.
    Leaving,
}

/// An active request on one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// Tells it from all others of this node since it started.
    pub number: u64,
    /// The kernel.
    pub kernel: String,
    /// What is done with it.
    pub state: RequestState,
    /// Bytes of it that lie here.
    pub bytes: u64,
    /// Of these, what was folded in this pass, about.
    pub folded: u64,
    /// For whom: the principal of its grant.
    pub principal: String,
    /// The process that asked and would go on with it, as it names itself; `None` where it said nothing.
    #[serde(default)]
    pub asker: Option<String>,
    /// Seconds since it came.
    pub age_seconds: f64,
}

/// An active request that was handed back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandedBack {
    /// The number that it had among the [requests](NodeStatus::requests).
    pub number: u64,
    /// The kernel.
    pub kernel: String,
    /// For whom: the principal of its grant.
    pub principal: String,
    /// The process that goes on with it, as it names itself.
    #[serde(default)]
    pub asker: Option<String>,
    /// Bytes of the pass under way that whoever asked goes on with, about; 0 where it went between two passes.
    pub bytes: u64,
    /// Why.
    pub why: String,
    /// Seconds since it went.
    pub ago_seconds: f64,
}

/// Bytes of a node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesStatus {
    /// Read here by active requests, where they lie: not moved. Bytes of neighbours, at the ends of records, count
    /// for the node that folds them; each pass counts.
    pub folded: u64,
    /// Sent to clients and other nodes: bodies of plain reads (of objects, extents and files) and the messages of
    /// Flight that answer active requests. What is written here, values that members of a group exchange, management
    /// and HTTP's own headers are not counted. A file that is read from the entry node by its path crosses the
    /// network twice, and counts twice: where it lies, and there.
    pub sent: u64,
}

/// All nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// When this was asked, in seconds since 1970, on the clock of the entry node.
    pub at: f64,
    /// The nodes, by number.
    pub nodes: Vec<NodeStatus>,
}

impl NodeStatus {
    /// Reads what a node said. Lists that are longer than they may be are cut.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_STATUS_BYTES`], and
    /// [`WireError::Malformed`] if they are no such JSON.
    pub fn decode(bytes: &[u8]) -> Result<NodeStatus, WireError> {
        const WHAT: &str = "status of a node";
        if bytes.len() > MAX_STATUS_BYTES {
            return Err(WireError::TooLong { what: WHAT, bytes: bytes.len(), max: MAX_STATUS_BYTES });
        }
        let status: NodeStatus = serde_json::from_slice(bytes)
            .map_err(|error| WireError::Malformed { what: WHAT, why: error.to_string() })?;
        Ok(status.listing(MAX_LISTED))
    }

    /// The same with at most so many requests listed.
    pub fn listing(mut self, most: usize) -> NodeStatus {
        self.requests.truncate(most);
        self.handed_back.truncate(MAX_HANDED_BACK.min(most));
        self.kernels.truncate(MAX_KERNELS_LISTED);
        self
    }
}

impl ClusterStatus {
    /// Requests that each of so many nodes may list.
    pub fn listed_of_each(nodes: usize) -> usize {
        (MAX_ALL_LISTED / nodes.max(1)).clamp(LEAST_LISTED, MAX_LISTED)
    }

    /// Reads what an entry node said.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_CLUSTER_BYTES`], and
    /// [`WireError::Malformed`] if they are no such JSON or tell of more than [`MAX_FILE_TARGETS`] nodes.
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
