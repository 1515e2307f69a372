//! A store in memory, for tests and for temporary data.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use crate::intervals::IntervalSet;
use crate::limits::{check_attribute_name, check_extents, check_lease, check_length, write_end};
use crate::locks::{read, write};
use crate::rules::{check_version, names_after, page, page_start};
use crate::{
    ArrivalState, AttributeChange, CasOutcome, Clock, CreateOptions, Extent, MAX_WRITTEN_PAGE, ObjectId,
    ObjectStore, ReadOptions, Result, Stat, StoreError, SystemClock, Version, WriteOptions,
};

/// Default capacity of a [`MemoryStore`], in bytes. A full store returns [`NoSpace`](StoreError::NoSpace).
pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

/// A store in memory. Nothing is durable: `flush` only checks that the object exists.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    capacity: u64,
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<ObjectId, Object>,
    versions: u64,
    used: u64,
}

struct Object {
    bytes: Vec<u8>,
    version: Version,
    modified: SystemTime,
    lease: Option<SystemTime>,
    written: IntervalSet,
    attributes: BTreeMap<String, Vec<u8>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the system's clock and a capacity of [`DEFAULT_MEMORY_BYTES`].
    pub fn new() -> Self {
        Self::with_limits(Arc::new(SystemClock), DEFAULT_MEMORY_BYTES)
    }

    /// An empty store with `clock`, whose objects together have up to `capacity` bytes. Holes count too.
    pub fn with_limits(clock: Arc<dyn Clock>, capacity: u64) -> Self {
        Self { clock, capacity, inner: RwLock::default() }
    }

    /// Runs `change` on one object, with the parts of the store that it may touch.
    fn change<T>(
        &self,
        id: &ObjectId,
        change: impl FnOnce(&mut Object, Change<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut inner = write(&self.inner);
        let Inner { objects, versions, used } = &mut *inner;
        let object = objects.get_mut(id).ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let budget = self.capacity;
        change(object, Change { versions, used, capacity: budget, now: self.clock.now() })
    }

    fn with_object<T>(&self, id: &ObjectId, inspect: impl FnOnce(&Object) -> Result<T>) -> Result<T> {
        let inner = read(&self.inner);
        inspect(inner.objects.get(id).ok_or_else(|| StoreError::NotFound { id: id.clone() })?)
    }
}

/// The parts of the store that a change of one object may touch.
struct Change<'a> {
    versions: &'a mut u64,
    used: &'a mut u64,
    capacity: u64,
    now: SystemTime,
}

impl Change<'_> {
    fn bump(&mut self, object: &mut Object) -> Version {
        *self.versions += 1;
        object.version = Version(*self.versions);
        object.modified = self.now;
        object.version
    }

    fn resize(&mut self, object: &mut Object, length: u64) -> Result<()> {
        let full = || StoreError::NoSpace { op: "grow", path: "the memory store".into() };
        let old = object.bytes.len() as u64;
        if length > old {
            let grown = *self.used + (length - old);
            let more =
                usize::try_from(length - old).ok().filter(|_| grown <= self.capacity).ok_or_else(full)?;
            object.bytes.try_reserve(more).map_err(|_| full())?;
            object.bytes.resize(object.bytes.len() + more, 0);
            *self.used = grown;
        } else {
            object.bytes.truncate(length as usize);
            *self.used -= old - length;
        }
        Ok(())
    }
}

impl Object {
    fn check_version(&self, id: &ObjectId, if_version: Option<Version>) -> Result<()> {
        check_version(id, if_version, self.version)
    }

    fn stat(&self, now: SystemTime) -> Stat {
        let state = ArrivalState::at(self.lease, now);
        Stat { length: self.bytes.len() as u64, version: self.version, state, modified: self.modified }
    }

    /// Returns the attributes after `changes`. The object itself does not change.
    fn with_changes(&self, changes: &[AttributeChange<'_>]) -> Result<BTreeMap<String, Vec<u8>>> {
        names_after(&self.attributes.keys().cloned().collect(), changes)?;
        let mut attributes = self.attributes.clone();
        for &(name, value) in changes {
            match value {
                Some(value) => drop(attributes.insert(name.into(), value.into())),
                None => drop(attributes.remove(name)),
            }
        }
        Ok(attributes)
    }

    fn slice(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }
}

impl ObjectStore for MemoryStore {
    fn create(&self, id: &ObjectId, options: &CreateOptions) -> Result<Stat> {
        let now = self.clock.now();
        options.open.map_or(Ok(()), check_lease)?;
        let mut object = Object {
            bytes: Vec::new(),
            version: Version(0),
            modified: now,
            lease: options.open.map(|lease| now + lease),
            written: IntervalSet::default(),
            attributes: BTreeMap::new(),
        };
        let changes: Vec<_> =
            options.attributes.iter().map(|(n, v)| (n.as_str(), Some(v.as_slice()))).collect();
        object.attributes = object.with_changes(&changes)?;
        let mut inner = write(&self.inner);
        if inner.objects.contains_key(id) {
            return Err(StoreError::Exists { id: id.clone() });
        }
        inner.versions += 1;
        object.version = Version(inner.versions);
        let stat = object.stat(now);
        inner.objects.insert(id.clone(), object);
        Ok(stat)
    }

    fn remove(&self, id: &ObjectId) -> Result<()> {
        let mut inner = write(&self.inner);
        let object = inner.objects.remove(id).ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        inner.used -= object.bytes.len() as u64;
        Ok(())
    }

    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize> {
        self.with_object(id, |object| {
            object.check_version(id, options.if_version)?;
            let rest =
                usize::try_from(offset).ok().and_then(|start| object.bytes.get(start..)).unwrap_or(&[]);
            let n = rest.len().min(buffer.len());
            for (to, from) in buffer.iter_mut().zip(rest) {
                *to = *from;
            }
            Ok(n)
        })
    }

    fn read_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        buffer: &mut [u8],
        options: ReadOptions,
    ) -> Result<()> {
        check_extents(extents, buffer.len())?;
        self.with_object(id, |object| {
            object.check_version(id, options.if_version)?;
            let length = object.bytes.len() as u64;
            let mut rest = buffer;
            for extent in extents.iter().filter(|extent| extent.len > 0) {
                let end = extent.offset + extent.len;
                let out_of_range = || StoreError::OutOfRange { id: id.clone(), end, length };
                let from = object.slice(extent.offset, extent.len).ok_or_else(out_of_range)?;
                let (to, tail) = rest.split_at_mut_checked(from.len()).ok_or_else(out_of_range)?;
                to.copy_from_slice(from);
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
        write_end(offset, data.len())?;
        self.write_extents(id, &[Extent { offset, len: data.len() as u64 }], data, options)
    }

    fn write_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version> {
        let end = check_extents(extents, data.len())?;
        self.change(id, |object, mut change| {
            object.check_version(id, options.if_version)?;
            let attributes = object.with_changes(options.attributes)?;
            if !data.is_empty() {
                let insert = |written: &mut IntervalSet| {
                    extents
                        .iter()
                        .for_each(|extent| written.insert(extent.offset..extent.offset + extent.len));
                };
                object.written.check_change(extents.len(), insert)?;
                if end > object.bytes.len() as u64 {
                    change.resize(object, end)?;
                }
                let mut rest = data;
                for extent in extents {
                    let (from, tail) = rest.split_at(extent.len as usize);
                    let start = extent.offset as usize;
                    if !from.is_empty() {
                        object.bytes[start..start + from.len()].copy_from_slice(from);
                    }
                    rest = tail;
                }
                insert(&mut object.written);
                change.bump(object);
            }
            object.attributes = attributes;
            Ok(object.version)
        })
    }

    fn append(&self, id: &ObjectId, data: &[u8]) -> Result<(u64, Version)> {
        self.change(id, |object, mut change| {
            let offset = object.bytes.len() as u64;
            if data.is_empty() {
                return Ok((offset, object.version));
            }
            let end = write_end(offset, data.len())?;
            object.written.check_change(1, |written| written.insert(offset..end))?;
            change.resize(object, end)?;
            object.bytes[offset as usize..].copy_from_slice(data);
            object.written.insert(offset..end);
            Ok((offset, change.bump(object)))
        })
    }

    fn punch(&self, id: &ObjectId, range: Range<u64>) -> Result<Version> {
        self.change(id, |object, mut change| {
            let range = range.start..range.end.min(object.bytes.len() as u64);
            if range.is_empty() {
                return Ok(object.version);
            }
            object.written.check_change(1, |written| written.remove(range.clone()))?;
            object.bytes[range.start as usize..range.end as usize].fill(0);
            object.written.remove(range);
            Ok(change.bump(object))
        })
    }

    fn truncate(&self, id: &ObjectId, length: u64) -> Result<Version> {
        check_length(length)?;
        self.change(id, |object, mut change| {
            if length == object.bytes.len() as u64 {
                return Ok(object.version);
            }
            change.resize(object, length)?;
            object.written.remove(length..u64::MAX);
            Ok(change.bump(object))
        })
    }

    fn flush(&self, id: &ObjectId) -> Result<()> {
        self.with_object(id, |_| Ok(()))
    }

    fn stat(&self, id: &ObjectId) -> Result<Stat> {
        self.with_object(id, |object| Ok(object.stat(self.clock.now())))
    }

    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let inner = read(&self.inner);
        let names = inner.objects.range::<str, _>(page_start(prefix, after)).map(|(id, _)| id);
        Ok(page(names, prefix, limit))
    }

    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>> {
        check_attribute_name(name)?;
        self.with_object(id, |object| Ok(object.attributes.get(name).cloned()))
    }

    fn set_attribute(&self, id: &ObjectId, name: &str, value: &[u8]) -> Result<()> {
        self.change(id, |object, _| {
            object.attributes = object.with_changes(&[(name, Some(value))])?;
            Ok(())
        })
    }

    fn remove_attribute(&self, id: &ObjectId, name: &str) -> Result<bool> {
        check_attribute_name(name)?;
        self.change(id, |object, _| Ok(object.attributes.remove(name).is_some()))
    }

    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>> {
        self.with_object(id, |object| Ok(object.attributes.keys().cloned().collect()))
    }

    fn compare_and_swap(
        &self,
        id: &ObjectId,
        name: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CasOutcome> {
        check_attribute_name(name)?;
        self.change(id, |object, _| {
            let actual = object.attributes.get(name);
            if actual.map(Vec::as_slice) != expected {
                return Ok(CasOutcome::Mismatch { actual: actual.cloned() });
            }
            object.attributes = object.with_changes(&[(name, new)])?;
            Ok(CasOutcome::Swapped)
        })
    }

    fn fetch_add(&self, id: &ObjectId, name: &str, add: i64) -> Result<i64> {
        check_attribute_name(name)?;
        self.change(id, |object, _| {
            let old = crate::counter::decode(object.attributes.get(name).map(Vec::as_slice), name)?;
            object.attributes = object.with_changes(&[(name, Some(&old.wrapping_add(add).to_le_bytes()))])?;
            Ok(old)
        })
    }

    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        self.with_object(id, |object| Ok(object.written.within(range, MAX_WRITTEN_PAGE)))
    }

    fn renew_lease(&self, id: &ObjectId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        self.change(id, |object, change| {
            if object.lease.is_none() {
                return Err(StoreError::NotOpen { id: id.clone() });
            }
            object.lease = Some(change.now + lease);
            Ok(())
        })
    }

    fn close(&self, id: &ObjectId) -> Result<Version> {
        self.change(id, |object, mut change| {
            if object.lease.take().is_some() {
                change.bump(object);
            }
            Ok(object.version)
        })
    }
}
