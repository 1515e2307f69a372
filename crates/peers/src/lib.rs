//! Asking storage nodes: management, bytes of objects, and folds over shards.
//!
//! [`Peers`] holds connections; clients and nodes use it alike. [`StorageCrew`] has the passes of a request folded
//! where its file lies: it asks at most [`FAN_IN`](gristmill_wire::FAN_IN) nodes and has these ask the others, so
//! that however many nodes there are no link sees more senders. [`RemotePart`] is what one target holds of a file,
//! read over the network, for folds that run elsewhere and for the ends of records that reach over to a neighbour.
//!
//! Everything here that waits has a bound: connecting, the first answer, and the time between two signs of life of
//! a node at work ([`Peers`] says which). An error names the node and what to do.
//!
//! Dividing nodes into groups needs no network:
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
//! assert_eq!((first.targets[0], rest.len()), (0, 2)); // the node asked first passes on to two more
//! ```

mod answers;
mod array;
mod bytes;
mod client_folds;
mod crew;
mod error;
mod failed_request;
mod files;
mod finish;
mod flight;
mod fold;
mod fsck;
mod layouts;
mod member;
mod object;
mod peers;
mod placement;
mod plan;
mod put;
mod read_ahead;
mod received;
mod retry_budget;
mod run;
mod scrub;
mod short_requests;
mod tree;
mod whole;

pub use array::{ArrayWork, TakeRoom};
pub use bytes::{RemotePart, file_parts};
pub use crew::StorageCrew;
pub use error::{from_status, to_status, unavailable};
pub use failed_request::FailedRequest;
pub use files::Files;
pub use flight::{FRAME_COLUMN, frame_batch, frame_schema};
pub use member::{MemberPlace, MemberReply, of_reason, reason};
pub use object::{ObjectStream, TRIES_WITHOUT_PROGRESS};
pub use peers::{Peers, PeersOptions};
pub use placement::{ClientCapacity, Decision, ExtraWork, MIN_DECIDED_BYTES, NodeDecision};
pub use plan::Plan;
pub use put::Written;
pub use received::{Receipts, Received};
pub use retry_budget::{MAX_BUSY_RETRIES, RETRY_WAIT, RetryBudget};
pub use run::{AT_CLIENT, ON_STORAGE, Question};
pub use tree::{groups, shards};
pub use whole::whole_file;
