//! Puts: begun, kept alive, committed or abandoned.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};

use crate::access::Rules;
use crate::layout::{MAX_FILE_BYTES, check_layout};
use crate::listing::{exists, file_above};
use crate::rows::{Row, number_bytes, stored, to_nanos, version_bytes};
use crate::targets::{MAX_CLUSTER_TARGETS, check_known};
use crate::writer::Pending;
use crate::{
    Attempt, Committed, DirPath, FileEntry, FileId, FilePath, Mode, Namespace, NamespaceError, NewFile,
    PathConflict, Principal, Result, clock, schema,
};

/// Longest lease of a put in progress.
pub const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most puts of a user that go on, or were given up and are not collected yet.
pub const MAX_UNFINISHED: u32 = 16_384;

impl Namespace {
    /// Begins to put a file. Nothing is seen at the path before [`commit`](Self::commit). A lease that is not
    /// renewed in time makes the attempt garbage; leases go by the clock of the system.
    ///
    /// # Errors
    /// [`Denied`](NamespaceError::Denied) if there is a file at the path that `who` may not write, or whose
    /// mode would change and `who` is not the owner; [`Conflict`](NamespaceError::Conflict);
    /// [`UnknownTarget`](NamespaceError::UnknownTarget); [`TooMany`](NamespaceError::TooMany) targets;
    /// [`Invalid`](NamespaceError::Invalid) for no targets, one named twice, a unit or record of 0 or above
    /// [`MAX_FILE_BYTES`], a `first` behind the last target, or a lease above [`MAX_LEASE`];
    /// [`TooManyPuts`](NamespaceError::TooManyPuts); or a failure of the system.
    pub fn begin(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<FileId> {
        self.begin_later(who, file, lease)?.wait()
    }

    /// [`begin`](Self::begin) for many at once: they share commits.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin), some now and the others when it is waited for.
    pub fn begin_later(&self, who: &Principal, file: &NewFile, lease: Duration) -> Result<Pending<FileId>> {
        check_layout(file.unit, file.first, &file.targets, file.record)?;
        check_lease(lease)?;
        let (rules, who, file) = (self.rules.clone(), who.clone(), file.clone());
        self.writer.later(move |connection| {
            check_known(connection, &file.targets)?;
            check_place(connection, &rules, &who, &file.path, file.mode)?;
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
                    ends(lease),
                    file.segments
                ],
                |row| row.get(0),
            )?;
            stored(id.parse())
        })
    }

    /// Makes the lease of an attempt last this long from now.
    ///
    /// # Errors
    /// [`UnknownAttempt`](NamespaceError::UnknownAttempt) also if it is committed or its lease ran out;
    /// [`Denied`](NamespaceError::Denied) for others than who began it;
    /// [`Invalid`](NamespaceError::Invalid) for a lease above [`MAX_LEASE`]; or a failure of the system.
    pub fn renew(&self, who: &Principal, id: &FileId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        self.writer.call(move |connection| {
            let row = Row::find(connection, &id)?.ok_or_else(|| unknown(&id))?;
            rules.check_owner(&who, &row.who, &row.path, "go on with the put of")?;
            if !row.in_progress() {
                return Err(unknown(&id));
            }
            connection
                .prepare_cached("UPDATE files SET lease = ? WHERE n = ?")?
                .execute(params![ends(lease), row.n])?;
            Ok(())
        })
    }

    /// What [`begin`](Self::begin) stored, for as long as [`commit`](Self::commit) would answer.
    ///
    /// # Errors
    /// [`UnknownAttempt`](NamespaceError::UnknownAttempt), or a failure of the system.
    pub fn attempt(&self, id: &FileId) -> Result<Attempt> {
        let row = self.readers.with(|connection| Row::find(connection, id))?;
        let row = row.filter(|row| row.in_progress() || row.is_committed());
        row.map(Row::attempt).ok_or_else(|| unknown(id))
    }

    /// Puts the file at its path, in one step with the removal of the one that was there. `length` in bytes;
    /// `versions` of the object on each target, in the order of the targets. The file belongs to the owner of
    /// the one it replaces, or else to who began the put.
    ///
    /// Repeated after a success, it changes nothing and answers the same (with the mode as it is by then),
    /// until the file is removed or replaced and [`collected`](Self::collected).
    ///
    /// # Errors
    /// [`UnknownAttempt`](NamespaceError::UnknownAttempt) if the lease ran out or the attempt was abandoned;
    /// [`Denied`](NamespaceError::Denied) for others than who began it, and as for [`begin`](Self::begin);
    /// [`Conflict`](NamespaceError::Conflict); [`Invalid`](NamespaceError::Invalid) for a length above
    /// [`MAX_FILE_BYTES`], not one version for each target, or others than in a first commit; or a failure of
    /// the system. After any of these but the first the attempt goes on as before.
    pub fn commit(&self, who: &Principal, id: &FileId, length: u64, versions: &[u64]) -> Result<Committed> {
        self.commit_later(who, id, length, versions)?.wait()
    }

    /// [`commit`](Self::commit) for many at once: they share commits.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit), some now and the others when it is waited for.
    pub fn commit_later(
        &self,
        who: &Principal,
        id: &FileId,
        length: u64,
        versions: &[u64],
    ) -> Result<Pending<Committed>> {
        if length > MAX_FILE_BYTES {
            return Err(NamespaceError::invalid(
                format!("a file of {length} bytes is too long"),
                "stay below 2^63 bytes",
            ));
        }
        if versions.len() > MAX_CLUSTER_TARGETS {
            return Err(NamespaceError::TooMany { what: "versions", limit: MAX_CLUSTER_TARGETS as u64 });
        }
        let (rules, who, id) = (self.rules.clone(), who.clone(), id.clone());
        let versions = versions.to_vec();
        self.writer.later(move |connection| commit(connection, &rules, &who, &id, length, &versions))
    }

    /// Ends an attempt; it becomes garbage. Fine if it ended already; a commit is not undone.
    ///
    /// # Errors
    /// [`Denied`](NamespaceError::Denied) for others than who began it, or a failure of the system.
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
) -> Result<Committed> {
    let row = Row::find(connection, id)?.ok_or_else(|| unknown(id))?;
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
        return Err(unknown(id));
    }
    if versions.len() != row.targets.len() {
        return Err(NamespaceError::invalid(
            format!("{} versions were given for {} targets", versions.len(), row.targets.len()),
            "give one for each target",
        ));
    }
    let old = check_place(connection, rules, who, &row.path, row.mode)?;
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
    Row::find(connection, id)?.ok_or_else(|| unknown(id))?.committed()
}

/// Whether `who` may have a file with `mode` at `path`. Returns the row and the file that are there now.
pub(crate) fn check_place(
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
        None if exists(connection, &DirPath::from(path))? => PathConflict::IsDirectory,
        None => return Ok(None),
    };
    Err(NamespaceError::Conflict { path: path.clone(), conflict })
}

/// Makes the row garbage.
pub(crate) fn discard(connection: &Connection, n: i64) -> Result<()> {
    connection.prepare_cached("UPDATE files SET state = 2, lease = NULL WHERE n = ?")?.execute([n])?;
    Ok(())
}

/// Makes the lease of every attempt last this long from now: none shall have run out while nobody could renew it.
pub(crate) fn renew_all(connection: &Connection, lease: Duration) -> Result<()> {
    check_lease(lease)?;
    connection.execute("UPDATE files SET lease = ? WHERE state = 0", params![ends(lease)])?;
    Ok(())
}

/// Refuses a put of a user who has too many that are not finished.
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
        return Err(NamespaceError::invalid("the lease is longer than 30 days", "renew a shorter one"));
    }
    Ok(())
}

/// When a lease that begins now ends, in nanoseconds since 1970.
fn ends(lease: Duration) -> i64 {
    let nanos = i64::try_from(lease.as_nanos()).unwrap_or(i64::MAX);
    clock::now().saturating_add(nanos)
}

fn unknown(id: &FileId) -> NamespaceError {
    NamespaceError::UnknownAttempt { id: id.clone() }
}
