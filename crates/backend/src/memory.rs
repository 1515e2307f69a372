//! A backend in memory, for tests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use crate::backend::page;
use crate::{
    Backend, BackendError, Content, Entry, Found, Key, Kind, Object, Page, Result, Stamp, check_ranges,
};

/// Files in memory. A file that is written again has a new version. Clones share their files.
#[derive(Clone, Debug, Default)]
pub struct MemoryBackend {
    files: Arc<RwLock<Files>>,
}

/// Files by their keys, each with the number of its version, and the number of writes.
#[derive(Debug, Default)]
struct Files {
    by_key: BTreeMap<String, (u64, Arc<Vec<u8>>)>,
    writes: u64,
}

impl MemoryBackend {
    /// Writes a file, or replaces it.
    pub fn put(&self, key: &Key, bytes: Vec<u8>) {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.writes += 1;
        let version = files.writes;
        files.by_key.insert(key.as_str().to_owned(), (version, Arc::new(bytes)));
    }

    /// Removes a file.
    pub fn remove(&self, key: &Key) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).by_key.remove(key.as_str());
    }

    fn name_of(&self, key: &Key) -> String {
        format!("{}{key}", self.name())
    }

    fn get(&self, key: &Key) -> Result<(Found, Arc<Vec<u8>>)> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        match files.by_key.get(key.as_str()) {
            Some((version, bytes)) => Ok((found(*version, bytes), bytes.clone())),
            None if key.is_root() || files.below(key).next().is_some() => {
                let name = self.name_of(key);
                Err(BackendError::WrongKind { name, kind: Kind::Folder })
            }
            None => Err(BackendError::NotFound { name: self.name_of(key) }),
        }
    }
}

impl Files {
    /// The files below a folder, with their names below it.
    fn below<'a>(&'a self, folder: &Key) -> impl Iterator<Item = (&'a str, Found)> + use<'a> {
        let prefix = if folder.is_root() { String::new() } else { format!("{folder}/") };
        let from = self.by_key.range(prefix.clone()..);
        from.map_while(move |(key, (version, bytes))| {
            Some((key.strip_prefix(prefix.as_str())?, found(*version, bytes)))
        })
    }
}

fn found(version: u64, bytes: &[u8]) -> Found {
    Found { length: bytes.len() as u64, stamp: Stamp::of_numbers(version.to_string()) }
}

impl Backend for MemoryBackend {
    fn name(&self) -> String {
        "memory:/".to_owned()
    }

    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: BTreeMap<String, Content> = BTreeMap::new();
        for (name, found) in files.below(folder) {
            match name.split_once('/') {
                Some((below, _)) => names.insert(below.to_owned(), Content::Folder),
                None => names.insert(name.to_owned(), Content::File(found)),
            };
        }
        if names.is_empty() && files.by_key.contains_key(folder.as_str()) {
            return Err(BackendError::WrongKind { name: self.name_of(folder), kind: Kind::File });
        }
        if names.is_empty() && !folder.is_root() {
            return Err(BackendError::NotFound { name: self.name_of(folder) });
        }
        Ok(page(names.into_iter().map(|(name, content)| Entry { name, content }), from, limit))
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        Ok(self.get(key)?.0)
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let (found, bytes) = self.get(key)?;
        Ok(Arc::new(MemoryObject { name: self.name_of(key), found, bytes }))
    }
}

/// A file in memory. It keeps its bytes after it was replaced.
struct MemoryObject {
    name: String,
    found: Found,
    bytes: Arc<Vec<u8>>,
}

impl Object for MemoryObject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found.length, ranges, out.len())?;
        let mut rest = out;
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let (now, later) = rest.split_at_mut((range.end - range.start) as usize);
            now.copy_from_slice(&self.bytes[range.start as usize..range.end as usize]);
            rest = later;
        }
        Ok(())
    }

    fn unchanged(&self) -> Result<()> {
        Ok(())
    }
}
