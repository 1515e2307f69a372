//! The handle, and how it is opened and closed.

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

/// What may be chosen when a namespace is opened.
#[derive(Debug, Clone, Default)]
pub struct NamespaceOptions {
    /// A user who may do everything, besides `root` and `uid:0`.
    pub admin: Option<Principal>,
    /// The leases of all puts that go on last so long from now: their clients could not renew them while the namespace was
    /// closed. `None` leaves them as they were.
    pub renewed: Option<Duration>,
}

/// The namespace of a cluster, open in this process alone. Dropping it ends its thread and leaves one whole
/// SQLite file; a process that is killed loses nothing either.
pub struct Namespace {
    pub(crate) rules: Arc<Rules>,
    pub(crate) readers: Readers,
    pub(crate) writer: Writer,
    /// The row up to which garbage was given out.
    pub(crate) given_out: Arc<AtomicI64>,
    dir: PathBuf,
    /// Held for its lock; the last field, so that it is released when everything else is closed.
    _lock: File,
}

impl Namespace {
    /// Whether there is a namespace in `dir`.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(schema::DATABASE_FILE).exists()
    }

    /// Opens the namespace in `dir`, making the directory (not its parents) and `namespace.sqlite` if there
    /// is none.
    ///
    /// # Errors
    /// [`Locked`](NamespaceError::Locked) if it is open already, [`NewerFormat`](NamespaceError::NewerFormat),
    /// [`Damaged`](NamespaceError::Damaged), or a failure of the system.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, NamespaceOptions::default())
    }

    /// [`open`](Self::open) with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(dir: &Path, options: NamespaceOptions) -> Result<Self> {
        make_dir(dir)?;
        let lock = lock::acquire(dir)?;
        let connection = schema::open_writer(dir)?;
        if let Some(lease) = options.renewed {
            renew_all(&connection, lease)?;
        }
        let readers = Readers::open(dir)?;
        let writer = Writer::start(connection)
            .map_err(|error| NamespaceError::io("start the writing thread for", dir, error))?;
        Ok(Self {
            rules: Arc::new(Rules { admin: options.admin }),
            readers,
            writer,
            given_out: Arc::new(AtomicI64::new(0)),
            dir: dir.to_path_buf(),
            _lock: lock,
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The connection that closes last removes the write-ahead log; only the writer's may.
        self.readers.close();
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Makes `dir` if there is none, and its name durable.
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
