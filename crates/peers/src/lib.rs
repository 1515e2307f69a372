//! Requests to storage nodes: management, bytes of objects, and folds over shards.
//!
//! [`Peers`] holds connections, for clients and for nodes. [`StorageCrew`] folds the passes of a request on the nodes
//! of its file. It asks at most [`FAN_IN`](gristmill_wire::FAN_IN) nodes, and these ask the others. So no link has more
//! senders than that, for any number of nodes. [`RemotePart`] is the object of one target of a file, read over the
//! network. It serves folds that run elsewhere, and the ends of records that continue on a neighbour.
//!
//! Every wait has a bound: connecting, the first answer, and the time between two signs of life of a node at work
//! ([`PeersOptions`] gives it). An error names the node and what to do.
//!
//! Nodes are divided into groups without a network:
//!
//! ```
//! use gristmill_peers::groups;
//! use gristmill_wire::NodeShard;
//!
//! let nodes: Vec<NodeShard> =
//!     (0..40).map(|n| NodeShard { address: format!("10.0.0.{n}:7440"), targets: vec![n] }).collect();
//! let groups = groups(nodes, 16);
//! assert_eq!(groups.len(), 16);
//! let (first, rest) = &groups[0];
//! assert_eq!((first.targets[0], rest.len()), (0, 2)); // the first node asks two more
//! ```

mod answers;
mod array;
mod bytes;
mod client_folds;
mod crew;
mod error;
mod failed_request;
mod files;
mod flight;
mod fold;
mod fsck;
mod group_passes;
mod layouts;
mod member;
mod object;
mod one_part;
mod peers;
mod placement;
mod plan;
mod put;
mod question;
mod read_ahead;
mod receive_counter;
mod retry_budget;
mod scrub;
mod short_requests;
mod silence;
mod tree;

pub use array::{ArrayWork, ReserveMemory};
pub use bytes::{RemotePart, file_parts};
pub use crew::StorageCrew;
pub use error::{from_status, to_status, unavailable};
pub use failed_request::FailedRequest;
pub use files::Files;
pub use flight::{FRAME_COLUMN, frame_batch, frame_schema};
pub use member::{MemberAddress, MemberReply, decode_reason, encode_reason};
pub use object::{ObjectStream, TRIES_WITHOUT_PROGRESS};
pub use one_part::whole_file;
pub use peers::{Peers, PeersOptions};
pub use placement::{ClientCapacity, Decision, ExtraWork, MIN_DECIDED_BYTES, NodeDecision};
pub use plan::Plan;
pub use put::WrittenFile;
pub use question::{AT_CLIENT, ON_STORAGE, Question};
pub use receive_counter::{ReceiveCounter, ReceiveCounts};
pub use retry_budget::{MAX_BUSY_RETRIES, RETRY_WAIT, RetryBudget};
pub use silence::ACTION_TIME;
pub use tree::{groups, shards};
