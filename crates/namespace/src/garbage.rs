//! Garbage: the objects of files and puts that do not exist any more.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::puts::check_lease;
use crate::rows::{numbers_from_bytes, stored_value, wrong_type};
use crate::{FileId, Garbage, Namespace, NamespaceError, Result, clock};

/// Most garbage in one answer of [`Namespace::garbage`], and most expired attempts or held files that one call makes
/// garbage.
pub const MAX_GARBAGE_PAGE: usize = 1_000;
/// Most ids in one call of [`Namespace::forget_collected`].
pub const MAX_COLLECTED: usize = 10_000;

impl Namespace {
    /// Returns up to `limit` pieces of garbage, at most [`MAX_GARBAGE_PAGE`]. First it makes attempts with an expired
    /// lease garbage, and also files that [`forget_collected`](Self::forget_collected) held until now. Each call
    /// continues after the last one, and starts over at the end. So garbage on a target that is down does not hide
    /// other garbage.
    ///
    /// # Errors
    /// Returns a failure of the system.
    pub fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
        let limit = limit.min(MAX_GARBAGE_PAGE);
        let garbage_cursor = self.garbage_cursor.clone();
        self.writer.call(move |connection| {
            let now = clock::now();
            for update in [
                "UPDATE files SET state = 2, lease = NULL WHERE n IN
                 (SELECT n FROM files WHERE state = 0 AND lease <= ? ORDER BY lease LIMIT ?)",
                "UPDATE files SET state = 2 WHERE n IN
                 (SELECT n FROM files WHERE state = 3 AND lease <= ? ORDER BY lease LIMIT ?)",
            ] {
                connection.prepare_cached(update)?.execute(params![now, MAX_GARBAGE_PAGE as i64])?;
            }
            let last = garbage_cursor.load(Ordering::Relaxed);
            let mut found = page(connection, last, i64::MAX, limit)?;
            found.extend(page(connection, i64::MIN, last, limit - found.len())?);
            if let Some((n, _)) = found.last() {
                garbage_cursor.store(*n, Ordering::Relaxed);
            }
            Ok(found.into_iter().map(|(_, garbage)| garbage).collect())
        })
    }

    /// Forgets garbage whose objects were removed from all its targets. An id that is not garbage has no effect.
    ///
    /// `writable` is the time after the beginning of a put in which its objects may be written, because a client may
    /// still have the permission. Garbage that is collected before is returned as garbage once more after that time, in
    /// case its objects were written again.
    ///
    /// # Errors
    /// Returns [`TooMany`](NamespaceError::TooMany) for too many ids, [`Invalid`](NamespaceError::Invalid) if
    /// `writable` is above [`MAX_LEASE`](crate::MAX_LEASE), or a failure of the system.
    pub fn forget_collected(&self, ids: &[FileId], writable: Duration) -> Result<()> {
        if ids.len() > MAX_COLLECTED {
            return Err(NamespaceError::TooMany { what: "ids in one call", limit: MAX_COLLECTED as u64 });
        }
        check_lease(writable)?;
        let ids = ids.to_vec();
        let writable = i64::try_from(writable.as_nanos()).unwrap_or(i64::MAX);
        self.writer.call(move |connection| {
            let now = clock::now();
            // A put began before its commit and before now. So the end computed from these times is never too early.
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

/// Returns garbage of the rows after `after` up to `last`.
fn page(connection: &Connection, after: i64, last: i64, limit: usize) -> Result<Vec<(i64, Garbage)>> {
    let mut statement = connection.prepare_cached(
        "SELECT n, id, targets FROM files WHERE state = 2 AND n > ? AND n <= ? ORDER BY n LIMIT ?",
    )?;
    let mut rows = statement.query(params![after, last, limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = stored_value(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?;
        let targets = numbers_from_bytes(row.get_ref(2)?.as_blob().map_err(wrong_type)?)?;
        found.push((row.get(0)?, Garbage { id, targets }));
    }
    Ok(found)
}
