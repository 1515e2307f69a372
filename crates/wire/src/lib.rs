//! What crosses the network between clients and storage nodes: requests, answers, grants. Pure data, no sockets.
//!
//! A client asks the *entry node* for a file and gets a [`FileMap`] (the layout, and where each target is) with a
//! *sealed* [`Grant`]: the same map, the principal, what it may do and until when, signed with the key of the
//! cluster. It then asks the storage nodes themselves, which check the seal and need to ask nobody: where
//! neighbours are, which objects may be touched and at which version comes from the grant and never from the
//! client. A [`Pass`] in a header says who asks before the rest of a request is read. A replayed grant gives the same answer or, once the file was replaced, an error.
//!
//! - [`RunRequest`]: a kernel over a file by path, for any Flight client; answered with typed record batches.
//! - [`FoldRequest`]: one pass over the records of one node's targets (and of further nodes that it asks in turn);
//!   answered with [`Frame`]s.
//! - [`action`]: what manages files, as JSON.
//! - [`NodeLoad`] and [`NodeStatus`]: what a node has to do, for those who decide and for those who watch.
//! - [`ScrubStep`]: what a node found that compared bytes with their checksums.
//! - [`FsckStep`] and [`FsckFound`]: what a node has, beside what the namespace says of it.
//! - [`ErrorBody`]: how errors travel.
//!
//! ```
//! use gristmill_wire::{FileMap, Grant, Key, Rights, TargetPlace};
//!
//! let key = Key::random()?;
//! let target = TargetPlace { number: 0, address: "127.0.0.1:7441".into(), version: 3 };
//! let file = FileMap {
//!     id: "0".repeat(32), path: "/data.f64".into(), length: 800, unit: 1 << 20, first: 0,
//!     record: None, segments: false, targets: vec![target],
//! };
//! let grant = Grant { principal: "alice".into(), rights: Rights::Read, file, expires: 2_000_000_000 };
//! let sealed = key.seal(&grant)?;
//! assert_eq!(key.open(&sealed, 1_900_000_000)?, grant);
//! assert!(key.open(&sealed, 2_000_000_001).is_err()); // run out
//! assert!(Key::random()?.open(&sealed, 0).is_err()); // sealed by another cluster
//! # Ok::<(), gristmill_wire::WireError>(())
//! ```

pub mod action;
mod array;
mod bounded;
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
mod status;

pub use array::{ArraySpec, grid};
pub use error::{ErrorBody, MAX_RETRY_AFTER, WireError};
pub use fold::{Asker, FoldRequest, MAX_ASKER_NAME, NodeShard, Together};
pub use frame::{Frame, MAX_FRAME_BYTES, TallyFrame};
pub use fsck::{
    FIRST_ID, FsckFound, FsckStep, LostObject, MAX_FSCK_BYTES, MAX_FSCK_STEP_BYTES, MAX_OBJECT_PAGE_BYTES,
    MAX_OBJECTS_LISTED, ObjectEntry, ObjectPage, ObjectState, UnnamedObject,
};
pub use grant::{Grant, Key, Rights, pass_of};
pub use input::InputSpec;
pub use limits::*;
pub use load::{MAX_LOAD_BYTES, NodeLoad, Processors, names_processors};
pub use map::{FileMap, OBJECT_PREFIX, TargetPlace};
pub use param::Param;
pub use pass::{MAX_PASS_BYTES, PASS_HEADER, Pass};
pub use run::{Place, RunRequest};
pub use scrub::{MAX_SCRUB_BYTES, ScrubStep};
pub use status::{
    BytesStatus, ClusterStatus, HandedBack, KernelStatus, LEAST_LISTED, MAX_ALL_LISTED, MAX_CLUSTER_BYTES,
    MAX_HANDED_BACK, MAX_KERNELS_LISTED, MAX_LISTED, MAX_STATUS_BYTES, NodeStatus, RequestState,
    RequestStatus,
};
