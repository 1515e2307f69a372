//! The store trait for a store in a directory.

use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Duration;

use super::change::MAX_PENDING_BYTES;
use super::object::{Object, SharedState};
use super::{LocalStore, wrong_length};
use crate::disk::{DataFile, read_full};
use crate::limits::{
    check_attribute_name, check_attribute_value, check_extents, check_lease, check_length, write_end,
};
use crate::locks::{lock, read, write};
use crate::{
    CasOutcome, CreateOptions, Extent, MAX_ATTRIBUTES, MAX_LIST_PAGE, MAX_WRITTEN_PAGE, ObjectId,
    ObjectStore, ReadOptions, Result, ScrubResult, Stat, StoreError, Version, WriteOptions,
};

impl LocalStore {
    /// Fills `buffer` with bytes of the object, and checks them. The bytes must lie within the object.
    fn read_exact(
        &self,
        object: &Object,
        shared: &SharedState,
        file: &dyn DataFile,
        offset: u64,
        buffer: &mut [u8],
        verify: bool,
    ) -> Result<()> {
        let failed = |error| StoreError::io("read", &self.path(&object.id), error);
        let found = read_full(file, buffer, offset).map_err(failed)?;
        if found < buffer.len() {
            return Err(wrong_length(&self.path(&object.id), offset + found as u64, shared.length));
        }
        self.with_verified_object(object, shared, file, verify, |subject| {
            self.checker.check(subject, offset, buffer)
        })
    }

    fn new_object(&self, id: &ObjectId, options: &CreateOptions) -> Result<Object> {
        let birth = self.versions.next(&self.meta)?;
        self.meta.rule_out_failed_commit()?;
        let now = self.clock.now();
        let object = Object::new(id.clone(), birth, now, options.open.map(|lease| now + lease));
        let changes = options.attributes.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        write(&object.shared).pending.extend(changes);
        let file = self.dirs.create_file(&*self.disk, &self.path(id))?;
        self.files.put(birth, Arc::from(file));
        Ok(object)
    }
}

impl ObjectStore for LocalStore {
    fn create(&self, id: &ObjectId, options: &CreateOptions) -> Result<Stat> {
        options.open.map_or(Ok(()), check_lease)?;
        let names: BTreeSet<_> = options.attributes.iter().map(|(name, _)| name).collect();
        if names.len() > MAX_ATTRIBUTES {
            let limit = MAX_ATTRIBUTES as u64;
            return Err(StoreError::TooLarge { what: "the number of attributes", limit });
        }
        for (name, value) in &options.attributes {
            check_attribute_name(name)?;
            check_attribute_value(value)?;
        }
        self.make_room()?;
        let object = self.table.create(id, &self.meta, || self.new_object(id, options))?;
        let stat = read(&object.shared).stat(self.clock.now());
        if read(&object.shared).pending_bytes() > MAX_PENDING_BYTES {
            let flushed = self.flush(id);
            if flushed.is_err() {
                let _ = self.remove(id);
            }
            flushed?;
        }
        Ok(stat)
    }

    fn remove(&self, id: &ObjectId) -> Result<()> {
        let object = self.object(id)?;
        let writer = lock(&object.writer);
        drop(object.check_live(read(&object.shared))?);
        self.meta.rule_out_failed_commit()?;
        {
            // Readers of the object need its sums and attributes in SQLite. So these stay until no reader holds the
            // lock.
            let mut shared = write(&object.shared);
            if writer.persisted {
                self.meta.delete(object.birth)?;
            }
            shared.removed = true;
        }
        self.files.forget(object.birth);
        let path = self.path(id);
        match self.disk.remove_file(&path) {
            Ok(()) => path.parent().map_or((), |dir| self.dirs.note(dir)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // The object is removed. The next object of this name, or the next open, removes its file.
            Err(_) => self.orphan_left.store(true, std::sync::atomic::Ordering::Relaxed),
        }
        // This comes last, because from now on the name and its file may be used again.
        self.table.forget(&object);
        Ok(())
    }

    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize> {
        self.with_object(id, |object, shared| {
            object.check_version(shared, options.if_version)?;
            let within = shared.length.saturating_sub(offset);
            let n = usize::try_from(within).map_or(buffer.len(), |within| within.min(buffer.len()));
            if let Some(buffer) = buffer.get_mut(..n).filter(|buffer| !buffer.is_empty()) {
                let file = self.file(object, shared)?;
                self.read_exact(object, shared, &*file, offset, buffer, options.verify)?;
            }
            Ok(n)
        })
    }

    fn verify(&self, id: &ObjectId, range: Range<u64>, options: ReadOptions) -> Result<()> {
        self.with_object(id, |object, shared| {
            object.check_version(shared, options.if_version)?;
            if range.start >= range.end.min(shared.length) {
                return Ok(());
            }
            let file = self.file(object, shared)?;
            self.with_verified_object(object, shared, &*file, options.verify, |subject| {
                self.checker.check_blocks(subject, range)
            })
        })
    }

    fn read_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        buffer: &mut [u8],
        options: ReadOptions,
    ) -> Result<()> {
        let end = check_extents(extents, buffer.len())?;
        self.with_object(id, |object, shared| {
            object.check_version(shared, options.if_version)?;
            if end > shared.length {
                return Err(StoreError::OutOfRange { id: id.clone(), end, length: shared.length });
            }
            if buffer.is_empty() {
                return Ok(());
            }
            let file = self.file(object, shared)?;
            let mut rest = buffer;
            for extent in extents {
                let (piece, tail) = rest.split_at_mut(extent.len as usize);
                self.read_exact(object, shared, &*file, extent.offset, piece, options.verify)?;
                rest = tail;
            }
            Ok(())
        })
    }

    fn write_at(
        &self,
        id: &ObjectId,
        offset: u64,
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version> {
        let end = write_end(offset, data.len())?;
        let extent = Extent { offset, len: data.len() as u64 };
        self.change(id, |object, writer| self.write_pieces(object, writer, &[extent], end, data, options))
    }

    fn write_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version> {
        let end = check_extents(extents, data.len())?;
        self.change(id, |object, writer| self.write_pieces(object, writer, extents, end, data, options))
    }

    fn append(&self, id: &ObjectId, data: &[u8]) -> Result<(u64, Version)> {
        self.change(id, |object, writer| {
            let offset = read(&object.shared).length;
            let end = write_end(offset, data.len())?;
            let extent = Extent { offset, len: data.len() as u64 };
            let version = self.write_pieces(object, writer, &[extent], end, data, WriteOptions::default())?;
            Ok((offset, version))
        })
    }

    fn punch(&self, id: &ObjectId, range: Range<u64>) -> Result<Version> {
        self.change(id, |object, writer| self.punch_object(object, writer, range.start, range.end))
    }

    fn truncate(&self, id: &ObjectId, length: u64) -> Result<Version> {
        check_length(length)?;
        self.change(id, |object, writer| self.truncate_object(object, writer, length))
    }

    fn flush(&self, id: &ObjectId) -> Result<()> {
        let object = self.object(id)?;
        self.flush_object(&object, &mut lock(&object.writer))
    }

    fn stat(&self, id: &ObjectId) -> Result<Stat> {
        self.with_object(id, |_, shared| Ok(shared.stat(self.clock.now())))
    }

    fn examine(&self, id: &ObjectId) -> Result<Stat> {
        self.with_object(id, |object, shared| {
            self.open_file(object, shared)?;
            Ok(shared.stat(self.clock.now()))
        })
    }

    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let limit = limit.min(MAX_LIST_PAGE);
        self.table.with_never_flushed(|never_flushed| {
            let mut names: BTreeSet<_> = self.meta.list(prefix, after, limit)?.into_iter().collect();
            let start = after.map_or("", ObjectId::as_str).max(prefix);
            let behind = never_flushed
                .range::<str, _>((Bound::Included(start), Bound::Unbounded))
                .filter(|&id| Some(id) != after);
            names.extend(behind.take_while(|id| id.as_str().starts_with(prefix)).take(limit).cloned());
            Ok(names.into_iter().take(limit).collect())
        })
    }

    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>> {
        check_attribute_name(name)?;
        self.with_object(id, |object, shared| self.attribute(object, shared, name))
    }

    fn set_attribute(&self, id: &ObjectId, name: &str, value: &[u8]) -> Result<()> {
        self.change(id, |object, writer| {
            let changes = self.check_attributes(object, writer, &[(name, Some(value))])?;
            self.stage(object, changes);
            Ok(())
        })
    }

    fn remove_attribute(&self, id: &ObjectId, name: &str) -> Result<bool> {
        self.change(id, |object, writer| {
            let changes = self.check_attributes(object, writer, &[(name, None)])?;
            let had = self.attribute(object, &read(&object.shared), name)?.is_some();
            if had {
                self.stage(object, changes);
            }
            Ok(had)
        })
    }

    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>> {
        self.with_object(id, |object, shared| self.attribute_names(object, shared))
    }

    fn compare_and_swap(
        &self,
        id: &ObjectId,
        name: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CasOutcome> {
        check_attribute_name(name)?;
        self.change(id, |object, writer| {
            let actual = self.attribute(object, &read(&object.shared), name)?;
            if actual.as_deref() != expected {
                return Ok(CasOutcome::Mismatch { actual });
            }
            self.commit_attribute(object, writer, name, new)?;
            Ok(CasOutcome::Swapped)
        })
    }

    fn fetch_add(&self, id: &ObjectId, name: &str, add: i64) -> Result<i64> {
        check_attribute_name(name)?;
        self.change(id, |object, writer| {
            let value = self.attribute(object, &read(&object.shared), name)?;
            let old = crate::counter::decode(value.as_deref(), name)?;
            self.commit_attribute(object, writer, name, Some(&old.wrapping_add(add).to_le_bytes()))?;
            Ok(old)
        })
    }

    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        self.with_object(id, |_, shared| Ok(shared.written.within(range, MAX_WRITTEN_PAGE)))
    }

    fn renew_lease(&self, id: &ObjectId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        self.change(id, |object, writer| {
            if read(&object.shared).lease.is_none() {
                return Err(StoreError::NotOpen { id: id.clone() });
            }
            let until = self.clock.now() + lease;
            if writer.persisted {
                self.meta.set_lease(object.birth, crate::clock::to_nanos(until))?;
            }
            write(&object.shared).lease = Some(until);
            Ok(())
        })
    }

    fn close(&self, id: &ObjectId) -> Result<Version> {
        self.change(id, |object, writer| self.close_object(object, writer))
    }

    fn scrub(&self, id: &ObjectId, from: u64) -> Result<ScrubResult> {
        self.scrub_step(id, from)
    }

    fn advise_sequential(&self, id: &ObjectId) -> Result<()> {
        self.with_object(id, |object, shared| {
            let file = self.file(object, shared)?;
            file.advise_sequential().map_err(|error| StoreError::io("advise on", &self.path(id), error))
        })
    }
}
