//! The handle of a namespace, its opening and its closing.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use crate::access::Rules;
use crate::puts::renew_all;
use crate::readers::Readers;
use crate::writer::Writer;
use crate::{NamespaceError, Principal, Result, lock, schema};

/// Options for the opening of a namespace.
#[derive(Debug, Clone, Default)]
pub struct NamespaceOptions {
    /// A user that may do everything, in addition to `root` and `uid:0`.
    pub admin: Option<Principal>,
    /// New lease of all puts in progress, counted from now, because their clients could not renew them while the
    /// namespace was closed. `None` leaves the leases as they are.
    pub renew_leases: Option<Duration>,
}

/// The namespace of a cluster, open only in this process. A drop ends its thread and leaves one complete SQLite file. A
/// process that is killed loses no durable change either.
pub struct Namespace {
    pub(crate) rules: Arc<Rules>,
    pub(crate) readers: Readers,
    pub(crate) writer: Writer,
    /// Row of the last garbage that was returned.
    pub(crate) garbage_cursor: Arc<AtomicI64>,
    dir: PathBuf,
    /// The file with the lock. It is the last field, so that the lock is released after everything else is closed.
    _lock: File,
}

impl Namespace {
    /// Whether there is a namespace in `dir`.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(schema::DATABASE_FILE).exists()
    }

    /// Opens the namespace in `dir`. Makes the directory (but not its parents) and `namespace.sqlite` if they do not
    /// exist.
    ///
    /// # Errors
    /// Returns [`Locked`](NamespaceError::Locked) if it is open already, [`NewerFormat`](NamespaceError::NewerFormat),
    /// [`Damaged`](NamespaceError::Damaged), or a failure of the system.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, NamespaceOptions::default())
    }

    /// [`open`](Self::open) with options.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open).
    pub fn open_with(dir: &Path, options: NamespaceOptions) -> Result<Self> {
        make_dir(dir)?;
        let lock = lock::acquire(dir)?;
        let connection = schema::open_writer(dir)?;
        if let Some(lease) = options.renew_leases {
            renew_all(&connection, lease)?;
        }
        let readers = Readers::open(dir)?;
        let writer = Writer::start(connection)
            .map_err(|error| NamespaceError::io("start the writing thread for", dir, error))?;
        Ok(Self {
            rules: Arc::new(Rules { admin: options.admin }),
            readers,
            writer,
            garbage_cursor: Arc::new(AtomicI64::new(0)),
            dir: dir.to_path_buf(),
            _lock: lock,
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The connection that closes last removes the write-ahead log. Only the connection of the writer may do that.
        self.readers.close();
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Makes `dir` if it does not exist, and makes its name durable.
fn make_dir(dir: &Path) -> Result<()> {
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.map_err(|error| NamespaceError::io("create", dir, error))?,
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)
        .and_then(|parent| parent.sync_all())
        .map_err(|error| NamespaceError::io("sync", parent, error))
}
