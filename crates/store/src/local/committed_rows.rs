//! The rows of objects while another process may commit changes of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::MAX_CACHED_OBJECTS;
use super::meta::{Meta, Row};
use crate::locks::lock;
use crate::{ObjectId, ReadOptions, Result, StoreError, Version};

/// Most repetitions of a read because the writer committed meanwhile. Then the read returns its error.
const MAX_RETRIES: usize = 8;

/// The rows that the writing process committed last. Rows of one state of the SQLite file are kept.
pub(super) struct CommittedRows {
    pub(super) meta: Meta,
    cached: Mutex<Rows>,
}

/// Rows of one state of the SQLite file.
#[derive(Default)]
struct Rows {
    data_version: i64,
    rows: HashMap<ObjectId, Arc<Row>>,
}

impl CommittedRows {
    pub(super) fn new(meta: Meta) -> Self {
        Self { meta, cached: Mutex::default() }
    }

    /// The present row of `id`. If it is the same `Arc` as before, nothing was committed in between.
    pub(super) fn get(&self, id: &ObjectId) -> Result<Arc<Row>> {
        let mut rows = lock(&self.cached);
        let data_version = self.meta.data_version()?;
        if rows.data_version != data_version || rows.rows.len() >= MAX_CACHED_OBJECTS {
            *rows = Rows { data_version, rows: HashMap::new() };
        }
        if let Some(row) = rows.rows.get(id) {
            return Ok(row.clone());
        }
        let row = self.meta.load(id)?.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let row = Arc::new(row);
        rows.rows.insert(id.clone(), row.clone());
        Ok(row)
    }

    /// The row of `id`, if it has the version that `options` name.
    fn expected(&self, id: &ObjectId, options: ReadOptions) -> Result<Arc<Row>> {
        let row = self.get(id)?;
        if let Some(expected) = options.if_version {
            let actual = Version(row.version);
            if actual != expected {
                return Err(StoreError::Stale { id: id.clone(), expected, actual });
            }
            if row.dirty.is_some() {
                return Err(StoreError::Unflushed { id: id.clone() });
            }
        }
        Ok(row)
    }

    /// Runs `read` between two checks of the version. Repeats it if it found damage and there was a commit meanwhile.
    pub(super) fn read_checked<T>(
        &self,
        id: &ObjectId,
        options: ReadOptions,
        mut read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<T> {
        let mut retries = 0;
        loop {
            let row = self.expected(id, options)?;
            match read(&row) {
                Ok(value) => {
                    if options.if_version.is_some() {
                        self.expected(id, options)?;
                    }
                    return Ok(value);
                }
                Err(StoreError::Damaged { .. } | StoreError::Corrupt { .. })
                    if retries < MAX_RETRIES && !Arc::ptr_eq(&row, &self.expected(id, options)?) =>
                {
                    retries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Calls `read` with the birth number of the object. Repeats it if another object got the name meanwhile.
    pub(super) fn for_one_object<T>(&self, id: &ObjectId, read: impl Fn(u64) -> Result<T>) -> Result<T> {
        for _ in 0..=MAX_RETRIES {
            let birth = self.get(id)?.birth;
            let found = read(birth)?;
            if self.get(id)?.birth == birth {
                return Ok(found);
            }
        }
        Err(StoreError::NotFound { id: id.clone() })
    }
}
