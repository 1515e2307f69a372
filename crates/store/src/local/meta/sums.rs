//! Sums of blocks, in segments.

use std::ops::Range;

use rusqlite::{OptionalExtension, Transaction, params};

use super::{FORMAT_WITHOUT_SUMS, Meta};
use crate::error::RESTORE;
use crate::local::sums::SumChanges;
use crate::sums::{BlockSum, Segment};
use crate::{MAX_OBJECT_BYTES, Result, StoreError};

impl Meta {
    /// The sums of a segment of an object. If none are stored, all its blocks are `default_sum`.
    pub(in crate::local) fn segment(
        &self,
        birth: u64,
        segment: u64,
        default_sum: BlockSum,
    ) -> Result<Segment> {
        if self.format == FORMAT_WITHOUT_SUMS {
            return Ok(Segment::filled_with(default_sum));
        }
        let bytes: Option<Vec<u8>> = self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT sums FROM sums WHERE object = ? AND segment = ?")?;
            statement.query_row(params![birth as i64, segment as i64], |row| row.get(0)).optional()
        })?;
        bytes.map_or(Ok(Segment::filled_with(default_sum)), |bytes| self.read_segment(birth, segment, &bytes))
    }

    fn read_segment(&self, birth: u64, segment: u64, bytes: &[u8]) -> Result<Segment> {
        Segment::from_bytes(bytes).ok_or_else(|| StoreError::Damaged {
            what: format!(
                "{} has no valid sums of segment {segment} of object number {birth}",
                self.path.display()
            ),
            remedy: RESTORE,
        })
    }

    /// The numbers of the stored segments of an object in a range, at most `limit`, in order.
    pub(in crate::local) fn segments(&self, birth: u64, range: Range<u64>, limit: usize) -> Result<Vec<u64>> {
        let numbers: Vec<i64> = self.query("read", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT segment FROM sums WHERE object = ? AND segment >= ? AND segment < ?
                 ORDER BY segment LIMIT ?",
            )?;
            let (start, end) = (range.start as i64, range.end.min(MAX_OBJECT_BYTES) as i64);
            statement.query_map(params![birth as i64, start, end, limit as i64], |row| row.get(0))?.collect()
        })?;
        numbers.into_iter().map(|number| self.unsigned(number, "the number of a segment")).collect()
    }

    /// Stores sums of an object whose bytes did not change.
    pub(in crate::local) fn put_sums(&self, birth: u64, sums: &SumChanges) -> Result<()> {
        self.commit("store sums in", |transaction| put_sums(transaction, birth, sums))
    }
}

pub(super) fn put_sums(transaction: &Transaction<'_>, birth: u64, sums: &SumChanges) -> rusqlite::Result<()> {
    if let Some(cut) = sums.cut {
        let mut statement =
            transaction.prepare_cached("DELETE FROM sums WHERE object = ? AND segment >= ?")?;
        statement.execute(params![birth as i64, cut as i64])?;
    }
    for (&number, segment) in &sums.segments {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO sums VALUES (?1, ?2, ?3) ON CONFLICT (object, segment) DO UPDATE SET sums = ?3",
        )?;
        statement.execute(params![birth as i64, number as i64, segment.to_bytes()])?;
    }
    Ok(())
}
