//! Objects of Gristmill in a pool of Ceph.
//!
//! A [`RadosStore`] is an [`ObjectStore`](gristmill_store::ObjectStore) whose bytes lie in RADOS, the object store of Ceph. Ceph copies
//! them, moves them to new disks and repairs them. A storage node that has such a store computes beside the storage daemons of its machine:
//! it names the pieces of its objects so that they lie there ([`RadosOptions::near`]).
//!
//! The client library of Ceph (`librados.so.2`) does the work. It is loaded when the first store is opened. Without it everything else works,
//! and the error says what to install.
//!
//! # What lies in the pool
//! | Object of RADOS | Content |
//! |---|---|
//! | `store` | a lock, and attributes: the form of the store, how often it was opened, and which process has it |
//! | `h.ID` | the head of the object `ID`: its record, and its attributes as entries (omap) |
//! | `p.ID.GENERATION.INDEX.SALT` | 4 MiB of its bytes; the numbers are hexadecimal |
//!
//! All of them are in a namespace of the pool, which is the name of the store. The pool must be replicated: pools with erasure codes have no
//! entries.
//!
//! A [`NodeRegistry`] is another thing: an object `nodes` in a namespace, by which nodes and clients of a cluster find each other.
//!
//! # Rules
//! - One process has a store. It renews a lock. A process that opens a store which was not closed has Ceph shut out the former process first.
//! - A change is on the disks of all copies when Ceph answers. A flush writes the record, so bytes, length and attributes become durable
//!   together. The mark in the record says whether bytes may be newer than it.
//! - Bytes that were written and are missing are an error, never zeros. Ceph compares bytes with their checksums (BlueStore); this crate has
//!   none of its own.
//! - In a full pool changes fail at once, and what frees bytes works.
//! - Storage daemons are waited for at most [`ANSWER_PATIENCE`] seconds, and monitors [`MONITOR_PATIENCE`].
//!
//! # Example
//! ```
//! use gristmill_rados::{RadosLocation, RadosOptions, RadosStore};
//! use gristmill_store::{CreateOptions, ObjectId, ObjectStore, WriteOptions};
//!
//! let location: RadosLocation = "rados://gristmill/example".parse()?;
//! if std::env::var_os("CEPH_CONF").is_some() {
//!     match RadosStore::open(&location, &RadosOptions::of_environment()) {
//!         Ok(store) => {
//!             let id = ObjectId::new("temperature")?;
//!             store.create(&id, &CreateOptions::default())?;
//!             store.write_at(&id, 0, b"271.5 272.0", WriteOptions::default())?;
//!             store.flush(&id)?;
//!             store.remove(&id)?;
//!             store.shut_down()?;
//!         }
//!         Err(error) => println!("{error}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//! `client` has the functions of the library, and all `unsafe` code. `store.rs` is the trait, `access.rs` what all objects use, `object.rs` one object and `object/change.rs` its
//! changes, `record.rs` what a head holds, `piece.rs` the names. `folding.rs` has folds inside the storage daemons, `owner.rs` the lock, `opening.rs` recovery, `registry.rs` the nodes of a cluster, and `placement.rs` decides where
//! pieces lie.

mod access;
mod client;
mod error;
mod folding;
mod hash;
mod location;
mod object;
mod opening;
mod owner;
mod piece;
mod placement;
mod record;
mod registry;
mod store;

pub use client::{ANSWER_PATIENCE, MAX_IN_FLIGHT, MONITOR_PATIENCE};
pub use location::{LocationError, RadosLocation};
pub use owner::{LOCK_PATIENCE, LOCK_TIME};
pub use piece::{MAX_OBJECT, MAX_PIECES, PIECE_BYTES};
pub use placement::MAX_SALTS;
pub use record::checked_record;
pub use registry::{LEASE_TIME, Lease, NodeRegistry, RegisteredNode, RegistryError};
pub use store::{MAX_CACHED_OBJECTS, RadosOptions, RadosStore};
