//! The tables of the SQLite file, and its opening.
//!
//! There is one row for each put, from `begin` until its objects are collected and cannot be written again. `state`
//! goes from [`ATTEMPT`] to [`LIVE`] to [`GARBAGE`], or directly to the last one. The columns after `lease` are filled
//! when the put becomes live. They stay, so that a repeated commit can be answered. While the objects of a collected
//! put may be written again, it is [`HELD`], with the end of that time in `lease`. After that it is garbage again, with
//! a lease.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::{NamespaceError, Result};

pub(crate) const DATABASE_FILE: &str = "namespace.sqlite";
/// Application id of the SQLite file ("GriN").
const APPLICATION_ID: i64 = 0x4772_694e;
/// Format of the tables below.
pub(crate) const FORMAT: i64 = 6;
/// Older format in which all targets hold files.
const WITH_STORES: i64 = 5;
/// Older format without attached trees.
const WITHOUT_TREES: i64 = 4;
/// Older format without an index of the unfinished puts of a user.
const WITHOUT_UNFINISHED: i64 = 3;
/// Older format in which all files are striped.
const WITHOUT_SEGMENTS: i64 = 2;
/// First format, which also lacks [`HELD`].
const WITHOUT_HELD: i64 = 1;
/// Longest time that a statement waits for a lock of SQLite. Within one process there is hardly any wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements that each connection keeps.
const CACHED_STATEMENTS: usize = 64;
/// Pages of the write-ahead log before SQLite moves them into the main file: 16 MiB, so that thousands of small changes
/// share the two syncs of a checkpoint.
const CHECKPOINT_PAGES: i64 = 4_096;

pub(crate) const ATTEMPT: i64 = 0;
pub(crate) const LIVE: i64 = 1;
pub(crate) const GARBAGE: i64 = 2;
/// State of a collected put whose objects may be written again. [`Row::find`](super::rows::Row::find) ignores it.
pub(crate) const HELD: i64 = 3;

/// The indexes contain the numbers of the states, and each query that uses an index must contain them too.
const SCHEMA: &str = "
CREATE TABLE targets (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, address TEXT UNIQUE,
    holds_files INTEGER NOT NULL DEFAULT 1) STRICT;
CREATE TABLE files (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state INTEGER NOT NULL,
    path TEXT NOT NULL, who TEXT NOT NULL, mode INTEGER, unit INTEGER NOT NULL, first INTEGER NOT NULL,
    targets BLOB NOT NULL, record INTEGER, lease INTEGER,
    owner TEXT, length INTEGER, versions BLOB, created INTEGER, replaced TEXT,
    segments INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE UNIQUE INDEX live_paths ON files (path) WHERE state = 1;
CREATE INDEX leases ON files (lease) WHERE state = 0;
CREATE INDEX garbage ON files (n) WHERE state = 2;
";

const HELD_INDEX: &str = "CREATE INDEX held ON files (lease) WHERE state = 3;";
/// Index of puts that are in progress, or were abandoned and are not collected yet. Only rows that were live have an
/// `owner`.
const UNFINISHED_INDEX: &str = "CREATE INDEX unfinished ON files (who) WHERE owner IS NULL AND state <> 3;";
const TREES_TABLE: &str =
    "CREATE TABLE trees (path TEXT PRIMARY KEY, source TEXT NOT NULL, owner TEXT NOT NULL,
    mode INTEGER NOT NULL, attached INTEGER NOT NULL) STRICT, WITHOUT ROWID;";
const STORES_COLUMN: &str = "ALTER TABLE targets ADD COLUMN holds_files INTEGER NOT NULL DEFAULT 1;";
const SEGMENTS_COLUMN: &str = "ALTER TABLE files ADD COLUMN segments INTEGER NOT NULL DEFAULT 0;";

/// Opens the file in `dir` for writing, and makes it if it does not exist.
pub(crate) fn open_writer(dir: &Path) -> Result<Connection> {
    let path = dir.join(DATABASE_FILE);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = connect(&path, flags)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    if is_blank(&connection)? {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute_batch(HELD_INDEX)?;
        transaction.execute_batch(UNFINISHED_INDEX)?;
        transaction.execute_batch(TREES_TABLE)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.commit()?;
        // SQLite does not promise to sync the directory that names a file with a write-ahead log.
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| NamespaceError::io("sync", dir, error))?;
    }
    for (before, change) in [
        (WITHOUT_HELD, HELD_INDEX),
        (WITHOUT_SEGMENTS, SEGMENTS_COLUMN),
        (WITHOUT_UNFINISHED, UNFINISHED_INDEX),
        (WITHOUT_TREES, TREES_TABLE),
        (WITH_STORES, STORES_COLUMN),
    ] {
        if has_format(&connection, before)? {
            let transaction = connection.transaction()?;
            transaction.execute_batch(change)?;
            transaction.pragma_update(None, "user_version", before + 1)?;
            transaction.commit()?;
        }
    }
    check_format(&connection)?;
    Ok(connection)
}

/// Opens another connection to the file that [`open_writer`] has open.
pub(crate) fn open_reader(dir: &Path) -> Result<Connection> {
    connect(&dir.join(DATABASE_FILE), OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Moves the write-ahead log into the main file.
pub(crate) fn checkpoint(connection: &Connection) -> Result<()> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

fn pragma(connection: &Connection, name: &str) -> Result<i64> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

fn is_blank(connection: &Connection) -> Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && pragma(connection, "application_id")? == 0 && pragma(connection, "user_version")? == 0)
}

fn has_format(connection: &Connection, format: i64) -> Result<bool> {
    Ok(pragma(connection, "application_id")? == APPLICATION_ID
        && pragma(connection, "user_version")? == format)
}

fn check_format(connection: &Connection) -> Result<()> {
    let (application, found) = (pragma(connection, "application_id")?, pragma(connection, "user_version")?);
    if application != APPLICATION_ID {
        let what = format!("{DATABASE_FILE} has application id {application:#x}, not {APPLICATION_ID:#x}");
        return Err(NamespaceError::damaged(what));
    }
    if found > FORMAT {
        return Err(NamespaceError::NewerFormat { found, known: FORMAT });
    }
    if found < FORMAT {
        return Err(NamespaceError::damaged(format!("{DATABASE_FILE} has the unknown format {found}")));
    }
    let parts: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema
         WHERE name IN ('targets', 'files', 'trees', 'live_paths', 'leases', 'garbage', 'held', 'unfinished')",
        [],
        |row| row.get(0),
    )?;
    if parts != 8 {
        return Err(NamespaceError::damaged(format!("{DATABASE_FILE} lacks a table or an index")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn commits_are_synced_and_readers_do_not_write() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let writer = open_writer(dir.path()).unwrap();
            let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            assert_eq!((mode.as_str(), pragma(&writer, "synchronous").unwrap()), ("wal", 2));
            assert!(open_reader(dir.path()).unwrap().execute("DELETE FROM files", []).is_err());
        }
    }

    #[test]
    fn older_formats_are_upgraded() {
        let changes = [
            "ALTER TABLE targets DROP COLUMN holds_files; PRAGMA user_version = 5;",
            "DROP TABLE trees; PRAGMA user_version = 4;",
            "DROP INDEX unfinished; PRAGMA user_version = 3;",
            "ALTER TABLE files DROP COLUMN segments; PRAGMA user_version = 2;",
            "DROP INDEX held; PRAGMA user_version = 1;",
        ];
        for older in (1..=changes.len()).map(|n| changes[..n].concat()) {
            let dir = tempfile::tempdir().unwrap();
            let old = open_writer(dir.path()).unwrap();
            old.execute_batch(&older).unwrap();
            drop(old);
            for _ in 0..2 {
                let now = open_writer(dir.path()).unwrap();
                assert_eq!(pragma(&now, "user_version").unwrap(), FORMAT);
                now.prepare("SELECT segments FROM files").unwrap();
                now.prepare("SELECT source FROM trees").unwrap();
                now.prepare("SELECT holds_files FROM targets").unwrap();
            }
        }
    }
}
