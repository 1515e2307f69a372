//! The objects that the namespace names, in the order of their names. `fsck` compares them with the objects of storage
//! nodes.

use rusqlite::{Connection, params};

use super::rows::{COLUMNS, Row, numbers_from_bytes, stored_value, wrong_type};
use super::{SqliteNamespace, schema};
use crate::{FileId, MAX_NAMED_PAGE, NamedPut, Result};

/// A string after every id.
const AFTER_LAST_ID: &str = "g";

/// Positions in [`COLUMNS`].
const ID: usize = 1;
const STATE: usize = 2;
const TARGETS: usize = 8;

impl SqliteNamespace {
    pub(super) fn named_puts(
        &self,
        after: Option<&FileId>,
        last: Option<&FileId>,
        limit: usize,
    ) -> Result<Vec<NamedPut>> {
        let limit = limit.min(MAX_NAMED_PAGE);
        let after = after.map_or("", FileId::as_str);
        let last = last.map_or(AFTER_LAST_ID, FileId::as_str);
        self.readers.with(|connection| page(connection, after, last, limit))
    }
}

fn page(connection: &Connection, after: &str, last: &str, limit: usize) -> Result<Vec<NamedPut>> {
    let sql = format!("SELECT {COLUMNS} FROM files WHERE id > ? AND id <= ? ORDER BY id LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, last, limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let live = row.get::<_, i64>(STATE)? == schema::LIVE;
        found.push(NamedPut {
            id: stored_value(row.get_ref(ID)?.as_str().map_err(wrong_type)?.parse())?,
            targets: numbers_from_bytes(row.get_ref(TARGETS)?.as_blob().map_err(wrong_type)?)?,
            file: if live { Some(Row::read(row)?.entry()?) } else { None },
        });
    }
    Ok(found)
}
