//! A cache of open data files, so that a read costs one system call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::Result;
use crate::disk::DataFile;
use crate::locks::lock;

/// Most data files that a local store keeps open.
pub const MAX_OPEN_FILES: usize = 512;

/// Open files by the birth number of their object. The least recently used one is removed first.
pub(super) struct FileCache(Mutex<OpenFiles>);

#[derive(Default)]
struct OpenFiles {
    files: HashMap<u64, (Arc<dyn DataFile>, u64)>,
    tick: u64,
}

impl FileCache {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the open file of `birth`. If there is none, runs `open` without the lock.
    pub(super) fn get(
        &self,
        birth: u64,
        open: impl FnOnce() -> Result<Box<dyn DataFile>>,
    ) -> Result<Arc<dyn DataFile>> {
        {
            let mut cache = lock(&self.0);
            cache.tick += 1;
            let tick = cache.tick;
            if let Some((file, used)) = cache.files.get_mut(&birth) {
                *used = tick;
                return Ok(file.clone());
            }
        }
        let file: Arc<dyn DataFile> = open()?.into();
        self.put(birth, file.clone());
        Ok(file)
    }

    pub(super) fn put(&self, birth: u64, file: Arc<dyn DataFile>) {
        let mut cache = lock(&self.0);
        if cache.files.len() >= MAX_OPEN_FILES
            && let Some(oldest) = cache.files.iter().min_by_key(|(_, (_, used))| *used).map(|(&key, _)| key)
        {
            cache.files.remove(&oldest);
        }
        cache.tick += 1;
        let tick = cache.tick;
        cache.files.insert(birth, (file, tick));
    }

    pub(super) fn forget(&self, birth: u64) {
        lock(&self.0).files.remove(&birth);
    }
}
