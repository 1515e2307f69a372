//! Puts: their beginning, leases, commits and ends.

use rusqlite::{Connection, params};
use std::time::{Duration, SystemTime};

use super::listing::{directory_exists, file_above};
use super::rows::{Row, number_bytes, stored_value, version_bytes};
use super::targets::check_targets;
use super::trees::tree_of;
use super::{SqliteNamespace, schema};
use crate::checks::{check_layout, check_lease, check_length};
use crate::clock::{lease_end, to_nanos};
use crate::{
    Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, MAX_UNFINISHED, Mode, NamespaceError,
    NewFile, PathConflict, PendingChange, Principal, Result, Rules,
};

impl SqliteNamespace {
    pub(super) fn queue_begin(
        &self,
        who: &Principal,
        file: &NewFile,
        lease: Duration,
    ) -> Result<PendingChange<FileId>> {
        check_layout(file.unit, file.first, &file.targets, file.record)?;
        check_lease(lease)?;
        let (rules, who, file) = (self.rules.clone(), who.clone(), file.clone());
        self.writer.queue_call(move |connection| {
            check_targets(connection, &file.targets)?;
            check_destination(connection, &rules, &who, &file.path, file.mode)?;
            check_unfinished(connection, &who)?;
            let mut insert = connection.prepare_cached(
                "INSERT INTO files (id, state, path, who, mode, unit, first, targets, record, lease, segments)
                 VALUES (lower(hex(randomblob(16))), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            )?;
            let id: String = insert.query_row(
                params![
                    schema::ATTEMPT,
                    file.path.key(),
                    who.as_str(),
                    file.mode.map(Mode::bits),
                    file.unit as i64,
                    file.first,
                    number_bytes(&file.targets),
                    file.record.map(|record| record as i64),
                    lease_end(lease),
                    file.segments
                ],
                |row| row.get(0),
            )?;
            stored_value(id.parse())
        })
    }

    pub(super) fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        self.writer.call(move |connection| {
            let row = Row::find(connection, &id)?.ok_or_else(|| unknown_attempt(&id))?;
            rules.check_owner(&who, &row.who, &row.path, "go on with the put of")?;
            if !row.in_progress() {
                return Err(unknown_attempt(&id));
            }
            connection
                .prepare_cached("UPDATE files SET lease = ? WHERE n = ?")?
                .execute(params![lease_end(lease), row.n])?;
            Ok(())
        })
    }

    pub(super) fn attempt(&self, id: &FileId) -> Result<Attempt> {
        let row = self.readers.with(|connection| Row::find(connection, id))?;
        let row = row.filter(|row| row.in_progress() || row.is_committed());
        row.map(Row::attempt).ok_or_else(|| unknown_attempt(id))
    }

    pub(super) fn queue_commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<PendingChange<CommitOutcome>> {
        check_length(length, versions)?;
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        let versions = versions.to_vec();
        self.writer.queue_call(move |connection| commit(connection, &rules, &who, &id, length, &versions))
    }

    pub(super) fn abandon(&self, who: &Principal, id: &FileId) -> Result<()> {
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        self.writer.call(move |connection| {
            let row = Row::find(connection, &id)?.filter(|row| row.state == schema::ATTEMPT);
            let Some(row) = row else { return Ok(()) };
            rules.check_owner(&who, &row.who, &row.path, "abandon the put of")?;
            discard(connection, row.n)
        })
    }
}

fn commit(
    connection: &Connection,
    rules: &Rules,
    who: &Principal,
    id: &FileId,
    length: u64,
    versions: &[u64],
) -> Result<CommitOutcome> {
    let row = Row::find(connection, id)?.ok_or_else(|| unknown_attempt(id))?;
    rules.check_owner(who, &row.who, &row.path, "commit the put of")?;
    if row.is_committed() {
        let done = row.committed()?;
        if done.file.length != length || done.file.versions != versions {
            return Err(NamespaceError::committed_otherwise(id));
        }
        return Ok(done);
    }
    if !row.in_progress() {
        return Err(unknown_attempt(id));
    }
    if versions.len() != row.targets.len() {
        return Err(NamespaceError::wrong_versions(versions.len(), row.targets.len()));
    }
    let old = check_destination(connection, rules, who, &row.path, row.mode)?;
    let (mut owner, mut mode, mut replaced) = (row.who, row.mode, None);
    if let Some((n, old)) = old {
        discard(connection, n)?;
        (owner, mode, replaced) = (old.owner, mode.or(Some(old.mode)), Some(old.id));
    }
    connection
        .prepare_cached(
            "UPDATE files SET state = 1, lease = NULL, owner = ?, mode = ?, length = ?, versions = ?,
             created = ?, replaced = ? WHERE n = ?",
        )?
        .execute(params![
            owner.as_str(),
            mode.unwrap_or_default().bits(),
            length as i64,
            version_bytes(versions),
            to_nanos(SystemTime::now()),
            replaced.as_ref().map(FileId::as_str),
            row.n
        ])?;
    Row::find(connection, id)?.ok_or_else(|| unknown_attempt(id))?.committed()
}

/// Checks that `who` may put a file with `mode` at `path`. Returns the row and the file that are there now.
pub(crate) fn check_destination(
    connection: &Connection,
    rules: &Rules,
    who: &Principal,
    path: &FilePath,
    mode: Option<Mode>,
) -> Result<Option<(i64, FileEntry)>> {
    if let Some(row) = Row::at(connection, path)? {
        let n = row.n;
        let file = row.entry()?;
        rules.check_replace(who, &file, mode)?;
        return Ok(Some((n, file)));
    }
    let conflict = match file_above(connection, path)? {
        Some(parent) => PathConflict::ParentIsFile(parent),
        None if let Some(tree) = tree_of(connection, &path.key())? => PathConflict::InTree(tree.path),
        None if directory_exists(connection, &DirPath::from(path))? => PathConflict::IsDirectory,
        None => return Ok(None),
    };
    Err(NamespaceError::Conflict { path: path.clone(), conflict })
}

/// Makes the file or attempt of a row garbage.
pub(crate) fn discard(connection: &Connection, n: i64) -> Result<()> {
    connection.prepare_cached("UPDATE files SET state = 2, lease = NULL WHERE n = ?")?.execute([n])?;
    Ok(())
}

/// Sets the lease of every attempt, counted from now, because no lease could be renewed while the namespace was closed.
pub(crate) fn renew_all(connection: &Connection, lease: Duration) -> Result<()> {
    check_lease(lease)?;
    connection.execute("UPDATE files SET lease = ? WHERE state = 0", params![lease_end(lease)])?;
    Ok(())
}

/// Refuses a put of a user that has too many unfinished puts.
fn check_unfinished(connection: &Connection, who: &Principal) -> Result<()> {
    let mut count = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM files WHERE owner IS NULL AND state <> 3 AND who = ? LIMIT ?)",
    )?;
    let unfinished: i64 = count.query_row(params![who.as_str(), MAX_UNFINISHED], |row| row.get(0))?;
    if unfinished < i64::from(MAX_UNFINISHED) {
        return Ok(());
    }
    Err(NamespaceError::TooManyPuts { who: who.clone(), limit: MAX_UNFINISHED.into() })
}

fn unknown_attempt(id: &FileId) -> NamespaceError {
    NamespaceError::UnknownAttempt { id: id.clone() }
}
