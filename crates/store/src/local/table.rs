//! The objects in memory, and those with unflushed changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};

use super::meta::Meta;
use super::object::Object;
use crate::locks::{lock, read, write};
use crate::{ObjectId, Result, StoreError};

/// Objects whose metadata stay in memory. Objects in use or with unflushed changes are not counted; those with
/// unflushed changes are bounded by [`MAX_UNFLUSHED_OBJECTS`].
pub const MAX_CACHED_OBJECTS: usize = 65_536;
/// Most objects with unflushed changes. At this number, the next change flushes one of them first.
pub const MAX_UNFLUSHED_OBJECTS: usize = 1_024;

pub(super) struct Table {
    inner: RwLock<Inner>,
    /// Objects with unflushed changes, by birth number. The reference here also keeps the object in `inner`.
    unflushed: Mutex<BTreeMap<u64, Arc<Object>>>,
}

#[derive(Default)]
struct Inner {
    objects: HashMap<ObjectId, Arc<Object>>,
    /// Objects that were created and never flushed. SQLite does not have them.
    never_flushed: BTreeSet<ObjectId>,
    tick: u64,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { inner: RwLock::default(), unflushed: Mutex::default() }
    }

    /// Returns the object from memory, or loads it from its row.
    pub(super) fn get(&self, id: &ObjectId, meta: &Meta) -> Result<Arc<Object>> {
        {
            let inner = read(&self.inner);
            if let Some(object) = inner.objects.get(id) {
                object.used.store(inner.tick, Ordering::Relaxed);
                return Ok(object.clone());
            }
        }
        // The row is loaded under the lock, so that there is never a second copy of the object.
        let mut inner = write(&self.inner);
        if let Some(object) = inner.objects.get(id) {
            return Ok(object.clone());
        }
        let row = meta.load(id)?.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let object = Arc::new(Object::from_row(id.clone(), row));
        inner.insert(object.clone());
        Ok(object)
    }

    /// Inserts the object that `make` makes, unless there is an object of this name.
    pub(super) fn create(
        &self,
        id: &ObjectId,
        meta: &Meta,
        make: impl FnOnce() -> Result<Object>,
    ) -> Result<Arc<Object>> {
        let mut inner = write(&self.inner);
        if inner.objects.contains_key(id) || meta.load(id)?.is_some() {
            return Err(StoreError::Exists { id: id.clone() });
        }
        let object = Arc::new(make()?);
        inner.insert(object.clone());
        inner.never_flushed.insert(id.clone());
        self.note_unflushed(&object);
        Ok(object)
    }

    /// Calls `list` with the names that SQLite does not have yet. They cannot change during the call.
    pub(super) fn with_never_flushed<T>(
        &self,
        list: impl FnOnce(&BTreeSet<ObjectId>) -> Result<T>,
    ) -> Result<T> {
        list(&read(&self.inner).never_flushed)
    }

    pub(super) fn forget(&self, object: &Object) {
        let mut inner = write(&self.inner);
        inner.objects.remove(&object.id);
        inner.never_flushed.remove(&object.id);
        drop(inner);
        lock(&self.unflushed).remove(&object.birth);
    }

    pub(super) fn note_unflushed(&self, object: &Arc<Object>) {
        lock(&self.unflushed).entry(object.birth).or_insert_with(|| object.clone());
    }

    pub(super) fn note_flushed(&self, object: &Object, first: bool) {
        if first {
            write(&self.inner).never_flushed.remove(&object.id);
        }
        lock(&self.unflushed).remove(&object.birth);
    }

    pub(super) fn unflushed(&self) -> Vec<Arc<Object>> {
        lock(&self.unflushed).values().cloned().collect()
    }

    /// An object that must be flushed before another object may have unflushed changes.
    pub(super) fn object_to_flush(&self) -> Option<Arc<Object>> {
        let unflushed = lock(&self.unflushed);
        if unflushed.len() < MAX_UNFLUSHED_OBJECTS {
            return None;
        }
        unflushed.values().find(|object| !object.unsynced.load(Ordering::Relaxed)).cloned()
    }
}

impl Inner {
    fn insert(&mut self, object: Arc<Object>) {
        self.tick += 1;
        object.used.store(self.tick, Ordering::Relaxed);
        if self.objects.len() >= MAX_CACHED_OBJECTS {
            self.evict();
        }
        self.objects.insert(object.id.clone(), object);
    }

    /// Drops the least recently used eighth of the objects. No other thread has a reference to them, and none can get
    /// one while the table is locked.
    fn evict(&mut self) {
        let idle = self.objects.values().filter(|object| Arc::strong_count(object) == 1);
        let mut idle: Vec<_> = idle.map(|o| (o.used.load(Ordering::Relaxed), o.id.clone())).collect();
        let count = (MAX_CACHED_OBJECTS / 8).min(idle.len());
        if count > 0 {
            idle.select_nth_unstable(count - 1);
        }
        for (_, id) in idle.iter().take(count) {
            self.objects.remove(id);
        }
    }
}
