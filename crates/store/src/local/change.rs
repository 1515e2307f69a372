//! Changes and flushes of an object of the local store.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use super::meta::Changes;
use super::object::{Object, SharedState, WriterState};
use super::{LocalStore, wrong_length};
use crate::disk::{DataFile, write_full};
use crate::intervals::IntervalSet;
use crate::limits::{check_attribute_name, check_attribute_value};
use crate::locks::{lock, read, write};
use crate::{AttributeChange, Extent, MAX_ATTRIBUTES, ObjectId, Result, StoreError, Version, WriteOptions};

/// Bytes of unflushed attribute changes of one object, before the next change of attributes flushes it. One change can
/// exceed this by the attributes of one object.
pub(super) const MAX_PENDING_BYTES: usize = 4 << 20;

/// Bytes of a step in which a growing object is written to its device before the flush. So the flush does not have to
/// write them all.
const WRITE_BEHIND: u64 = 8 << 20;

/// Step in bytes in which ranges of changed bytes are marked in the row of their object, so that small scattered writes
/// need few commits.
const MARK_STEP: u64 = if cfg!(test) { 64 } else { 64 << 20 };

impl LocalStore {
    /// Runs `change` on a live object while no other thread changes it.
    pub(super) fn change<T>(
        &self,
        id: &ObjectId,
        change: impl FnOnce(&Arc<Object>, &mut MutexGuard<'_, WriterState>) -> Result<T>,
    ) -> Result<T> {
        self.make_room()?;
        let object = self.object(id)?;
        let mut writer = lock(&object.writer);
        drop(object.check_live(read(&object.shared))?);
        change(&object, &mut writer)
    }

    /// Flushes objects until another object may have unflushed changes. It takes their locks, so the caller must not
    /// hold one.
    pub(super) fn make_room(&self) -> Result<()> {
        while let Some(object) = self.table.object_to_flush() {
            match self.flush_object(&object, &mut lock(&object.writer)) {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Prepares a change of bytes, length or state, and returns the version after it. `touched`: the bytes that may
    /// change. `length`: the smallest length of the file during the change.
    fn begin_change(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        touched: Range<u64>,
        length: u64,
    ) -> Result<Version> {
        // A damaged object is refused before its row is marked.
        let file = self.file(object, &read(&object.shared))?;
        let version = Version(self.versions.next(&self.meta)?);
        self.meta.rule_out_failed_commit()?;
        let durable = writer.durable_length.min(length);
        if writer.persisted {
            // Bytes after the durable length are cut off after a crash.
            let touched = widen_mark(&writer.touched, touched.start..touched.end.min(writer.durable_length));
            if !writer.marked || touched != writer.touched || durable < writer.durable_length {
                self.meta.mark_dirty(object.birth, durable, &touched)?;
                (writer.marked, writer.touched) = (true, touched);
            }
        }
        writer.durable_length = durable;
        writer.changed = true;
        writer.changed_file.get_or_insert(file);
        self.table.note_unflushed(object);
        Ok(version)
    }

    /// Writes `data` over `extents` in order. The largest end is `end`.
    pub(super) fn write_pieces(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        extents: &[Extent],
        end: u64,
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version> {
        let insert = |written: &mut IntervalSet| {
            extents.iter().for_each(|extent| written.insert(extent.offset..extent.offset + extent.len));
        };
        let (version, length) = {
            let shared = read(&object.shared);
            object.check_version(&shared, options.if_version)?;
            shared.written.check_change(extents.len(), insert)?;
            (shared.version, shared.length)
        };
        let attributes = self.check_attributes(object, writer, options.attributes)?;
        if data.is_empty() {
            self.stage(object, attributes);
            return Ok(version);
        }
        let filled = || extents.iter().filter(|extent| extent.len > 0);
        let start = filled().map(|extent| extent.offset).min().unwrap_or(end);
        let version = self.begin_change(object, writer, start..end, u64::MAX)?;
        let now = self.clock.now();
        let mut shared = write(&object.shared);
        for extent in filled() {
            self.prepare_sums(object, &mut shared, extent.offset..extent.offset + extent.len)?;
        }
        let file = self.file(object, &shared)?;
        let path = || self.path(&object.id);
        if end > length {
            cut_excess(&*file, &mut shared).map_err(|error| StoreError::io("cut", &path(), error))?;
        }
        (shared.version, shared.modified) = (version, now);
        let mut rest = data;
        for extent in extents {
            let (piece, tail) = rest.split_at_checked(extent.len as usize).unwrap_or((rest, &[]));
            rest = tail;
            if let Err(error) = write_full(&*file, piece, extent.offset) {
                shared.excess |= end > length;
                filled().for_each(|extent| {
                    shared.sums.mark_unknown(extent.offset..extent.offset + extent.len, length);
                });
                // If the cut fails too, the next growth or flush repeats it.
                let _ = cut_excess(&*file, &mut shared);
                return Err(StoreError::io("write", &path(), error));
            }
        }
        let (mut rest, mut grown) = (data, length);
        for extent in extents {
            let (piece, tail) = rest.split_at_checked(extent.len as usize).unwrap_or((rest, &[]));
            rest = tail;
            if !piece.is_empty() {
                shared.sums.write(extent.offset, piece, grown);
                grown = grown.max(extent.offset + piece.len() as u64);
            }
        }
        shared.length = length.max(end);
        insert(&mut shared.written);
        shared.pending.extend(attributes);
        let full = shared.sums.is_full();
        drop(shared);
        if full {
            self.flush_object(object, writer)?;
        }
        if end > length && end - writer.write_behind_end.min(end) >= WRITE_BEHIND {
            file.write_behind(writer.write_behind_end, end - writer.write_behind_end);
            writer.write_behind_end = end;
        }
        Ok(version)
    }

    pub(super) fn punch_object(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        start: u64,
        end: u64,
    ) -> Result<Version> {
        let (version, end) = {
            let shared = read(&object.shared);
            let end = end.min(shared.length);
            shared.written.check_change(1, |written| written.remove(start..end))?;
            (shared.version, end)
        };
        if start >= end {
            return Ok(version);
        }
        let version = self.begin_change(object, writer, start..end, u64::MAX)?;
        let now = self.clock.now();
        let mut shared = write(&object.shared);
        self.prepare_punch(object, &mut shared, start..end)?;
        let file = self.file(object, &shared)?;
        (shared.version, shared.modified) = (version, now);
        let length = shared.length;
        if let Err(error) = file.punch(start, end - start) {
            shared.sums.mark_unknown(start..end, length);
            return Err(StoreError::io("punch", &self.path(&object.id), error));
        }
        shared.sums.punch(start, end, length);
        shared.written.remove(start..end);
        Ok(version)
    }

    pub(super) fn truncate_object(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        length: u64,
    ) -> Result<Version> {
        let (version, old) = {
            let shared = read(&object.shared);
            (shared.version, shared.length)
        };
        // A cut of an empty object makes it usable again after a failed sync.
        if length == old && (length > 0 || !object.unsynced.load(Ordering::Relaxed)) {
            return Ok(version);
        }
        let version = self.begin_change(object, writer, length..old.max(length), length)?;
        let now = self.clock.now();
        let mut shared = write(&object.shared);
        // The last block that stays, or the last block before the object grows.
        let kept = length.min(old);
        self.prepare_sums(object, &mut shared, kept.saturating_sub(1)..kept)?;
        let file = self.file(object, &shared)?;
        let failed = |error| StoreError::io("set the length of", &self.path(&object.id), error);
        if length > old {
            cut_excess(&*file, &mut shared).map_err(failed)?;
        }
        (shared.version, shared.modified) = (version, now);
        if let Err(error) = file.set_len(length) {
            shared.excess |= length > old;
            return Err(failed(error));
        }
        shared.excess = false;
        shared.length = length;
        shared.sums.resize(old, length);
        writer.write_behind_end = writer.write_behind_end.min(length);
        shared.written.remove(length..u64::MAX);
        if length == 0 {
            object.unsynced.store(false, Ordering::Relaxed);
        }
        Ok(version)
    }

    pub(super) fn close_object(&self, object: &Arc<Object>, writer: &mut WriterState) -> Result<Version> {
        if read(&object.shared).lease.is_some() {
            let version = self.begin_change(object, writer, 0..0, u64::MAX)?;
            let now = self.clock.now();
            {
                let mut shared = write(&object.shared);
                (shared.version, shared.modified) = (version, now);
            }
            writer.closing = true;
        }
        let flushed = self.flush_object(object, writer);
        writer.closing = false;
        flushed?;
        Ok(read(&object.shared).version)
    }

    /// Checks attribute changes against the bounds, and makes space for them in memory.
    pub(super) fn check_attributes(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        changes: &[AttributeChange<'_>],
    ) -> Result<Changes> {
        let mut checked = Changes::new();
        for &(name, value) in changes {
            check_attribute_name(name)?;
            value.map_or(Ok(()), check_attribute_value)?;
            checked.insert(name.into(), value.map(Vec::from));
        }
        if changes.is_empty() {
            return Ok(checked);
        }
        let bytes: usize = checked.values().flatten().map(Vec::len).sum();
        if read(&object.shared).pending_bytes() + bytes > MAX_PENDING_BYTES {
            self.flush_object(object, writer)?;
        }
        if checked.values().any(Option::is_some) {
            let names = self.attribute_names(object, &read(&object.shared))?;
            let has = |name: &String| names.binary_search(name).is_ok();
            let added = checked.iter().filter(|(name, value)| value.is_some() && !has(name)).count();
            let removed = checked.iter().filter(|(name, value)| value.is_none() && has(name)).count();
            if added > removed && names.len() + added - removed > MAX_ATTRIBUTES {
                let limit = MAX_ATTRIBUTES as u64;
                return Err(StoreError::TooLarge { what: "the number of attributes", limit });
            }
        }
        Ok(checked)
    }

    /// Adds checked attribute changes to those that the next flush makes durable.
    pub(super) fn stage(&self, object: &Arc<Object>, changes: Changes) {
        if !changes.is_empty() {
            self.table.note_unflushed(object);
            write(&object.shared).pending.extend(changes);
        }
    }

    /// Makes one attribute durable at once.
    pub(super) fn commit_attribute(
        &self,
        object: &Arc<Object>,
        writer: &mut WriterState,
        name: &str,
        value: Option<&[u8]>,
    ) -> Result<()> {
        let changes = self.check_attributes(object, writer, &[(name, value)])?;
        if !writer.persisted {
            self.flush_object(object, writer)?;
        }
        self.meta.put_attributes(object.birth, &changes)?;
        write(&object.shared).pending.remove(name);
        Ok(())
    }

    /// Makes all changes of the object durable, in the order that the documentation of the module gives.
    pub(super) fn flush_object(&self, object: &Arc<Object>, writer: &mut WriterState) -> Result<()> {
        let (excess, idle) = {
            let shared = object.check_live(read(&object.shared))?;
            (shared.excess, shared.pending.is_empty() && !writer.changed && writer.persisted)
        };
        if object.unsynced.load(Ordering::Relaxed) {
            return Err(StoreError::Unsynced { id: object.id.clone() });
        }
        if idle {
            self.table.note_flushed(object, false);
            return Ok(());
        }
        let path = self.path(&object.id);
        if writer.changed {
            if excess {
                let mut shared = write(&object.shared);
                let file = self.file(object, &shared)?;
                cut_excess(&*file, &mut shared).map_err(|error| StoreError::io("cut", &path, error))?;
            }
            let file = match &writer.changed_file {
                Some(file) => file.clone(),
                None => self.file(object, &read(&object.shared))?,
            };
            if let Err(error) = file.sync() {
                object.unsynced.store(true, Ordering::Relaxed);
                return Err(StoreError::io("sync", &path, error));
            }
            let found = file.len().map_err(|error| StoreError::io("look at", &path, error))?;
            let length = read(&object.shared).length;
            if found != length {
                return Err(wrong_length(&path, found, length));
            }
        }
        if !writer.persisted {
            self.dirs.sync_for(&*self.disk, &path)?;
        }
        let read_back = self.read_back(object)?;
        let (row, pending, sums) = {
            let mut shared = write(&object.shared);
            let length = shared.length;
            let sums = shared.sums.close_blocks(length, &read_back);
            let mut row = shared.row(object.birth);
            row.lease = row.lease.filter(|_| !writer.closing);
            (row, shared.pending.clone(), sums)
        };
        let first = !writer.persisted;
        let stored = self.meta.put(&object.id, &row, &pending, &sums);
        // A failed commit may still be durable later: the row may exist or not, and may be marked or not.
        writer.marked = false;
        if stored.is_err() {
            writer.persisted |= first && self.meta.load(&object.id).is_ok_and(|row| row.is_some());
            return stored;
        }
        (writer.persisted, writer.changed, writer.durable_length) = (true, false, row.length);
        writer.changed_file = None;
        writer.touched = 0..0;
        {
            let mut shared = write(&object.shared);
            shared.pending.clear();
            shared.sums.mark_flushed();
            shared.flushed = row.version;
            shared.lease = shared.lease.filter(|_| !writer.closing);
        }
        self.table.note_flushed(object, first);
        Ok(())
    }
}

/// Returns the marked range, extended in steps until it contains `touched`.
fn widen_mark(marked: &Range<u64>, touched: Range<u64>) -> Range<u64> {
    if touched.is_empty() || marked.start <= touched.start && touched.end <= marked.end {
        return marked.clone();
    }
    let start = touched.start - touched.start % MARK_STEP;
    let end = touched.end.next_multiple_of(MARK_STEP);
    if marked.is_empty() { start..end } else { start.min(marked.start)..end.max(marked.end) }
}

/// Cuts off bytes that a failed write left after the end of the object, so that the object grows with zeros.
fn cut_excess(file: &dyn DataFile, shared: &mut SharedState) -> std::io::Result<()> {
    if shared.excess {
        file.set_len(shared.length)?;
        shared.excess = false;
    }
    Ok(())
}
