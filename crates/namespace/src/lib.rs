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
//!     Access, DirPath, FilePath, Namespace, NamespaceError, NewFile, Principal, SqliteNamespace, TargetId,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let namespace = SqliteNamespace::open(&dir.path().join("entry"))?;
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
//! Everything is synchronous and safe to share between threads. Every size has a bound: see the constants.
//!
//! [`Namespace`] is the trait. [`SqliteNamespace`] keeps everything in one file of SQLite: a change that returned `Ok` is durable,
//! and changes by many threads at once share one commit. [`MemoryNamespace`] forgets everything when it is dropped. The feature
//! `suite` has the tests that each namespace passes (`namespace_suite!`).

mod access;
mod attached;
mod checks;
mod clock;
mod error;
mod file;
mod ids;
mod limits;
mod memory;
mod mode;
mod namespace;
mod path;
mod pending;
mod principal;
mod sqlite;
#[cfg(feature = "suite")]
pub mod suite;

pub use access::{Access, Rules};
pub use attached::AttachedTree;
pub use error::{NamespaceError, PathConflict, Result};
pub use file::{
    Amount, Attempt, CommitOutcome, FileEntry, Garbage, ListEntry, MoveOutcome, NamedPut, NewFile,
    TargetRecord,
};
pub use ids::{FileId, TargetId};
pub use limits::{
    MAX_ADDRESS_BYTES, MAX_CHANGED_AT_ONCE, MAX_CLUSTER_TARGETS, MAX_COLLECTED, MAX_FILE_BYTES,
    MAX_GARBAGE_PAGE, MAX_LEASE, MAX_LIST_PAGE, MAX_NAMED_PAGE, MAX_SOURCE_BYTES, MAX_TREES, MAX_UNFINISHED,
};
pub use memory::MemoryNamespace;
pub use mode::{DEFAULT_MODE, Mode};
pub use namespace::Namespace;
pub use path::{DirPath, FilePath, MAX_COMPONENT_BYTES, MAX_PATH_BYTES, PathFault};
pub use pending::PendingChange;
pub use principal::{MAX_PRINCIPAL_BYTES, Principal};
pub use sqlite::{MAX_GROUP, MAX_QUEUED, NamespaceOptions, READERS, SqliteNamespace};
