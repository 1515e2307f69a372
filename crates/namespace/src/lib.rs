//! The table of the files of a cluster, with their storage targets and permissions.
//!
//! A cluster has one entry node that keeps this table; the bytes lie on storage nodes. A path has a layout (stripe
//! unit, targets, versions of the objects there), an owner and a mode. A new file appears, or replaces an old one, in a
//! single durable step. So a reader sees the old file or the new one:
//!
//! 1. [`begin`](Namespace::begin) makes the *attempt* durable and returns the [`FileId`] that names the objects.
//! 2. The objects are written on the targets, while [`renew`](Namespace::renew) extends the lease.
//! 3. [`commit`](Namespace::commit) puts the file at its path. A file that was there becomes *garbage*.
//!
//! Removed or replaced files, abandoned attempts and attempts with an expired lease are
//! [`garbage`](Namespace::garbage). They are garbage until their objects are removed and
//! [`forget_collected`](Namespace::forget_collected) is called. So the namespace knows all objects, also after a crash.
//!
//! A whole tree of files that lies outside the cluster can be [attached](Namespace::attach) under a path. The namespace knows
//! only its root; nobody changes its files.
//!
//! Directories exist while they contain a file or a tree. They have no owner and no mode. The owner bits of the [`Mode`] of a
//! file hold for its owner, and the other bits for all other users. `root`, `uid:0` and [`NamespaceOptions::admin`] may
//! do everything.
//!
//! ```
//! use std::time::Duration;
//! use gristmill_namespace::{
//!     Access, DirPath, FilePath, Namespace, NamespaceError, NewFile, Principal, TargetId,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let namespace = Namespace::open(&dir.path().join("entry"))?;
//! let target: TargetId = "00112233445566778899aabbccddeeff".parse()?;
//! let number = namespace.join(&target, "10.0.0.7:7070", true)?;
//!
//! let (alice, bob): (Principal, Principal) = ("alice".parse()?, "bob".parse()?);
//! let path = FilePath::parse("/ocean/temperature.bin")?;
//! let file = NewFile {
//!     path: path.clone(),
//!     unit: 65_536,
//!     first: 0,
//!     targets: vec![number],
//!     record: Some(80),
//!     segments: false,
//!     mode: None,
//! };
//! let id = namespace.begin(&alice, &file, Duration::from_secs(60))?;
//! // ... write the object `id` on the target; at the end it has version 7 ...
//! namespace.commit(&alice, &id, 8_000, &[7])?;
//!
//! let found = namespace.lookup(&bob, &path, Access::Read)?;
//! assert_eq!((found.length, found.versions), (8_000, vec![7]));
//! assert!(matches!(namespace.remove(&bob, &path), Err(NamespaceError::Denied { .. })));
//!
//! let names = namespace.list(&DirPath::parse("/")?, None, 100)?;
//! assert_eq!(names[0].name(), "ocean");
//! # Ok(())
//! # }
//! ```
//!
//! Everything is synchronous and safe to share between threads. A change that returned `Ok` is durable. Changes by many
//! threads at once share one commit. Every size has a bound: see the constants.

mod access;
mod attached;
mod clock;
mod error;
mod file;
mod garbage;
mod ids;
mod layout;
mod listing;
mod lock;
mod mode;
mod named_puts;
mod namespace;
mod owner;
mod path;
mod principal;
mod puts;
mod readers;
mod rows;
mod schema;
mod targets;
mod tree;
mod writer;

pub use access::Access;
pub use attached::{AttachedTree, MAX_SOURCE_BYTES, MAX_TREES};
pub use error::{NamespaceError, PathConflict, Result};
pub use file::{Attempt, CommitOutcome, FileEntry, Garbage, ListEntry, NewFile, TargetRecord};
pub use garbage::{MAX_COLLECTED, MAX_GARBAGE_PAGE};
pub use ids::{FileId, TargetId};
pub use layout::MAX_FILE_BYTES;
pub use listing::MAX_LIST_PAGE;
pub use mode::{DEFAULT_MODE, Mode};
pub use named_puts::{MAX_NAMED_PAGE, NamedPut};
pub use namespace::{Namespace, NamespaceOptions};
pub use path::{DirPath, FilePath, MAX_COMPONENT_BYTES, MAX_PATH_BYTES, PathFault};
pub use principal::{MAX_PRINCIPAL_BYTES, Principal};
pub use puts::{MAX_LEASE, MAX_UNFINISHED};
pub use readers::READERS;
pub use targets::{MAX_ADDRESS_BYTES, MAX_CLUSTER_TARGETS};
pub use tree::{Amount, MAX_CHANGED_AT_ONCE, MoveOutcome};
pub use writer::{MAX_GROUP, MAX_QUEUED, PendingChange};
