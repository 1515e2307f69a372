//! A store without objects.

use std::ops::Range;
use std::time::Duration;

use crate::{
    CasOutcome, CreateOptions, Extent, ObjectId, ObjectStore, ReadOptions, Result, Stat, StoreError, Version,
    WriteOptions,
};

/// A store that has no objects and takes none: that of a node that only reads storage of others.
///
/// ```
/// use gristmill_store::{CreateOptions, EmptyStore, ObjectId, ObjectStore, StoreError};
///
/// let id = ObjectId::new("file-1")?;
/// assert!(matches!(EmptyStore.create(&id, &CreateOptions::default()), Err(StoreError::NoStore)));
/// assert!(matches!(EmptyStore.stat(&id), Err(StoreError::NotFound { .. })));
/// assert!(EmptyStore.list("", None, 10)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyStore;

fn missing<T>(id: &ObjectId) -> Result<T> {
    Err(StoreError::NotFound { id: id.clone() })
}

impl ObjectStore for EmptyStore {
    fn create(&self, _id: &ObjectId, _options: &CreateOptions) -> Result<Stat> {
        Err(StoreError::NoStore)
    }

    fn remove(&self, id: &ObjectId) -> Result<()> {
        missing(id)
    }

    fn read_at(
        &self,
        id: &ObjectId,
        _offset: u64,
        _buffer: &mut [u8],
        _options: ReadOptions,
    ) -> Result<usize> {
        missing(id)
    }

    fn read_extents(
        &self,
        id: &ObjectId,
        _extents: &[Extent],
        _buffer: &mut [u8],
        _options: ReadOptions,
    ) -> Result<()> {
        missing(id)
    }

    fn write_at(
        &self,
        id: &ObjectId,
        _offset: u64,
        _data: &[u8],
        _options: WriteOptions<'_>,
    ) -> Result<Version> {
        missing(id)
    }

    fn write_extents(
        &self,
        id: &ObjectId,
        _extents: &[Extent],
        _data: &[u8],
        _options: WriteOptions<'_>,
    ) -> Result<Version> {
        missing(id)
    }

    fn append(&self, id: &ObjectId, _data: &[u8]) -> Result<(u64, Version)> {
        missing(id)
    }

    fn punch(&self, id: &ObjectId, _range: Range<u64>) -> Result<Version> {
        missing(id)
    }

    fn truncate(&self, id: &ObjectId, _length: u64) -> Result<Version> {
        missing(id)
    }

    fn flush(&self, id: &ObjectId) -> Result<()> {
        missing(id)
    }

    fn stat(&self, id: &ObjectId) -> Result<Stat> {
        missing(id)
    }

    fn list(&self, _prefix: &str, _after: Option<&ObjectId>, _limit: usize) -> Result<Vec<ObjectId>> {
        Ok(Vec::new())
    }

    fn get_attribute(&self, id: &ObjectId, _name: &str) -> Result<Option<Vec<u8>>> {
        missing(id)
    }

    fn set_attribute(&self, id: &ObjectId, _name: &str, _value: &[u8]) -> Result<()> {
        missing(id)
    }

    fn remove_attribute(&self, id: &ObjectId, _name: &str) -> Result<bool> {
        missing(id)
    }

    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>> {
        missing(id)
    }

    fn compare_and_swap(
        &self,
        id: &ObjectId,
        _name: &str,
        _expected: Option<&[u8]>,
        _new: Option<&[u8]>,
    ) -> Result<CasOutcome> {
        missing(id)
    }

    fn fetch_add(&self, id: &ObjectId, _name: &str, _add: i64) -> Result<i64> {
        missing(id)
    }

    fn written(&self, id: &ObjectId, _range: Range<u64>) -> Result<Vec<Range<u64>>> {
        missing(id)
    }

    fn renew_lease(&self, id: &ObjectId, _lease: Duration) -> Result<()> {
        missing(id)
    }

    fn close(&self, id: &ObjectId) -> Result<Version> {
        missing(id)
    }
}
