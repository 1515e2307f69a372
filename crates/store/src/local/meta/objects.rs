//! One row for each object.

use std::ops::Range;

use rusqlite::{OptionalExtension, Row as SqlRow, params};

use super::attributes::{Changes, put_attributes};
use super::sums::put_sums;
use super::{COLUMNS, Meta};
use crate::error::RESTORE;
use crate::intervals::IntervalSet;
use crate::local::sums::SumChanges;
use crate::sums::BlockSum;
use crate::{MAX_OBJECT_BYTES, ObjectId, Result, StoreError};

/// The durable state of one object. `birth` is its first version, which no other object ever has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::local) struct Row {
    pub(in crate::local) birth: u64,
    pub(in crate::local) version: u64,
    pub(in crate::local) length: u64,
    /// Nanoseconds since 1970, as is `lease`.
    pub(in crate::local) modified: i64,
    pub(in crate::local) lease: Option<i64>,
    /// Range of the bytes up to `length` that may contain writes after `version`.
    pub(in crate::local) dirty: Option<Range<u64>>,
    pub(in crate::local) written: IntervalSet,
    /// Whether blocks without a sum were never written. Otherwise they are unknown.
    pub(in crate::local) summed: bool,
}

/// The new state of an object that had unflushed changes when the last process stopped.
pub(in crate::local) struct SettledObject {
    pub(in crate::local) birth: u64,
    pub(in crate::local) version: u64,
    pub(in crate::local) sums: SumChanges,
    pub(in crate::local) summed: bool,
}

impl Row {
    /// The sum of blocks without a sum in SQLite: zeros, or unknown.
    pub(in crate::local) fn default_sum(&self) -> BlockSum {
        if self.summed { BlockSum::Zeros } else { BlockSum::Unknown }
    }
}

impl Meta {
    pub(in crate::local) fn load(&self, id: &ObjectId) -> Result<Option<Row>> {
        let raw = self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {} FROM objects WHERE id = ?", self.columns()))?;
            statement.query_row([id.as_str()], RawRow::read).optional()
        })?;
        raw.map(|raw| Ok(self.check(raw)?.1)).transpose()
    }

    /// Up to `limit` objects that had unflushed writes when the last process stopped, with birth numbers above `after`.
    pub(in crate::local) fn dirty(&self, after: u64, limit: usize) -> Result<Vec<(ObjectId, Row)>> {
        let raw = self.query("read", |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {} FROM objects WHERE dirty <> 0 AND birth > ? ORDER BY birth LIMIT ?",
                self.columns()
            ))?;
            statement
                .query_map(params![after as i64, limit as i64], RawRow::read)?
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        raw.into_iter().map(|raw| self.check(raw)).collect()
    }

    pub(in crate::local) fn list(
        &self,
        prefix: &str,
        after: Option<&ObjectId>,
        limit: usize,
    ) -> Result<Vec<ObjectId>> {
        let names = self.query("list", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM objects WHERE id > ?1 AND id >= ?2 AND id < ?3 ORDER BY id LIMIT ?4",
            )?;
            // Names are ASCII, so this comes after every name with the prefix.
            let above = format!("{prefix}\u{7f}");
            let after = after.map_or("", ObjectId::as_str);
            let rows = statement.query_map(params![after, prefix, above, limit as i64], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        })?;
        names.into_iter().map(|name| self.check_id(&name)).collect()
    }

    /// Makes `row`, the attribute changes and the sums durable together.
    pub(in crate::local) fn put(
        &self,
        id: &ObjectId,
        row: &Row,
        changes: &Changes,
        sums: &SumChanges,
    ) -> Result<()> {
        self.commit("store an object in", |transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "INSERT INTO objects ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (birth) DO UPDATE SET version = ?3, length = ?4, modified = ?5, lease = ?6,
                 dirty = ?7, written = ?8, dirty_start = ?9, dirty_end = ?10, summed = ?11"
            ))?;
            let (birth, version, length) = (row.birth as i64, row.version as i64, row.length as i64);
            let written = row.written.to_bytes();
            let range = row.dirty.clone().unwrap_or(0..0);
            statement.execute(params![
                birth,
                id.as_str(),
                version,
                length,
                row.modified,
                row.lease,
                row.dirty.is_some(),
                written,
                range.start as i64,
                range.end.min(MAX_OBJECT_BYTES) as i64,
                row.summed,
            ])?;
            put_attributes(transaction, row.birth, changes)?;
            put_sums(transaction, row.birth, sums)
        })
    }

    /// Marks that the file may from now on differ from its row, in `range` and after `length`. It has at least `length`
    /// bytes.
    pub(in crate::local) fn mark_dirty(&self, birth: u64, length: u64, range: &Range<u64>) -> Result<()> {
        self.commit("mark an object in", |transaction| {
            let mut statement = transaction.prepare_cached(
                "UPDATE objects SET dirty = 1, length = ?, dirty_start = ?, dirty_end = ? WHERE birth = ?",
            )?;
            let (start, end) = (range.start as i64, range.end.min(MAX_OBJECT_BYTES) as i64);
            statement.execute(params![length as i64, start, end, birth as i64]).map(|_| ())
        })
    }

    pub(in crate::local) fn set_lease(&self, birth: u64, lease: i64) -> Result<()> {
        self.commit("renew a lease in", |transaction| {
            transaction.execute("UPDATE objects SET lease = ? WHERE birth = ?", params![lease, birth as i64])
        })?;
        Ok(())
    }

    pub(in crate::local) fn delete(&self, birth: u64) -> Result<()> {
        self.commit("remove an object from", |transaction| {
            transaction.execute("DELETE FROM attributes WHERE object = ?", [birth as i64])?;
            transaction.execute("DELETE FROM sums WHERE object = ?", [birth as i64])?;
            transaction.execute("DELETE FROM objects WHERE birth = ?", [birth as i64])
        })?;
        Ok(())
    }

    /// Stores the new versions of recovered objects, and their remaining sums.
    pub(in crate::local) fn put_settled(&self, objects: &[SettledObject]) -> Result<()> {
        self.commit("recover objects in", |transaction| {
            let mut statement = transaction
                .prepare_cached("UPDATE objects SET dirty = 0, version = ?, summed = ? WHERE birth = ?")?;
            for SettledObject { birth, version, sums, summed } in objects {
                statement.execute(params![*version as i64, summed, *birth as i64])?;
                put_sums(transaction, *birth, sums)?;
            }
            Ok(())
        })
    }

    fn check_id(&self, name: &str) -> Result<ObjectId> {
        let damaged = |error| StoreError::Damaged {
            what: format!("{} lists an object with an impossible name ({error})", self.path.display()),
            remedy: RESTORE,
        };
        ObjectId::new(name).map_err(damaged)
    }

    fn check(&self, raw: RawRow) -> Result<(ObjectId, Row)> {
        let id = self.check_id(&raw.id)?;
        let length = self.unsigned(raw.length, "a length")?;
        let written = IntervalSet::from_bytes(&raw.written, length).ok_or_else(|| StoreError::Damaged {
            what: format!("{} has no valid written intervals of object {id}", self.path.display()),
            remedy: RESTORE,
        })?;
        let dirty = self.unsigned(raw.dirty_start, "the start of a range")?
            ..self.unsigned(raw.dirty_end, "the end of a range")?;
        let row = Row {
            birth: self.unsigned(raw.birth, "a birth number")?,
            version: self.unsigned(raw.version, "a version")?,
            length,
            modified: raw.modified,
            lease: raw.lease,
            dirty: (raw.dirty != 0).then_some(dirty),
            written,
            summed: raw.summed != 0,
        };
        Ok((id, row))
    }
}

/// An unchecked row from SQLite.
struct RawRow {
    birth: i64,
    id: String,
    version: i64,
    length: i64,
    modified: i64,
    lease: Option<i64>,
    dirty: i64,
    written: Vec<u8>,
    dirty_start: i64,
    dirty_end: i64,
    summed: i64,
}

impl RawRow {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            birth: row.get(0)?,
            id: row.get(1)?,
            version: row.get(2)?,
            length: row.get(3)?,
            modified: row.get(4)?,
            lease: row.get(5)?,
            dirty: row.get(6)?,
            written: row.get(7)?,
            dirty_start: row.get(8)?,
            dirty_end: row.get(9)?,
            summed: row.get(10)?,
        })
    }
}
