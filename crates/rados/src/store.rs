//! The store: its objects, and their states that are kept in memory.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use gristmill_ceph::ClusterUser;
use gristmill_store::rules::{
    check_attribute_name, check_extents, check_lease, check_length, decode_counter, lock, names_after, page,
    page_start, read, write, write_end,
};
use gristmill_store::{
    CasOutcome, Clock, CreateOptions, Extent, MAX_WRITTEN_PAGE, ObjectId, ObjectStore, ReadOptions, Result,
    Stat, StoreError, SystemClock, Version, WriteOptions,
};

use crate::RadosLocation;
use crate::access::Access;
use crate::client::Pool;
use crate::error::{TAKEN_OVER, explain_connection};
use crate::folding::Refusals;
use crate::object::{Object, ObjectChange};
use crate::opening::found_objects;
use crate::owner::Ownership;
use crate::placement::Placement;

/// Most objects whose states are kept in memory.
pub const MAX_CACHED_OBJECTS: usize = 1_024;

/// Options of a store.
#[derive(Clone)]
pub struct RadosOptions {
    /// The cluster, and the user of Ceph.
    pub user: ClusterUser,
    /// Whose addresses the storage daemons have on which new pieces shall lie, if possible. Empty: anywhere.
    pub near: Vec<std::net::IpAddr>,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
}

impl RadosOptions {
    /// The cluster and the user that the environment names, and pieces that lie anywhere.
    #[must_use]
    pub fn of_environment() -> RadosOptions {
        RadosOptions { user: ClusterUser::of_environment(), near: Vec::new(), clock: Arc::new(SystemClock) }
    }
}

/// Objects in a pool of Ceph. See the documentation of the [crate](crate).
pub struct RadosStore {
    access: Access,
    /// The names of all objects.
    ids: RwLock<BTreeSet<ObjectId>>,
    slots: Mutex<HashMap<ObjectId, Arc<RwLock<Slot>>>>,
    pub(crate) refusals: Refusals,
}

/// The state of a name in memory.
enum Slot {
    /// It was not read yet.
    Unknown,
    Absent,
    Present(Object),
}

impl RadosStore {
    /// Opens a store, and makes it if there is none. What a process left behind that ended in the middle of its work is removed.
    ///
    /// # Errors
    /// The error is [`Locked`](StoreError::Locked) if another process has the store, [`Permission`](StoreError::Permission) if the key lacks
    /// a right, and [`Io`](StoreError::Io) if the library is missing, if the cluster does not answer, or if there is no such pool.
    pub fn open(location: &RadosLocation, options: &RadosOptions) -> Result<RadosStore> {
        let pool = Pool::connect(&options.user, &location.pool, &location.name);
        let pool = Arc::new(pool.map_err(|failure| explain_connection(&options.user.id, location, failure))?);
        let owner = Ownership::take(pool.clone(), location)?;
        let placement = Placement::new(&pool, location, &options.near)?;
        let access = Access::new(pool, location, placement, options.clock.clone(), owner);
        let ids = RwLock::new(found_objects(&access)?);
        Ok(RadosStore { access, ids, slots: Mutex::default(), refusals: Refusals::default() })
    }

    /// Flushes all objects, and gives the store back.
    ///
    /// # Errors
    /// It fails if an object cannot be flushed.
    pub fn shut_down(self) -> Result<()> {
        let slots = std::mem::take(&mut *lock(&self.slots));
        for (id, slot) in slots {
            if let Slot::Present(object) = &mut *write(&slot) {
                ObjectChange { access: &self.access, id: &id, object }.flush()?;
            }
        }
        Ok(())
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.access.pool
    }

    /// The name of a piece of an object. `None` if there is no such object or no such piece.
    pub(crate) fn name_of_piece(&self, id: &ObjectId, index: u64) -> Option<CString> {
        self.inspect(id, |object| Ok(object.name_of_piece(id, index))).ok().flatten()
    }

    /// The slot of a name.
    fn slot(&self, id: &ObjectId) -> Result<Arc<RwLock<Slot>>> {
        if self.access.is_lost() {
            let (op, path) = ("use", self.access.location.to_string().into());
            return Err(StoreError::Io { op, path, source: std::io::Error::other(TAKEN_OVER) });
        }
        let mut slots = lock(&self.slots);
        if slots.len() >= MAX_CACHED_OBJECTS && !slots.contains_key(id) {
            // What is not flushed exists only here.
            slots.retain(|_, slot| {
                let changed = |slot: &RwLock<Slot>| match slot.try_read() {
                    Ok(slot) => matches!(&*slot, Slot::Present(object) if object.is_unflushed()),
                    Err(_) => true,
                };
                Arc::strong_count(slot) > 1 || changed(slot)
            });
        }
        Ok(slots.entry(id.clone()).or_insert_with(|| Arc::new(RwLock::new(Slot::Unknown))).clone())
    }

    /// Runs `change` on an object, alone.
    fn change<T>(&self, id: &ObjectId, change: impl FnOnce(&mut ObjectChange<'_>) -> Result<T>) -> Result<T> {
        let slot = self.slot(id)?;
        let mut slot = write(&slot);
        self.load(id, &mut slot)?;
        match &mut *slot {
            Slot::Present(object) => {
                let one = &mut ObjectChange { access: &self.access, id, object };
                let done = change(one)?;
                if lock(&self.slots).len() > MAX_CACHED_OBJECTS {
                    one.flush()?;
                }
                Ok(done)
            }
            _ => Err(StoreError::NotFound { id: id.clone() }),
        }
    }

    /// Runs `inspect` on an object, beside others.
    fn inspect<T>(&self, id: &ObjectId, inspect: impl FnOnce(&Object) -> Result<T>) -> Result<T> {
        let slot = self.slot(id)?;
        {
            let slot = read(&slot);
            match &*slot {
                Slot::Present(object) => return inspect(object),
                Slot::Absent => return Err(StoreError::NotFound { id: id.clone() }),
                Slot::Unknown => {}
            }
        }
        self.load(id, &mut write(&slot))?;
        match &*read(&slot) {
            Slot::Present(object) => inspect(object),
            _ => Err(StoreError::NotFound { id: id.clone() }),
        }
    }

    /// Reads the state of a name that was not read yet.
    fn load(&self, id: &ObjectId, slot: &mut Slot) -> Result<()> {
        if matches!(slot, Slot::Unknown) {
            *slot = match read(&self.ids).contains(id) {
                true => Slot::Present(Object::load(&self.access, id)?),
                false => Slot::Absent,
            };
        }
        Ok(())
    }
}

impl ObjectStore for RadosStore {
    fn create(&self, id: &ObjectId, options: &CreateOptions) -> Result<Stat> {
        options.open.map_or(Ok(()), check_lease)?;
        let changes: Vec<_> =
            options.attributes.iter().map(|(name, value)| (name.as_str(), Some(value.as_slice()))).collect();
        names_after(&BTreeSet::new(), &changes)?;
        let slot = self.slot(id)?;
        let mut slot = write(&slot);
        self.load(id, &mut slot)?;
        if matches!(&*slot, Slot::Present(_)) {
            return Err(StoreError::Exists { id: id.clone() });
        }
        let object = Object::create(&self.access, id, options.open, &changes)?;
        let stat = object.stat(&*self.access.clock);
        write(&self.ids).insert(id.clone());
        *slot = Slot::Present(object);
        Ok(stat)
    }

    fn remove(&self, id: &ObjectId) -> Result<()> {
        let slot = self.slot(id)?;
        let mut slot = write(&slot);
        self.load(id, &mut slot)?;
        let Slot::Present(object) = &mut *slot else {
            return Err(StoreError::NotFound { id: id.clone() });
        };
        ObjectChange { access: &self.access, id, object }.remove()?;
        write(&self.ids).remove(id);
        *slot = Slot::Absent;
        Ok(())
    }

    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize> {
        self.inspect(id, |object| {
            object.check_version(id, options.if_version)?;
            let rest = object.length().saturating_sub(offset).min(buffer.len() as u64);
            // It is at most the length of the buffer.
            let (buffer, _) = buffer.split_at_mut(rest as usize);
            object.read(&self.access, id, &[Extent { offset, len: rest }], buffer)?;
            Ok(buffer.len())
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
        self.inspect(id, |object| {
            object.check_version(id, options.if_version)?;
            if end > object.length() {
                return Err(StoreError::OutOfRange { id: id.clone(), end, length: object.length() });
            }
            object.read(&self.access, id, extents, buffer)
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
        self.change(id, |object| {
            object.object.check_version(id, options.if_version)?;
            object.check_attributes(options.attributes)?;
            object.write(extents, end, data)?;
            if !options.attributes.is_empty() {
                object.change_attributes(options.attributes)?;
            }
            Ok(object.object.version())
        })
    }

    fn append(&self, id: &ObjectId, data: &[u8]) -> Result<(u64, Version)> {
        self.change(id, |object| {
            let offset = object.object.length();
            let end = write_end(offset, data.len())?;
            object.write(&[Extent { offset, len: data.len() as u64 }], end, data)?;
            Ok((offset, object.object.version()))
        })
    }

    fn punch(&self, id: &ObjectId, range: Range<u64>) -> Result<Version> {
        self.change(id, |object| {
            object.punch(range)?;
            Ok(object.object.version())
        })
    }

    fn truncate(&self, id: &ObjectId, length: u64) -> Result<Version> {
        check_length(length)?;
        self.change(id, |object| {
            object.truncate(length)?;
            Ok(object.object.version())
        })
    }

    fn flush(&self, id: &ObjectId) -> Result<()> {
        self.change(id, |object| object.flush())
    }

    fn is_distant(&self) -> bool {
        true
    }

    fn stat(&self, id: &ObjectId) -> Result<Stat> {
        self.inspect(id, |object| Ok(object.stat(&*self.access.clock)))
    }

    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let ids = read(&self.ids);
        Ok(page(ids.range::<str, _>(page_start(prefix, after)), prefix, limit))
    }

    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>> {
        check_attribute_name(name)?;
        self.inspect(id, |_| self.access.attribute(id, name))
    }

    fn set_attribute(&self, id: &ObjectId, name: &str, value: &[u8]) -> Result<()> {
        self.change(id, |object| object.change_attributes(&[(name, Some(value))]))
    }

    fn remove_attribute(&self, id: &ObjectId, name: &str) -> Result<bool> {
        check_attribute_name(name)?;
        self.change(id, |object| {
            let had = object.attribute_names()?.contains(name);
            if had {
                object.change_attributes(&[(name, None)])?;
            }
            Ok(had)
        })
    }

    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>> {
        self.change(id, |object| Ok(object.attribute_names()?.iter().cloned().collect()))
    }

    fn compare_and_swap(
        &self,
        id: &ObjectId,
        name: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CasOutcome> {
        check_attribute_name(name)?;
        self.change(id, |object| {
            let actual = self.access.attribute(id, name)?;
            if actual.as_deref() != expected {
                return Ok(CasOutcome::Mismatch { actual });
            }
            object.change_attributes(&[(name, new)])?;
            Ok(CasOutcome::Swapped)
        })
    }

    fn fetch_add(&self, id: &ObjectId, name: &str, add: i64) -> Result<i64> {
        check_attribute_name(name)?;
        self.change(id, |object| {
            let old = decode_counter(self.access.attribute(id, name)?.as_deref(), name)?;
            object.change_attributes(&[(name, Some(&old.wrapping_add(add).to_le_bytes()))])?;
            Ok(old)
        })
    }

    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        self.inspect(id, |object| Ok(object.written().within(range, MAX_WRITTEN_PAGE)))
    }

    fn renew_lease(&self, id: &ObjectId, lease: Duration) -> Result<()> {
        check_lease(lease)?;
        self.change(id, |object| object.renew_lease(lease))
    }

    fn close(&self, id: &ObjectId) -> Result<Version> {
        self.change(id, |object| {
            object.close()?;
            Ok(object.object.version())
        })
    }
}
