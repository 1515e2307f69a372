//! Messages between clients and storage nodes: requests, answers, grants. Pure data, no sockets.
//!
//! A client asks the *entry node* for a file. It gets a [`FileMap`] (the layout, and the location of each target) and a
//! *sealed* [`Grant`]: the same map, the principal, its rights and the time limit, signed with the key of the cluster.
//! The client then asks the storage nodes. Each checks the seal alone. The addresses of neighbours, the objects that
//! may be used and their versions come from the grant, never from the client. A [`Pass`] in a header names the
//! principal before the rest of a request is read. A replayed grant gives the same answer or, after the file was
//! replaced, an error.
//!
//! - [`RunRequest`]: a kernel over a file by path, for any Flight client; the answer is typed record batches.
//! - [`FoldRequest`]: one pass over the records of one node's targets, and of further nodes that this node asks; the
//!   answer is [`Frame`]s.
//! - [`AttachedFile`]: a file that lies in storage outside the cluster, and that nodes read there.
//! - [`action`]: management of files, as JSON.
//! - [`NodeLoad`] and [`NodeStatus`]: the work of a node, for placement and for display.
//! - [`ScrubStep`]: the result of a comparison of bytes with their checksums.
//! - [`FsckStep`] and [`FsckResult`]: the objects of a node, compared with the namespace.
//! - [`ErrorBody`]: an error in a message.
//!
//! ```
//! use gristmill_wire::{FileMap, Grant, Key, Rights, TargetPlace};
//!
//! let key = Key::random()?;
//! let target = TargetPlace { number: 0, address: "127.0.0.1:7441".into(), version: 3 };
//! let file = FileMap {
//!     id: "0".repeat(32), path: "/data.f64".into(), length: 800, unit: 1 << 20, first: 0,
//!     record: None, segments: false, attached: None, targets: vec![target],
//! };
//! let grant = Grant { principal: "alice".into(), rights: Rights::Read, file, expires: 2_000_000_000 };
//! let sealed = key.seal(&grant)?;
//! assert_eq!(key.open(&sealed, 1_900_000_000)?, grant);
//! assert!(key.open(&sealed, 2_000_000_001).is_err()); // expired
//! assert!(Key::random()?.open(&sealed, 0).is_err()); // sealed by another cluster
//! # Ok::<(), gristmill_wire::WireError>(())
//! ```

pub mod action;
mod array;
mod attached;
mod bounded;
mod cycle_text;
mod error;
mod fold;
mod frame;
mod fsck;
mod grant;
mod input;
mod limits;
mod load;
mod map;
mod mode;
mod param;
mod pass;
mod rows;
mod run;
mod scrub;
mod source_access;
mod status;

pub use array::{ArraySpec, grid};
pub use attached::{AttachedFile, Component, FileReader, MAX_READER_GROUPS, MAX_TREE_URL_BYTES, TreeSource};
pub use cycle_text::MAX_CYCLE_BYTES;
pub use error::{ErrorBody, MAX_RETRY_AFTER, WireError};
pub use fold::{Asker, FoldRequest, GroupSpec, MAX_ASKER_NAME, NodeShard};
pub use frame::{Frame, MAX_FRAME_BYTES, TallyFrame};
pub use fsck::{
    FIRST_ID, FsckResult, FsckStep, LostObject, MAX_FSCK_BYTES, MAX_FSCK_STEP_BYTES, MAX_OBJECT_PAGE_BYTES,
    MAX_OBJECTS_LISTED, ObjectEntry, ObjectPage, ObjectState, UnnamedObject,
};
pub use grant::{Grant, Key, Rights, pass_of};
pub use input::InputSpec;
pub use limits::*;
pub use load::{MAX_LOAD_BYTES, NodeLoad, Processors, is_processors_name};
pub use map::{FileMap, OBJECT_PREFIX, TargetPlace};
pub use param::Param;
pub use pass::{MAX_PASS_BYTES, PASS_HEADER, Pass};
pub use run::{FoldPlace, RunRequest};
pub use scrub::{MAX_SCRUB_BYTES, ScrubStep};
pub use source_access::{MAX_ACCESS_BYTES, MAX_SEALED_ACCESS_BYTES, SOURCE_HEADER, SourceAccess};
pub use status::{
    ANOTHER_USER, BytesStatus, ClusterStatus, HandedBack, KernelStatus, LEAST_LISTED, MAX_ALL_LISTED,
    MAX_CLUSTER_BYTES, MAX_HANDED_BACK, MAX_KERNELS_LISTED, MAX_LISTED, MAX_STATUS_BYTES, NodeStatus,
    RequestState, RequestStatus,
};
