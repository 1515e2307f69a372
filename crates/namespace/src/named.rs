//! Which objects the namespace names, in the order of their names: what `fsck` compares with what storage nodes have.

use rusqlite::{Connection, params};

use crate::rows::{COLUMNS, Row, numbers, stored, wrong_type};
use crate::{FileEntry, FileId, Namespace, Principal, Result, schema};

/// Most ids in one answer of [`Namespace::named`].
pub const MAX_NAMED_PAGE: usize = 4_096;

/// Behind the last id there can be.
const BEHIND_ALL: &str = "g";

/// Positions in [`COLUMNS`].
const ID: usize = 1;
const STATE: usize = 2;
const TARGETS: usize = 8;

/// A put, whatever became of it: its objects have its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name of the objects.
    pub id: FileId,
    /// Numbers of the targets that may hold one.
    pub targets: Vec<u32>,
    /// The file, if it is at a path. `None`: the put is under way, or its objects are to be cleared away.
    pub file: Option<FileEntry>,
}

impl Namespace {
    /// Up to `limit` puts (at most [`MAX_NAMED_PAGE`]) with ids behind `after` and up to `last`, in the order of their ids.
    /// Without `after` they begin with the first, without `last` they end with the last.
    ///
    /// # Errors
    /// [`Damaged`](crate::NamespaceError::Damaged), or a failure of the system.
    pub fn named(&self, after: Option<&FileId>, last: Option<&FileId>, limit: usize) -> Result<Vec<Named>> {
        let limit = limit.min(MAX_NAMED_PAGE);
        let after = after.map_or("", FileId::as_str);
        let last = last.map_or(BEHIND_ALL, FileId::as_str);
        self.readers.with(|connection| page(connection, after, last, limit))
    }

    /// Passes if `who` may do everything.
    ///
    /// # Errors
    /// [`NotAdministrator`](crate::NamespaceError::NotAdministrator), which says what `who` may not do.
    pub fn check_administrator(&self, who: &Principal, verb: &'static str) -> Result<()> {
        self.rules.check_administrator(who, verb)
    }
}

fn page(connection: &Connection, after: &str, last: &str, limit: usize) -> Result<Vec<Named>> {
    let sql = format!("SELECT {COLUMNS} FROM files WHERE id > ? AND id <= ? ORDER BY id LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, last, limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let live = row.get::<_, i64>(STATE)? == schema::LIVE;
        found.push(Named {
            id: stored(row.get_ref(ID)?.as_str().map_err(wrong_type)?.parse())?,
            targets: numbers(row.get_ref(TARGETS)?.as_blob().map_err(wrong_type)?)?,
            file: if live { Some(Row::read(row)?.entry()?) } else { None },
        });
    }
    Ok(found)
}
