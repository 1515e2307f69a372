//! Trees of files, for formats that have many files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::source::{FileSource, Source};
use crate::{FormatError, MAX_FILES};

/// Most levels of folders below a root.
const MAX_DEPTH: usize = 64;

/// A tree of files. A *key* is the path of a file below the root, with `/` between its parts but not at its ends.
pub trait Tree: Send + Sync {
    /// Opens a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the file cannot be opened.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError>;

    /// Lists all files below a folder, which is `""` for the root: keys in the order of their bytes, and lengths. A
    /// folder that does not exist has no files.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if a folder cannot be read, and [`FormatError::Limit`] for more than [`MAX_FILES`]
    /// files.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError>;
}

/// A folder of this machine.
#[derive(Debug)]
pub struct FolderTree {
    root: PathBuf,
}

impl FolderTree {
    /// The tree below this folder.
    pub fn new(root: impl Into<PathBuf>) -> FolderTree {
        FolderTree { root: root.into() }
    }

    /// Returns the path of a key. Keys come from files, so a key must not name anything above the root.
    fn path(&self, key: &str) -> Result<PathBuf, FormatError> {
        let whole = key.is_empty() || key.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !whole || key.contains('\0') {
            return Err(FormatError::damaged("Zarr", format!("it names a file {key:?}")));
        }
        Ok(self.root.join(key))
    }

    fn walk(
        &self,
        folder: &Path,
        key: &str,
        depth: usize,
        found: &mut Vec<(String, u64)>,
    ) -> Result<(), FormatError> {
        FormatError::limit("levels of folders", depth as u64, MAX_DEPTH as u64)?;
        let failed = |source| FormatError::io(folder.display().to_string(), source);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // Keys are UTF-8, so other names belong to no array.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let below = if key.is_empty() { name } else { format!("{key}/{name}") };
            let meta = fs::metadata(entry.path()).map_err(failed)?;
            if meta.is_dir() {
                self.walk(&entry.path(), &below, depth + 1, found)?;
            } else if meta.is_file() {
                FormatError::limit("files", found.len() as u64 + 1, MAX_FILES as u64)?;
                found.push((below, meta.len()));
            }
        }
        Ok(())
    }
}

impl Tree for FolderTree {
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let path = self.path(key)?;
        if !path.is_file() {
            return Ok(None);
        }
        Ok(Some(Arc::new(FileSource::open(&path)?)))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let mut found = Vec::new();
        self.walk(&self.path(folder)?, folder, 0, &mut found)?;
        found.sort_unstable();
        Ok(found)
    }
}

/// A tree in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree(pub BTreeMap<String, Vec<u8>>);

impl Tree for MemoryTree {
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        Ok(self.0.get(key).map(|bytes| Arc::new(bytes.clone()) as Arc<dyn Source>))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        let below = |key: &str| {
            folder.is_empty() || key.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let found: Vec<_> = self.0.iter().filter(|(key, _)| below(key)).collect();
        FormatError::limit("files", found.len() as u64, MAX_FILES as u64)?;
        Ok(found.into_iter().map(|(key, bytes)| (key.clone(), bytes.len() as u64)).collect())
    }
}
