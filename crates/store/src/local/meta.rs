//! The SQLite file: one row for each object, its attributes, the sums of its blocks, and the counter of versions.

mod attributes;
mod objects;
mod sums;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, params};

use crate::disk::Disk;
use crate::error::RESTORE;
use crate::locks::lock;
use crate::{Result, StoreError};

pub(super) use attributes::Changes;
pub(super) use objects::{Row, SettledObject};

/// Application id of the SQLite file ("Gris").
const APPLICATION_ID: i64 = 0x4772_6973;
/// Format of the tables below.
const FORMAT: i64 = 2;
/// Format of stores without sums. The first process that opens such a store for writing upgrades it.
const FORMAT_WITHOUT_SUMS: i64 = 1;
/// Longest time that a statement waits for the lock of a reader or of a checkpoint.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
CREATE TABLE counter (one INTEGER PRIMARY KEY CHECK (one = 1), ceiling INTEGER NOT NULL,
    clean INTEGER NOT NULL) STRICT;
CREATE TABLE objects (birth INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    length INTEGER NOT NULL, modified INTEGER NOT NULL, lease INTEGER, dirty INTEGER NOT NULL,
    written BLOB NOT NULL) STRICT;
CREATE INDEX dirty_objects ON objects (birth) WHERE dirty <> 0;
CREATE TABLE attributes (object INTEGER NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
    UNIQUE (object, name)) STRICT;
INSERT INTO counter VALUES (1, 1, 1);
";

/// The columns and the table that format 2 adds. Older objects have no sums.
const SUMS_SCHEMA: &str = "
ALTER TABLE objects ADD COLUMN dirty_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN dirty_end INTEGER NOT NULL DEFAULT 0x7fffffffffffffff;
ALTER TABLE objects ADD COLUMN summed INTEGER NOT NULL DEFAULT 0;
CREATE TABLE sums (object INTEGER NOT NULL, segment INTEGER NOT NULL, sums BLOB NOT NULL,
    PRIMARY KEY (object, segment)) STRICT, WITHOUT ROWID;
";

const COLUMNS: &str =
    "birth, id, version, length, modified, lease, dirty, written, dirty_start, dirty_end, summed";
const COLUMNS_WITHOUT_SUMS: &str =
    "birth, id, version, length, modified, lease, dirty, written, 0, 0x7fffffffffffffff, 0";

pub(super) struct Meta {
    connection: Mutex<Connection>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// The last commit failed.
    failed: AtomicBool,
    format: i64,
}

impl Meta {
    /// Opens the file for writing, and makes the tables if the file is new. `fresh`: no object file exists, so an empty
    /// or missing SQLite file means a new store, and not a store that lost its metadata.
    pub(super) fn open(path: &Path, disk: Arc<dyn Disk>, fresh: bool) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = if fresh { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags };
        let mut meta = Self::connect(path, disk, flags)?;
        meta.query("set up", |connection| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // The write-ahead log stays there, but empty, so that read-only processes can open the store.
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(())
        })?;
        if fresh && meta.pragma("user_version")? == 0 {
            meta.commit("create", |transaction| {
                transaction.execute_batch(SCHEMA)?;
                transaction.execute_batch(SUMS_SCHEMA)?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", FORMAT)
            })?;
        }
        meta.check_format()?;
        if meta.format == FORMAT_WITHOUT_SUMS {
            meta.commit("upgrade", |transaction| {
                transaction.execute_batch(SUMS_SCHEMA)?;
                transaction.pragma_update(None, "user_version", FORMAT)
            })?;
            meta.format = FORMAT;
        }
        Ok(meta)
    }

    /// Opens an existing file for reading.
    pub(super) fn open_read_only(path: &Path, disk: Arc<dyn Disk>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut meta = Self::connect(path, disk, flags)?;
        meta.check_format()?;
        Ok(meta)
    }

    fn connect(path: &Path, disk: Arc<dyn Disk>, flags: OpenFlags) -> Result<Self> {
        let failed = |error| StoreError::sqlite("open", path, error);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        Ok(Self {
            connection: Mutex::new(connection),
            disk,
            path: path.to_path_buf(),
            failed: AtomicBool::new(false),
            format: FORMAT,
        })
    }

    fn check_format(&mut self) -> Result<()> {
        let (application, format) = (self.pragma("application_id")?, self.pragma("user_version")?);
        if application != APPLICATION_ID || ![FORMAT_WITHOUT_SUMS, FORMAT].contains(&format) {
            let what = format!(
                "{} has application id {application:#x} and format {format}, expected {APPLICATION_ID:#x} and at most {FORMAT}",
                self.path.display()
            );
            return Err(StoreError::Damaged {
                what,
                remedy: "Open it with the release that wrote it, or restore it",
            });
        }
        self.format = format;
        Ok(())
    }

    /// The columns of the row of an object. If the store has no sums, missing columns have the values that an upgrade
    /// would give them.
    fn columns(&self) -> &'static str {
        if self.format == FORMAT { COLUMNS } else { COLUMNS_WITHOUT_SUMS }
    }

    fn pragma(&self, name: &str) -> Result<i64> {
        self.query("read", |connection| connection.pragma_query_value(None, name, |row| row.get(0)))
    }

    fn query<T>(&self, op: &'static str, f: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        f(&lock(&self.connection)).map_err(|error| StoreError::sqlite(op, &self.path, error))
    }

    /// Runs `f` as one transaction. After an error nothing has changed, but if the machine stops before the next
    /// commit, the transaction may still be durable.
    fn commit<T>(
        &self,
        op: &'static str,
        f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let mut connection = lock(&self.connection);
        self.disk.before_commit(&self.path).map_err(|error| StoreError::io(op, &self.path, error))?;
        let run = || {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let value = f(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        let done = run();
        self.failed.store(done.is_err(), Ordering::Relaxed);
        done.map_err(|error| StoreError::sqlite(op, &self.path, error))
    }

    /// After a failed commit, makes another commit that replaces it in the write-ahead log. Otherwise a crash could
    /// restore the failed commit, and a row whose version would name bytes that were written later.
    pub(super) fn rule_out_failed_commit(&self) -> Result<()> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.commit("write to", |transaction| transaction.execute("UPDATE counter SET clean = 0", []))?;
        Ok(())
    }

    /// The first version that is not reserved, and whether the last process closed the store cleanly.
    pub(super) fn counter(&self) -> Result<(u64, bool)> {
        let (ceiling, clean) = self.query("read", |connection| {
            connection.query_row("SELECT ceiling, clean FROM counter", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
        })?;
        Ok((self.unsigned(ceiling, "the version counter")?, clean != 0))
    }

    pub(super) fn set_counter(&self, ceiling: u64, clean: bool) -> Result<()> {
        self.commit("reserve versions in", |transaction| {
            transaction.execute("UPDATE counter SET ceiling = ?, clean = ?", params![ceiling as i64, clean])
        })?;
        Ok(())
    }

    /// A number that changes when another connection has committed. It costs no I/O.
    pub(super) fn data_version(&self) -> Result<i64> {
        self.query("read", |connection| {
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
        })
    }

    /// Moves the write-ahead log into the main file. Best effort, because readers may use it.
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.query("checkpoint", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
    }

    fn unsigned(&self, value: i64, field: &str) -> Result<u64> {
        u64::try_from(value).map_err(|_| StoreError::Damaged {
            what: format!("{} has {value} for {field}, which is never negative", self.path.display()),
            remedy: RESTORE,
        })
    }
}
