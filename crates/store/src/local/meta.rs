//! The SQLite file: one row per object, its attributes, and the counter that versions come from.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row as SqlRow, Transaction, params};

use crate::disk::Disk;
use crate::error::RESTORE;
use crate::intervals::IntervalSet;
use crate::locks::lock;
use crate::{ObjectId, Result, StoreError};

/// Marks the SQLite file as ours ("Gris").
const APPLICATION_ID: i64 = 0x4772_6973;
/// The form of the tables below.
const FORMAT: i64 = 1;
/// How long a statement waits for a reader's or a checkpoint's lock.
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

const COLUMNS: &str = "birth, id, version, length, modified, lease, dirty, written";

/// What is durable about one object. `birth` is the version it was created with, unique for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) birth: u64,
    pub(super) version: u64,
    pub(super) length: u64,
    /// Nanoseconds since 1970, as is `lease`.
    pub(super) modified: i64,
    pub(super) lease: Option<i64>,
    /// The file may hold writes that came after `version`.
    pub(super) dirty: bool,
    pub(super) written: IntervalSet,
}

/// New values of attributes by name; `None` removes.
pub(super) type Changes = std::collections::BTreeMap<String, Option<Vec<u8>>>;

pub(super) struct Meta {
    connection: Mutex<Connection>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// The last commit failed.
    failed: AtomicBool,
}

impl Meta {
    /// Opens the file for writing, making the tables if the file is new. `fresh`: no object file exists, so
    /// an empty or missing SQLite file is a store being made and not one that lost its metadata.
    pub(super) fn open(path: &Path, disk: Arc<dyn Disk>, fresh: bool) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = if fresh { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags };
        let meta = Self::connect(path, disk, flags)?;
        meta.query("set up", |connection| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // The write-ahead log stays in place, emptied, so that read-only users can open the store.
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(())
        })?;
        if fresh && meta.pragma("user_version")? == 0 {
            meta.commit("create", |transaction| {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", FORMAT)
            })?;
        }
        meta.check_format()?;
        Ok(meta)
    }

    /// Opens an existing file for reading.
    pub(super) fn open_read_only(path: &Path, disk: Arc<dyn Disk>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let meta = Self::connect(path, disk, flags)?;
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
        })
    }

    fn check_format(&self) -> Result<()> {
        let (application, format) = (self.pragma("application_id")?, self.pragma("user_version")?);
        if (application, format) != (APPLICATION_ID, FORMAT) {
            let what = format!(
                "{} has application id {application:#x} and format {format}, expected {APPLICATION_ID:#x} and {FORMAT}",
                self.path.display()
            );
            return Err(StoreError::Damaged {
                what,
                remedy: "Open it with the release that wrote it, or restore it",
            });
        }
        Ok(())
    }

    fn pragma(&self, name: &str) -> Result<i64> {
        self.query("read", |connection| connection.pragma_query_value(None, name, |row| row.get(0)))
    }

    fn query<T>(&self, op: &'static str, f: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        f(&lock(&self.connection)).map_err(|error| StoreError::sqlite(op, &self.path, error))
    }

    /// Runs `f` as one transaction. After an error nothing of it counts, but it may still turn out to be
    /// durable if the machine stops before the next commit.
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

    /// After a failed commit, makes one that takes its place in the write-ahead log. Without it, a crash
    /// could bring back the failed one, and with it a row that claims to name bytes written since.
    pub(super) fn rule_out_failed_commit(&self) -> Result<()> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.commit("write to", |transaction| transaction.execute("UPDATE counter SET clean = 0", []))?;
        Ok(())
    }

    /// The first version not yet reserved, and whether the last user closed the store cleanly.
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

    /// Changes whenever another connection has committed, and costs no I/O.
    pub(super) fn data_version(&self) -> Result<i64> {
        self.query("read", |connection| {
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
        })
    }

    pub(super) fn load(&self, id: &ObjectId) -> Result<Option<Row>> {
        let raw = self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM objects WHERE id = ?"))?;
            statement.query_row([id.as_str()], RawRow::read).optional()
        })?;
        raw.map(|raw| Ok(self.check(raw)?.1)).transpose()
    }

    /// Up to `limit` objects born after `after` that had unflushed writes when the last user stopped.
    pub(super) fn dirty(&self, after: u64, limit: usize) -> Result<Vec<(ObjectId, Row)>> {
        let raw = self.query("read", |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM objects WHERE dirty <> 0 AND birth > ? ORDER BY birth LIMIT ?"
            ))?;
            statement
                .query_map(params![after as i64, limit as i64], RawRow::read)?
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        raw.into_iter().map(|raw| self.check(raw)).collect()
    }

    pub(super) fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let names = self.query("list", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM objects WHERE id > ?1 AND id >= ?2 AND id < ?3 ORDER BY id LIMIT ?4",
            )?;
            // Names are ASCII, so this is above every name with the prefix.
            let above = format!("{prefix}\u{7f}");
            let after = after.map_or("", ObjectId::as_str);
            let rows = statement.query_map(params![after, prefix, above, limit as i64], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        })?;
        names.into_iter().map(|name| self.check_id(&name)).collect()
    }

    /// Makes `row` and the attribute changes durable together.
    pub(super) fn put(&self, id: &ObjectId, row: &Row, changes: &Changes) -> Result<()> {
        self.commit("store an object in", |transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "INSERT INTO objects ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (birth) DO UPDATE SET version = ?3, length = ?4, modified = ?5, lease = ?6,
                 dirty = ?7, written = ?8"
            ))?;
            let (birth, version, length) = (row.birth as i64, row.version as i64, row.length as i64);
            let written = row.written.to_bytes();
            let Row { modified, lease, dirty, .. } = row;
            statement.execute(params![
                birth,
                id.as_str(),
                version,
                length,
                modified,
                lease,
                dirty,
                written
            ])?;
            put_attributes(transaction, row.birth, changes)
        })
    }

    pub(super) fn put_attributes(&self, birth: u64, changes: &Changes) -> Result<()> {
        self.commit("store attributes in", |transaction| put_attributes(transaction, birth, changes))
    }

    /// Says that the file may from now on hold more than its row knows, and is at least `length` long.
    pub(super) fn mark_dirty(&self, birth: u64, length: u64) -> Result<()> {
        self.commit("mark an object in", |transaction| {
            let mut statement =
                transaction.prepare_cached("UPDATE objects SET dirty = 1, length = ? WHERE birth = ?")?;
            statement.execute(params![length as i64, birth as i64]).map(|_| ())
        })
    }

    pub(super) fn set_lease(&self, birth: u64, lease: i64) -> Result<()> {
        self.commit("renew a lease in", |transaction| {
            transaction.execute("UPDATE objects SET lease = ? WHERE birth = ?", params![lease, birth as i64])
        })?;
        Ok(())
    }

    pub(super) fn delete(&self, birth: u64) -> Result<()> {
        self.commit("remove an object from", |transaction| {
            transaction.execute("DELETE FROM attributes WHERE object = ?", [birth as i64])?;
            transaction.execute("DELETE FROM objects WHERE birth = ?", [birth as i64])
        })?;
        Ok(())
    }

    /// Gives recovered objects, by birth, their new versions.
    pub(super) fn settle(&self, versions: &[(u64, u64)]) -> Result<()> {
        self.commit("recover objects in", |transaction| {
            let mut statement =
                transaction.prepare_cached("UPDATE objects SET dirty = 0, version = ? WHERE birth = ?")?;
            for &(birth, version) in versions {
                statement.execute(params![version as i64, birth as i64])?;
            }
            Ok(())
        })
    }

    pub(super) fn attribute(&self, birth: u64, name: &str) -> Result<Option<Vec<u8>>> {
        self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT value FROM attributes WHERE object = ? AND name = ?")?;
            statement.query_row(params![birth as i64, name], |row| row.get(0)).optional()
        })
    }

    pub(super) fn attribute_names(&self, birth: u64) -> Result<Vec<String>> {
        self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT name FROM attributes WHERE object = ? ORDER BY name")?;
            statement.query_map([birth as i64], |row| row.get(0))?.collect()
        })
    }

    /// Moves the write-ahead log into the main file; best effort, for other readers may hold it.
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.query("checkpoint", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
    }

    fn check_id(&self, name: &str) -> Result<ObjectId> {
        let damaged = |error| StoreError::Damaged {
            what: format!("{} lists an object with an impossible name ({error})", self.path.display()),
            remedy: RESTORE,
        };
        ObjectId::new(name).map_err(damaged)
    }

    fn unsigned(&self, value: i64, of: &str) -> Result<u64> {
        u64::try_from(value).map_err(|_| StoreError::Damaged {
            what: format!("{} holds {value} for {of}, which is never negative", self.path.display()),
            remedy: RESTORE,
        })
    }

    fn check(&self, raw: RawRow) -> Result<(ObjectId, Row)> {
        let id = self.check_id(&raw.id)?;
        let length = self.unsigned(raw.length, "a length")?;
        let written = IntervalSet::from_bytes(&raw.written, length).ok_or_else(|| StoreError::Damaged {
            what: format!("{} holds no valid written intervals for object {id}", self.path.display()),
            remedy: RESTORE,
        })?;
        let row = Row {
            birth: self.unsigned(raw.birth, "a birth number")?,
            version: self.unsigned(raw.version, "a version")?,
            length,
            modified: raw.modified,
            lease: raw.lease,
            dirty: raw.dirty != 0,
            written,
        };
        Ok((id, row))
    }
}

fn put_attributes(transaction: &Transaction<'_>, birth: u64, changes: &Changes) -> rusqlite::Result<()> {
    for (name, value) in changes {
        match value {
            Some(value) => transaction
                .prepare_cached(
                    "INSERT INTO attributes VALUES (?1, ?2, ?3)
                     ON CONFLICT (object, name) DO UPDATE SET value = ?3",
                )?
                .execute(params![birth as i64, name, value])?,
            None => transaction
                .prepare_cached("DELETE FROM attributes WHERE object = ? AND name = ?")?
                .execute(params![birth as i64, name])?,
        };
    }
    Ok(())
}

/// A row as SQLite has it, not yet checked.
struct RawRow {
    birth: i64,
    id: String,
    version: i64,
    length: i64,
    modified: i64,
    lease: Option<i64>,
    dirty: i64,
    written: Vec<u8>,
}

impl RawRow {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            birth: row.get(0)?,
            id: row.get(1)?,
            version: row.get(2)?,
            length: row.get(3)?,
            modified: row.get(4)?,
            lease: row.get(5)?,
            dirty: row.get(6)?,
            written: row.get(7)?,
        })
    }
}
