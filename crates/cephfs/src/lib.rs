//! Reads files of CephFS, the file system of Ceph, without a mount.
//!
//! A [`CephFs`] is a folder of a file system as a [`Backend`](gristmill_backend::Backend), so everything that reads a mount reads it. The
//! client library of Ceph (`libcephfs.so.2`) does the work: it finds the objects of a file, reads them from the storage daemons, and asks
//! programs that write to a file for what they hold. It is loaded when the first file system is opened. Without it everything else works,
//! and the error says what to install.
//!
//! # Rules
//! - The library checks modes and access control lists of files and folders for the [`Reader`](gristmill_backend::Reader). The key of the
//!   client bounds what all of them can read.
//! - A state has the number of the file, the time when it was made, and the number of changes that Ceph counts. So no two states of a name
//!   are the same, also if a file is removed and made again.
//! - Holes of a file are zeros. Objects that cannot be read are errors.
//! - Folds say what they need next. [Threads](gristmill_backend::MAX_READS_AHEAD) read it meanwhile. All files together have at most
//!   [`MAX_AHEAD`](gristmill_backend::MAX_AHEAD) such bytes.
//! - Calls wait for the servers. Each step of a mount waits at most [`MOUNT_PATIENCE`] seconds. Reads and look-ups wait as long as Ceph
//!   does.
//!
//! # Example
//! ```
//! use gristmill_backend::{Backend, Key, Reader};
//! use gristmill_cephfs::{CephFs, CephOptions};
//!
//! let folder = CephOptions::of_environment("", "projects/era5");
//! assert_eq!(folder.to_string(), "cephfs:///projects/era5");
//! if std::env::var_os("CEPH_CONF").is_some() {
//!     match CephFs::new(&folder, Reader::Process)?.list(&Key::ROOT, None, 100) {
//!         Ok(page) => println!("{} names", page.entries.len()),
//!         Err(error) => println!("{error}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//! `client` has the functions of the library, and all `unsafe` code. `walk.rs` finds a file from its key, `state.rs` has versions,
//! `tree.rs` the backend, and `file.rs` an opened file. `mount_table.rs` finds the
//! folder of a path below a mount. `file_system.rs` keeps the connections of the process.

mod client;
mod error;
mod file;
mod file_system;
mod mount_table;
mod options;
mod places;
mod reader;
mod state;
mod tree;
mod walk;

pub use file::MAX_HELD_FILES;
pub use file_system::{END_PATIENCE, MAX_MOUNTED, MOUNT_PATIENCE};
pub use mount_table::{MAX_MOUNT_TABLE, folder_of_mount};
pub use options::CephOptions;
pub use places::{MAX_LOCATED_SETS, MAX_LOCATED_STRIPES};
pub use tree::CephFs;
pub use walk::MAX_LINKS;
