//! A namespace in a file of SQLite: its opening and its closing.

mod garbage;
mod listing;
mod lock;
mod named_puts;
mod owner;
mod puts;
mod readers;
mod rows;
mod schema;
mod targets;
mod trees;
mod whole_directories;
mod writer;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use puts::renew_all;
pub use readers::READERS;
use readers::Readers;
use writer::Writer;
pub use writer::{MAX_GROUP, MAX_QUEUED};

use crate::{
    Access, Amount, AttachedTree, Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, Garbage,
    ListEntry, Mode, MoveOutcome, NamedPut, Namespace, NamespaceError, NewFile, PendingChange, Principal,
    Result, Rules, TargetId, TargetRecord,
};

/// Options for the opening of a namespace.
#[derive(Debug, Clone, Default)]
pub struct NamespaceOptions {
    /// A user that may do everything, in addition to `root` and `uid:0`.
    pub admin: Option<Principal>,
    /// New lease of all puts in progress, counted from now, because their clients could not renew them while the
    /// namespace was closed. `None` leaves the leases as they are.
    pub renew_leases: Option<Duration>,
}

/// The namespace of a cluster in a file of SQLite, open only in this process. A drop ends its thread and leaves one complete SQLite file. A
/// process that is killed loses no durable change either.
pub struct SqliteNamespace {
    rules: Arc<Rules>,
    readers: Readers,
    writer: Writer,
    /// Row of the last garbage that was returned.
    garbage_cursor: Arc<AtomicI64>,
    dir: PathBuf,
    /// The file with the lock. It is the last field, so that the lock is released after everything else is closed.
    _lock: File,
}

impl SqliteNamespace {
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
            rules: Arc::new(Rules::new(options.admin)),
            readers,
            writer,
            garbage_cursor: Arc::new(AtomicI64::new(0)),
            dir: dir.to_path_buf(),
            _lock: lock,
        })
    }
}

impl Namespace for SqliteNamespace {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn join(&self, id: &TargetId, address: &str, holds_files: bool) -> Result<u32> {
        SqliteNamespace::join(self, id, address, holds_files)
    }

    fn targets(&self) -> Result<Vec<TargetRecord>> {
        SqliteNamespace::targets(self)
    }

    fn queue_begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<PendingChange<FileId>> {
        SqliteNamespace::queue_begin(self, who, file, lease)
    }

    fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
        SqliteNamespace::renew(self, who, id, lease)
    }

    fn attempt(&self, id: &FileId) -> Result<Attempt> {
        SqliteNamespace::attempt(self, id)
    }

    fn queue_commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<PendingChange<CommitOutcome>> {
        SqliteNamespace::queue_commit(self, who, id, length, versions)
    }

    fn abandon(&self, who: &Principal, id: &FileId) -> Result<()> {
        SqliteNamespace::abandon(self, who, id)
    }

    fn lookup(&self, who: &Principal, path: &FilePath, access: Access) -> Result<FileEntry> {
        SqliteNamespace::lookup(self, who, path, access)
    }

    fn list(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        SqliteNamespace::list(self, dir, after, limit)
    }

    fn list_below(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        SqliteNamespace::list_below(self, dir, after, limit)
    }

    fn remove(&self, who: &Principal, path: &FilePath) -> Result<FileId> {
        SqliteNamespace::remove(self, who, path)
    }

    fn set_mode(&self, who: &Principal, path: &FilePath, mode: Mode) -> Result<()> {
        SqliteNamespace::set_mode(self, who, path, mode)
    }

    fn rename(&self, who: &Principal, from: &str, to: &str) -> Result<MoveOutcome> {
        SqliteNamespace::rename(self, who, from, to)
    }

    fn remove_all(&self, who: &Principal, path: &str) -> Result<Amount> {
        SqliteNamespace::remove_all(self, who, path)
    }

    fn usage(&self, path: &str) -> Result<Amount> {
        SqliteNamespace::usage(self, path)
    }

    fn attach(&self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()> {
        SqliteNamespace::attach(self, who, path, source, mode)
    }

    fn detach(&self, who: &Principal, path: &FilePath) -> Result<()> {
        SqliteNamespace::detach(self, who, path)
    }

    fn trees(&self) -> Result<Vec<AttachedTree>> {
        SqliteNamespace::trees(self)
    }

    fn tree_of(&self, path: &DirPath) -> Result<Option<AttachedTree>> {
        SqliteNamespace::tree_of(self, path)
    }

    fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
        SqliteNamespace::garbage(self, limit)
    }

    fn forget_collected(&self, ids: &[FileId], writable: Duration) -> Result<()> {
        SqliteNamespace::forget_collected(self, ids, writable)
    }

    fn named_puts(
        &self,
        after: Option<&FileId>,
        last: Option<&FileId>,
        limit: usize,
    ) -> Result<Vec<NamedPut>> {
        SqliteNamespace::named_puts(self, after, last, limit)
    }
}

impl Drop for SqliteNamespace {
    fn drop(&mut self) {
        // The connection that closes last removes the write-ahead log. Only the connection of the writer may do that.
        self.readers.close();
    }
}

impl fmt::Debug for SqliteNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteNamespace").field("dir", &self.dir).finish_non_exhaustive()
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
