//! Reads storage that belongs to others. There is one small trait for all of it. Mounted file systems are the first to have it.
//!
//! A [`Backend`] lists folders, tells the length and the version of a file, and opens it. An opened [`Object`] reads ranges of one
//! version. Mounts, object stores and HTTP servers can all do that. What only our own targets can do (append, attributes,
//! compare-and-swap, leases) is in `gristmill_store::ObjectStore`.
//!
//! # Rules
//! - A read gives the bytes of the version that was opened, or an error. Whoever reads several ranges calls
//!   [`Object::unchanged`] after the last one. Then all bytes were of one version.
//! - An object that is missing, too short or not readable gives an error that names it. It never reads as zeros. A list names what cannot
//!   be read, too ([`Content::Unreadable`]), so that nobody takes it for a file that does not exist.
//! - Lengths and offsets are in bytes. Names are UTF-8.
//! - Every method blocks, and may be called from many threads at once.
//!
//! # Example
//! ```
//! use gristmill_backend::{Backend, BackendError, Key, Mount};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("2001"))?;
//! std::fs::write(folder.path().join("2001/tas.f64"), [1, 2, 3, 4])?;
//!
//! let mount = Mount::open(folder.path())?;
//! let names = mount.list(&Key::ROOT, None, 100)?.entries.into_iter().map(|entry| entry.name);
//! assert_eq!(names.collect::<Vec<_>>(), ["2001"]);
//!
//! let object = mount.open(&Key::new("2001/tas.f64")?)?;
//! assert_eq!(object.found().length, 4);
//! let mut bytes = [0; 3];
//! object.read(&[1..3, 0..1], &mut bytes)?;
//! object.unchanged()?;
//! assert_eq!(bytes, [2, 3, 1]);
//! assert!(matches!(object.read_at(3, &mut [0; 2]), Err(BackendError::Short { length: 4, .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//! `backend.rs` has the traits and `error.rs` the errors. [`Mount`] is a folder of a mounted file system, [`MemoryBackend`] is for
//! tests. `read_ahead.rs` and `buffers.rs` are for storage behind a network, which fetches bytes before they are needed, and `ahead_threads.rs` does so for
//! storage whose reads block. The feature
//! `suite` has the tests of every backend (`backend_suite!`).

mod ahead_threads;
mod backend;
mod buffers;
mod error;
mod growing;
mod key;
mod memory;
mod mount;
mod names;
mod read_ahead;
#[cfg(feature = "suite")]
pub mod suite;

pub use ahead_threads::{MAX_AHEAD, MAX_READS_AHEAD, ThreadsAhead};
pub use backend::{
    Backend, Content, Entry, Found, HostStripes, Object, Page, Stamp, check_ranges, read_each, read_opened,
    split_buffer,
};
pub use buffers::{Buffer, Buffers};
pub use error::{BackendError, Kind};
pub use growing::{MAX_UNFINISHED_LINE, WholeRecords};
pub use key::{Key, MAX_KEY_BYTES};
pub use memory::MemoryBackend;
pub use mount::{
    MAX_GROUPS, MAX_HELD_FILES, Mount, MountOptions, Reader, UnixUser, open_file, open_growing_file,
};

pub use names::{FirstNames, page_of_names};
pub use read_ahead::{AheadBudget, AheadLimits, AheadPart, Arriving, ReadAhead};

/// Result of an operation on a backend.
pub type Result<T> = std::result::Result<T, BackendError>;

/// Most entries that one call of [`Backend::list`] returns.
pub const MAX_LIST_PAGE: usize = 1_000;

/// Most levels of folders below the folder whose files are listed.
pub const MAX_DEPTH: usize = 64;
