//! The objects that the namespace names, in the order of their names. `fsck` compares them with the objects of storage
//! nodes.

use rusqlite::{Connection, params};

use crate::rows::{COLUMNS, Row, numbers_from_bytes, stored_value, wrong_type};
use crate::{FileEntry, FileId, Namespace, Principal, Result, schema};

/// Most ids in one answer of [`Namespace::named_puts`].
pub const MAX_NAMED_PAGE: usize = 4_096;

/// A string after every id.
const AFTER_LAST_ID: &str = "g";

/// Positions in [`COLUMNS`].
const ID: usize = 1;
const STATE: usize = 2;
const TARGETS: usize = 8;

/// A put in any state. Its objects have its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPut {
    /// The name of the objects.
    pub id: FileId,
    /// Numbers of the targets that may have one.
    pub targets: Vec<u32>,
    /// The file, if it is at a path. `None`: the put is in progress, or its objects are garbage.
    pub file: Option<FileEntry>,
}

impl Namespace {
    /// Returns up to `limit` puts (at most [`MAX_NAMED_PAGE`]) with ids after `after` and up to `last`, in the order of
    /// their ids. Without `after` they begin with the first put, and without `last` they end with the last.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::NamespaceError::Damaged), or a failure of the system.
    pub fn named_puts(
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

    /// Whether `who` may do everything.
    pub fn is_administrator(&self, who: &Principal) -> bool {
        self.rules.is_administrator(who)
    }

    /// Checks that `who` may do everything.
    ///
    /// # Errors
    /// Returns [`NotAdministrator`](crate::NamespaceError::NotAdministrator) with `verb`.
    pub fn check_administrator(&self, who: &Principal, verb: &'static str) -> Result<()> {
        self.rules.check_administrator(who, verb)
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
