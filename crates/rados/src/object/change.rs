//! Changes of one object.
//!
//! Bytes go to the pieces at once, and the record is written with the next flush. Before the first change after a flush the stored record is
//! marked. So recovery knows that bytes may be newer than the record, gives the object a new version, and cuts off what lies after its end.
//! A change that frees bytes (`punch`, `truncate`) writes the record first: it never names bytes that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use gristmill_store::rules::{IntervalSet, names_after};
use gristmill_store::{AttributeChange, Extent, ObjectId, Result, StoreError};
use rustix::io::Errno;

use super::{Object, after, damaged_head, entries, piece_name};
use crate::access::Access;
use crate::client::{Action, Change};
use crate::piece::{MAX_OBJECT, PIECE_BYTES, head, piece, pieces_of, split};
use crate::record::{CHANGED_AT, Record};

/// Most writes in one change of a piece. A storage daemon serves nothing else of a placement group while it makes a change, so more become
/// one long write.
const MAX_WRITES: usize = 64;

/// An object that is changed.
pub(crate) struct ObjectChange<'a> {
    pub access: &'a Access,
    pub id: &'a ObjectId,
    pub object: &'a mut Object,
}

impl ObjectChange<'_> {
    fn failed(&self, op: &'static str) -> impl Fn(Errno) -> StoreError + use<'_> {
        self.access.failed(op, self.id)
    }

    /// Gives the object a new version.
    fn bump(&mut self) {
        self.object.record.version = self.access.next_version();
        self.object.record.modified = self.access.now();
    }

    /// Notes with the stored record that the object may change.
    fn mark(&mut self) -> Result<()> {
        if !self.object.marked {
            let mark = Action::Write { offset: CHANGED_AT, bytes: &[1] };
            self.head_changed(vec![Action::MustExist, mark])?;
            self.object.marked = true;
        }
        self.object.unflushed = true;
        Ok(())
    }

    fn head_changed(&self, actions: Vec<Action<'_>>) -> Result<()> {
        self.access.pool.change(&head(self.id), actions).map_err(|errno| match errno {
            Errno::NOENT => damaged_head(self.access, self.id),
            errno => self.failed("write")(errno),
        })
    }

    /// Stores the record and changes of attributes. The record keeps its mark while there may be a tail, so that recovery cuts it off.
    fn store(&mut self, attributes: &[AttributeChange<'_>]) -> Result<()> {
        let marked = self.object.has_tail;
        let bytes = self.object.record.to_bytes(marked);
        let actions = [Action::MustExist, Action::WriteWhole(&bytes)].into_iter().chain(entries(attributes));
        // If Ceph does not answer in time, this record may still arrive. The next change marks it again, and comes after it.
        self.object.marked = false;
        self.head_changed(actions.collect())?;
        (self.object.marked, self.object.unflushed) = (marked, false);
        Ok(())
    }

    /// Stores another lease. If that fails, the object keeps the one that it had.
    fn store_lease(&mut self, lease: Option<i64>) -> Result<()> {
        let before = std::mem::replace(&mut self.object.record.lease, lease);
        self.store(&[]).inspect_err(|_| self.object.record.lease = before)
    }

    /// Stores the record of a change that frees bytes, also in a full pool, and takes it for that of the object, which is marked. If that fails, the
    /// object is as before.
    fn store_before_freeing(&mut self, record: Record) -> Result<()> {
        let bytes = record.to_bytes(true);
        let actions = vec![Action::MustExist, Action::WriteWhole(&bytes)];
        self.access.pool.change_in_full_pool(&head(self.id), actions).map_err(self.failed("write"))?;
        self.object.record = record;
        Ok(())
    }

    pub fn flush(&mut self) -> Result<()> {
        if self.object.unflushed { self.store(&[]) } else { Ok(()) }
    }

    /// Cuts off what an operation that failed may have left after the end, before the object grows.
    fn cut_tail(&mut self) -> Result<()> {
        if self.object.has_tail {
            self.free_after(self.object.record.length)?;
            self.object.has_tail = false;
        }
        Ok(())
    }

    /// Removes pieces after `length`, and the end of the piece in which it lies.
    fn free_after(&mut self, length: u64) -> Result<()> {
        let record = &self.object.record;
        let mut freed: Vec<_> = record
            .pieces
            .range(pieces_of(length)..)
            .map(|(index, salt)| Change {
                name: piece_name(self.id, record, *index, *salt),
                actions: vec![Action::Remove],
            })
            .collect();
        let last = pieces_of(length).saturating_sub(1);
        if let Some(&salt) = record.pieces.get(&last) {
            let actions = vec![Action::Truncate(length - last * PIECE_BYTES)];
            freed.push(Change { name: piece_name(self.id, record, last, salt), actions });
        }
        self.access.pool.change_each(freed, Errno::NOENT).map_err(self.failed("free the end of"))?;
        // Before, their names were needed to try again: a new piece could have the same name.
        drop(self.object.record.pieces.split_off(&pieces_of(length)));
        Ok(())
    }

    /// Writes `data` over `extents`, whose last byte is before `end`.
    pub fn write(&mut self, extents: &[Extent], end: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        check_length(end)?;
        let insert = |written: &mut IntervalSet| {
            extents.iter().for_each(|extent| written.insert(extent.offset..extent.offset + extent.len));
        };
        self.object.record.written.check_change(extents.len(), insert)?;
        if end > self.object.record.length {
            self.cut_tail()?;
        }
        self.mark()?;
        // Whatever happens now, the bytes may be others than before.
        self.bump();
        let mut parts: BTreeMap<u64, Vec<Part<'_>>> = BTreeMap::new();
        let mut rest = data;
        for extent in extents.iter().filter(|extent| extent.len > 0) {
            for (index, range) in split(extent.offset..extent.offset + extent.len) {
                let (bytes, others) = rest.split_at((range.end - range.start) as usize);
                rest = others;
                parts.entry(index).or_default().push(Part { offset: range.start, bytes });
            }
        }
        for index in parts.keys() {
            self.place(*index);
        }
        let mut joined = Vec::new();
        for (&index, parts) in parts.iter().filter(|(_, parts)| parts.len() > MAX_WRITES) {
            joined.push((index, self.join(index, parts)?));
        }
        for (index, (offset, bytes)) in &joined {
            parts.insert(*index, vec![Part { offset: *offset, bytes }]);
        }
        let Object { record, .. } = &*self.object;
        let changes = parts.iter().map(|(index, parts)| {
            let salt = record.pieces.get(index).copied().unwrap_or_default();
            Change {
                name: piece_name(self.id, record, *index, salt),
                actions: parts.iter().map(Part::write).collect(),
            }
        });
        if let Err(errno) = self.access.pool.change_all(changes) {
            self.object.has_tail = true;
            return Err(self.failed("write")(errno));
        }
        insert(&mut self.object.record.written);
        self.object.record.length = self.object.record.length.max(end);
        Ok(())
    }

    /// Many parts of a piece as one: the bytes of the piece from the first of them to the last, with the new ones in place. The first number is
    /// the offset in the piece.
    fn join(&self, index: u64, parts: &[Part<'_>]) -> Result<(u64, Vec<u8>)> {
        let start = parts.iter().map(|part| part.offset).min().unwrap_or_default();
        let end = parts.iter().map(|part| part.offset + part.bytes.len() as u64).max().unwrap_or_default();
        let mut bytes = vec![0; (end - start) as usize];
        let first = index * PIECE_BYTES + start;
        let there = self.object.record.length.saturating_sub(first).min(bytes.len() as u64);
        if let Some(there_now) = bytes.get_mut(..there as usize) {
            self.object.read(self.access, self.id, &[Extent { offset: first, len: there }], there_now)?;
        }
        for part in parts {
            let from = (part.offset - start) as usize;
            if let Some(to) = bytes.get_mut(from..from + part.bytes.len()) {
                to.copy_from_slice(part.bytes);
            }
        }
        Ok((start, bytes))
    }

    /// Decides where a piece will lie that does not exist yet.
    fn place(&mut self, index: u64) {
        let (id, access) = (self.id, self.access);
        let generation = self.object.record.generation;
        let salt = |salt| piece(id, generation, index, salt);
        self.object.record.pieces.entry(index).or_insert_with(|| access.placement.salt(&access.pool, salt));
    }

    pub fn punch(&mut self, range: Range<u64>) -> Result<()> {
        let range = range.start..range.end.min(self.object.record.length);
        if range.is_empty() {
            return Ok(());
        }
        self.object.record.written.check_change(1, |written| written.remove(range.clone()))?;
        self.mark()?;
        self.bump();
        let mut after = self.object.record.clone();
        after.written.remove(range.clone());
        self.store_before_freeing(after)?;
        let record = &self.object.record;
        let first = record.pieces.range(range.start / PIECE_BYTES..pieces_of(range.end));
        let zeros = first.map(|(&index, &salt)| {
            let start = index * PIECE_BYTES;
            let (from, to) = (range.start.max(start) - start, range.end.min(start + PIECE_BYTES) - start);
            let actions = vec![Action::Zero { offset: from, bytes: to - from }];
            Change { name: piece_name(self.id, record, index, salt), actions }
        });
        self.access.pool.change_each(zeros, Errno::NOENT).map_err(self.failed("punch"))
    }

    pub fn truncate(&mut self, length: u64) -> Result<()> {
        check_length(length)?;
        let before = self.object.record.length;
        if length == before {
            return Ok(());
        }
        if length > before {
            self.cut_tail()?;
            self.mark()?;
            self.bump();
            self.object.record.length = length;
            return Ok(());
        }
        self.mark()?;
        self.bump();
        // The pieces stay in memory until they are gone, and the stored record does not name them.
        let mut shorter = self.object.record.clone();
        shorter.length = length;
        shorter.written.remove(length..u64::MAX);
        let freed = shorter.pieces.split_off(&pieces_of(length));
        self.store_before_freeing(shorter)?;
        self.object.record.pieces.extend(freed);
        self.object.has_tail = true;
        self.cut_tail()
    }

    pub fn remove(&mut self) -> Result<()> {
        self.access
            .pool
            .change(&head(self.id), vec![Action::Remove])
            .or_else(|errno| if errno == Errno::NOENT { Ok(()) } else { Err(errno) })
            .map_err(self.failed("remove"))?;
        let record = &self.object.record;
        let pieces = record.pieces.iter().map(|(&index, &salt)| Change {
            name: piece_name(self.id, record, index, salt),
            actions: vec![Action::Remove],
        });
        // The object is gone. Pieces that could not be removed now are removed when the store is opened.
        let _ = self.access.pool.change_each(pieces, Errno::NOENT);
        Ok(())
    }

    /// The names of the attributes.
    pub fn attribute_names(&mut self) -> Result<&BTreeSet<String>> {
        if self.object.attributes.is_none() {
            let names = self.access.pool.entry_keys(&head(self.id));
            let names = names.map_err(self.failed("read the attributes of"))?;
            self.object.attributes = Some(names.into_iter().collect());
        }
        Ok(self.object.attributes.get_or_insert_default())
    }

    /// Checks changes of attributes without making them.
    pub fn check_attributes(&mut self, changes: &[AttributeChange<'_>]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        names_after(self.attribute_names()?, changes).map(drop)
    }

    /// Changes attributes. They are durable together with everything before them.
    pub fn change_attributes(&mut self, changes: &[AttributeChange<'_>]) -> Result<()> {
        let names = names_after(self.attribute_names()?, changes)?;
        // After a failure nobody knows which of them Ceph has.
        self.object.attributes = None;
        self.store(changes)?;
        self.object.attributes = Some(names);
        Ok(())
    }

    pub fn renew_lease(&mut self, lease: Duration) -> Result<()> {
        if self.object.record.lease.is_none() {
            return Err(StoreError::NotOpen { id: self.id.clone() });
        }
        self.store_lease(Some(after(self.access.now(), lease)))
    }

    pub fn close(&mut self) -> Result<()> {
        if self.object.record.lease.is_none() {
            return self.flush();
        }
        self.bump();
        self.store_lease(None)
    }
}

/// Bytes that are written to a piece.
struct Part<'a> {
    /// The offset in the piece.
    offset: u64,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn write(&self) -> Action<'a> {
        Action::Write { offset: self.offset, bytes: self.bytes }
    }
}

/// Refuses lengths that have too many pieces.
fn check_length(length: u64) -> Result<()> {
    if length > MAX_OBJECT {
        return Err(StoreError::TooLarge { what: "the length of an object in Ceph", limit: MAX_OBJECT });
    }
    Ok(())
}
