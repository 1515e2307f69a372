//! What is left of files and puts that are no more.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::puts::check_lease;
use crate::rows::{numbers, stored, wrong_type};
use crate::{FileId, Garbage, Namespace, NamespaceError, Result, clock};

/// Most garbage in one answer of [`Namespace::garbage`], and most attempts one call ends or held files it takes up.
pub const MAX_GARBAGE_PAGE: usize = 1_000;
/// Most ids in one call of [`Namespace::collected`].
pub const MAX_COLLECTED: usize = 10_000;

impl Namespace {
    /// Up to `limit` pieces of garbage, at most [`MAX_GARBAGE_PAGE`], after turning attempts whose lease ran
    /// out into garbage, and once more what was [`collected`](Self::collected) before its time. Each call goes
    /// on behind the last one and starts over at the end, so what cannot be collected now, for its target is
    /// down, does not hide the rest.
    ///
    /// # Errors
    /// A failure of the system.
    pub fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
        let limit = limit.min(MAX_GARBAGE_PAGE);
        let given_out = self.given_out.clone();
        self.writer.call(move |connection| {
            let now = clock::now();
            for due in [
                "UPDATE files SET state = 2, lease = NULL WHERE n IN
                 (SELECT n FROM files WHERE state = 0 AND lease <= ? ORDER BY lease LIMIT ?)",
                "UPDATE files SET state = 2 WHERE n IN
                 (SELECT n FROM files WHERE state = 3 AND lease <= ? ORDER BY lease LIMIT ?)",
            ] {
                connection.prepare_cached(due)?.execute(params![now, MAX_GARBAGE_PAGE as i64])?;
            }
            let last = given_out.load(Ordering::Relaxed);
            let mut found = page(connection, last, i64::MAX, limit)?;
            found.extend(page(connection, i64::MIN, last, limit - found.len())?);
            if let Some((n, _)) = found.last() {
                given_out.store(*n, Ordering::Relaxed);
            }
            Ok(found.into_iter().map(|(_, garbage)| garbage).collect())
        })
    }

    /// Forgets garbage whose objects are gone from all its targets. An id that is not garbage is left alone.
    ///
    /// `writable` is how long after its beginning a put's objects may be written, by whoever still has the leave to.
    /// What is collected before that comes up as garbage once more when the time is over, in case it was written again.
    ///
    /// # Errors
    /// [`TooMany`](NamespaceError::TooMany) ids, [`Invalid`](NamespaceError::Invalid) for more than
    /// [`MAX_LEASE`](crate::MAX_LEASE), or a failure of the system.
    pub fn collected(&self, ids: &[FileId], writable: Duration) -> Result<()> {
        if ids.len() > MAX_COLLECTED {
            return Err(NamespaceError::TooMany { what: "ids in one call", limit: MAX_COLLECTED as u64 });
        }
        check_lease(writable)?;
        let ids = ids.to_vec();
        let writable = i64::try_from(writable.as_nanos()).unwrap_or(i64::MAX);
        self.writer.call(move |connection| {
            let now = clock::now();
            // A put began before it was committed, and before now: the end is never too early.
            let mut forget = connection.prepare_cached(
                "DELETE FROM files WHERE id = ?1 AND state = 2
                 AND (lease IS NOT NULL OR ifnull(created, ?2) <= ?2 - ?3)",
            )?;
            let mut hold = connection.prepare_cached(
                "UPDATE files SET state = 3, lease = min(ifnull(created, ?2), ?2) + ?3
                 WHERE id = ?1 AND state = 2",
            )?;
            for id in &ids {
                forget.execute(params![id.as_str(), now, writable])?;
                hold.execute(params![id.as_str(), now, writable])?;
            }
            Ok(())
        })
    }
}

/// Garbage of the rows behind `after` up to `last`.
fn page(connection: &Connection, after: i64, last: i64, limit: usize) -> Result<Vec<(i64, Garbage)>> {
    let mut statement = connection.prepare_cached(
        "SELECT n, id, targets FROM files WHERE state = 2 AND n > ? AND n <= ? ORDER BY n LIMIT ?",
    )?;
    let mut rows = statement.query(params![after, last, limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = stored(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?;
        let targets = numbers(row.get_ref(2)?.as_blob().map_err(wrong_type)?)?;
        found.push((row.get(0)?, Garbage { id, targets }));
    }
    Ok(found)
}
