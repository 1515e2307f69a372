//! What is left of files and puts that are no more.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rusqlite::{Connection, params};

use crate::rows::{numbers, stored, to_nanos, wrong_type};
use crate::{FileId, Garbage, Namespace, NamespaceError, Result};

/// Most garbage in one answer of [`Namespace::garbage`], and most attempts one call ends.
pub const MAX_GARBAGE_PAGE: usize = 1_000;
/// Most ids in one call of [`Namespace::collected`].
pub const MAX_COLLECTED: usize = 10_000;

impl Namespace {
    /// Up to `limit` pieces of garbage, at most [`MAX_GARBAGE_PAGE`], after turning attempts whose lease ran
    /// out into garbage. Each call goes on behind the last one and starts over at the end, so what cannot be
    /// collected now, for its target is down, does not hide the rest.
    ///
    /// # Errors
    /// A failure of the system.
    pub fn garbage(&self, limit: usize) -> Result<Vec<Garbage>> {
        let limit = limit.min(MAX_GARBAGE_PAGE);
        let given_out = self.given_out.clone();
        self.writer.call(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE files SET state = 2, lease = NULL WHERE n IN
                     (SELECT n FROM files WHERE state = 0 AND lease <= ? ORDER BY lease LIMIT ?)",
                )?
                .execute(params![to_nanos(SystemTime::now()), MAX_GARBAGE_PAGE as i64])?;
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
    /// # Errors
    /// [`TooMany`](NamespaceError::TooMany) ids, or a failure of the system.
    pub fn collected(&self, ids: &[FileId]) -> Result<()> {
        if ids.len() > MAX_COLLECTED {
            return Err(NamespaceError::TooMany { what: "ids in one call", limit: MAX_COLLECTED as u64 });
        }
        let ids = ids.to_vec();
        self.writer.call(move |connection| {
            let mut statement = connection.prepare_cached("DELETE FROM files WHERE id = ? AND state = 2")?;
            for id in &ids {
                statement.execute([id.as_str()])?;
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
