//! Where the files of a format come from that has many of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::source::{FileSource, Source};
use crate::{FormatError, MAX_FILES};

/// Most levels of folders below a root.
const MAX_DEPTH: usize = 64;

/// A tree of files. A *key* is the path of one below the root, with `/` between its parts and none at its ends.
pub trait Tree: Send + Sync {
    /// Opens a file; `None` where there is none.
    ///
    /// # Errors
    /// [`FormatError::Io`].
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError>;

    /// All files below a folder, `""` for the root: keys and lengths, in the order of their bytes. Nothing for a folder
    /// that is not there.
    ///
    /// # Errors
    /// [`FormatError::Io`], [`FormatError::Limit`] for more than [`MAX_FILES`].
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

    /// Where a key lies. Keys come from what a file says, so nothing above the root can be named by one.
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
            // A name that is no text is none of ours.
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
