//! Garbage: the objects of files and puts that do not exist any more.

use rusqlite::{Connection, params};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::SqliteNamespace;
use super::rows::{numbers_from_bytes, stored_value, wrong_type};
use crate::checks::check_lease;
use crate::{FileId, Garbage, MAX_COLLECTED, MAX_GARBAGE_PAGE, NamespaceError, Result, clock};

impl SqliteNamespace {
    pub(super) fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
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

    pub(super) fn forget_collected(&self, ids: &[FileId], writable: Duration) -> Result<()> {
        if ids.len() > MAX_COLLECTED {
            return Err(NamespaceError::TooMany { what: "ids in one call", limit: MAX_COLLECTED as u64 });
        }
        check_lease(writable)?;
        let ids = ids.to_vec();
        let writable = i64::try_from(writable.as_nanos()).unwrap_or(i64::MAX);
        self.writer.call(move |connection| {
            let now = clock::now();
            // A put began before its commit and before now, and the two clocks may differ. So the earlier of these times counts, and
            // the end that is computed from it is never too early.
            let mut forget = connection.prepare_cached(
                "DELETE FROM files WHERE id = ?1 AND state = 2
                 AND (lease IS NOT NULL OR min(ifnull(created, ?2), ?2) <= ?2 - ?3)",
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
