//! Puts: their beginning, leases, commits and ends.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};

use crate::access::Rules;
use crate::attached::tree_of;
use crate::layout::{MAX_FILE_BYTES, check_layout};
use crate::listing::{directory_exists, file_above};
use crate::rows::{Row, number_bytes, stored_value, to_nanos, version_bytes};
use crate::targets::{MAX_CLUSTER_TARGETS, check_targets};
use crate::writer::PendingChange;
use crate::{
    Attempt, CommitOutcome, DirPath, FileEntry, FileId, FilePath, Mode, Namespace, NamespaceError, NewFile,
    PathConflict, Principal, Result, clock, schema,
};

/// Longest lease of a put in progress.
pub const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most puts of a user that are in progress, or were abandoned and are not collected yet.
pub const MAX_UNFINISHED: u32 = 16_384;

impl Namespace {
    /// Begins a put of a file. Nothing is visible at the path before [`commit`](Self::commit). If the lease is not
    /// renewed in time, the attempt becomes garbage. Leases follow the clock of the system.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) if there is a file at the path that `who` may not write, or if its
    /// mode would change and `who` is not the owner; [`Conflict`](NamespaceError::Conflict);
    /// [`UnknownTarget`](NamespaceError::UnknownTarget); [`TooMany`](NamespaceError::TooMany) for too many targets;
    /// [`Invalid`](NamespaceError::Invalid) for no targets, a target that is named twice, a unit or record of 0 or
    /// above [`MAX_FILE_BYTES`], a `first` after the last target, or a lease above [`MAX_LEASE`];
    /// [`TooManyPuts`](NamespaceError::TooManyPuts); or a failure of the system.
    pub fn begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<FileId> {
        self.queue_begin(who, file, lease)?.wait()
    }

    /// [`begin`](Self::begin) without a wait, so that many puts share commits.
    ///
    /// # Errors
    /// Returns some of the errors of [`begin`](Self::begin) at once. [`PendingChange::wait`] returns the others.
    pub fn queue_begin(
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

    /// Sets the lease of an attempt, counted from now.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt), also if it is committed or its lease expired;
    /// [`Denied`](NamespaceError::Denied) if another user began it;
    /// [`Invalid`](NamespaceError::Invalid) for a lease above [`MAX_LEASE`]; or a failure of the system.
    pub fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
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

    /// Returns the put that [`begin`](Self::begin) stored, as long as [`commit`](Self::commit) knows it.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt), or a failure of the system.
    pub fn attempt(&self, id: &FileId) -> Result<Attempt> {
        let row = self.readers.with(|connection| Row::find(connection, id))?;
        let row = row.filter(|row| row.in_progress() || row.is_committed());
        row.map(Row::attempt).ok_or_else(|| unknown_attempt(id))
    }

    /// Puts the file at its path and removes the file that was there, in one step. `length` is in bytes. `versions` are
    /// the versions of the object on each target, in the order of the targets. The file belongs to the owner of the
    /// file that it replaces, or else to the user that began the put.
    ///
    /// After a success, a repeated call changes nothing and has the same answer (with the mode at that time). This ends
    /// when the file was removed or replaced and [`forget_collected`](Self::forget_collected) was called.
    ///
    /// # Errors
    /// Returns [`UnknownAttempt`](NamespaceError::UnknownAttempt) if the lease expired or the attempt was abandoned;
    /// [`Denied`](NamespaceError::Denied) if another user began it, and as for [`begin`](Self::begin);
    /// [`Conflict`](NamespaceError::Conflict); [`Invalid`](NamespaceError::Invalid) for a length above
    /// [`MAX_FILE_BYTES`], a wrong number of versions, or a length or versions that differ from those of the first
    /// commit; or a failure of the system. After any of these but the first, the attempt stays in progress.
    pub fn commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<CommitOutcome> {
        self.queue_commit(who, id, length, versions)?.wait()
    }

    /// [`commit`](Self::commit) without a wait, so that many puts share commits.
    ///
    /// # Errors
    /// Returns some of the errors of [`commit`](Self::commit) at once. [`PendingChange::wait`] returns the others.
    pub fn queue_commit(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<PendingChange<CommitOutcome>> {
        if length > MAX_FILE_BYTES {
            return Err(NamespaceError::invalid(
                format!("a file of {length} bytes is too long"),
                "use less than 2^63 bytes",
            ));
        }
        if versions.len() > MAX_CLUSTER_TARGETS {
            return Err(NamespaceError::TooMany { what: "versions", limit: MAX_CLUSTER_TARGETS as u64 });
        }
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        let versions = versions.to_vec();
        self.writer.queue_call(move |connection| commit(connection, &rules, &who, &id, length, &versions))
    }

    /// Ends an attempt, which becomes garbage. If it has ended already, this does nothing. A commit is not undone.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) if another user began it, or a failure of the system.
    pub fn abandon(&self, who: &Principal, id: &FileId) -> Result<()> {
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
            return Err(NamespaceError::invalid(
                format!("put {id} is committed with another length or other versions"),
                "begin another put to change the file",
            ));
        }
        return Ok(done);
    }
    if !row.in_progress() {
        return Err(unknown_attempt(id));
    }
    if versions.len() != row.targets.len() {
        return Err(NamespaceError::invalid(
            format!("{} versions were given for {} targets", versions.len(), row.targets.len()),
            "give one version for each target",
        ));
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

pub(crate) fn check_lease(lease: Duration) -> Result<()> {
    if lease > MAX_LEASE {
        return Err(NamespaceError::invalid("the lease is longer than 30 days", "use a shorter lease"));
    }
    Ok(())
}

/// End of a lease that begins now, in nanoseconds since 1970.
fn lease_end(lease: Duration) -> i64 {
    let nanos = i64::try_from(lease.as_nanos()).unwrap_or(i64::MAX);
    clock::now().saturating_add(nanos)
}

fn unknown_attempt(id: &FileId) -> NamespaceError {
    NamespaceError::UnknownAttempt { id: id.clone() }
}
