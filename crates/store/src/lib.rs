//! Objects with versions and attributes, in memory or in a directory.
//!
//! An active storage system must know from which state of an object a partial result was computed. It must read objects
//! while they arrive, and must not lose acknowledged data. [`ObjectStore`] is the small contract for that. It follows
//! the object-based storage devices of T10 OSD-2: named objects, byte ranges, attributes with each operation, compare
//! and swap, fetch and add, scatter and gather. Devulapalli and others built a parallel file system on such devices
//! (2007). The form follows the `object_store` crate of Apache Arrow: a core trait, and one test suite that every
//! backend passes (feature `suite`, module `suite`).
//!
//! - [`MemoryStore`] keeps objects in memory.
//! - [`LocalStore`] keeps each object in a file, and metadata in SQLite. Changes that its `flush` acknowledged survive
//!   loss of power. [`LocalStore::open_read_only`] opens a store while another process writes to it.
//! - [`write_atomic`] replaces small files as a whole. It needs no store.
//!
//! ```
//! use gristmill_store::{
//!     CreateOptions, LocalStore, ObjectId, ObjectStore, ReadOptions, StoreError, WriteOptions,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = LocalStore::open(dir.path().join("target0"))?;
//! let id = ObjectId::new("ocean-temperature.0")?;
//! store.create(&id, &CreateOptions::default())?;
//!
//! // Bytes and an attribute become durable together when `flush` returns.
//! let options = WriteOptions { attributes: &[("units", Some(b"K"))], ..Default::default() };
//! let version = store.write_at(&id, 0, b"271.5 272.0", options)?;
//! store.flush(&id)?;
//!
//! // A reader names the version that it works on ...
//! let mut buffer = [0; 5];
//! assert_eq!(store.read_at(&id, 6, &mut buffer, ReadOptions::at(version))?, 5);
//! assert_eq!(&buffer, b"272.0");
//!
//! // ... and gets an error when the object has another version.
//! store.append(&id, b" 272.5")?;
//! let stale = store.read_at(&id, 6, &mut buffer, ReadOptions::at(version));
//! assert!(matches!(stale, Err(StoreError::Stale { .. })));
//! store.shut_down()?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything is synchronous and safe to share between threads. Time comes from a [`Clock`] that the caller passes.
//! Every size has a bound: see the constants.

mod atomic_file;
mod clock;
mod counter;
mod directory;
mod disk;
mod empty;
mod error;
mod id;
mod intervals;
mod limits;
mod local;
mod locks;
mod memory;
mod object_store;
pub mod rules;
#[cfg(feature = "suite")]
pub mod suite;
mod sums;
mod types;

pub use atomic_file::{write_atomic, write_atomic_private};
pub use clock::{Clock, SystemClock};
pub use directory::{make_directory, sync_name};
pub use empty::EmptyStore;
pub use error::{Result, StoreError};
pub use id::{IdError, ObjectId};
pub use limits::{
    MAX_ATTRIBUTE_BYTES, MAX_ATTRIBUTE_NAME_BYTES, MAX_ATTRIBUTES, MAX_EXTENTS, MAX_ID_BYTES, MAX_INTERVALS,
    MAX_LEASE, MAX_LIST_PAGE, MAX_OBJECT_BYTES, MAX_WRITTEN_PAGE,
};
pub use local::{
    LocalReader, LocalStore, MAX_CACHED_OBJECTS, MAX_CHECKED_BLOCKS, MAX_OPEN_FILES, MAX_UNFLUSHED_OBJECTS,
    RecoveryProgress,
};
pub use memory::{DEFAULT_MEMORY_BYTES, MemoryStore};
pub use object_store::ObjectStore;
pub use types::{
    ArrivalState, AttributeChange, CasOutcome, CreateOptions, Extent, ReadOptions, ScrubResult, Stat,
    Version, WriteOptions,
};
