//! Trees of files, for formats that have many files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_backend::{
    Backend, BackendError, Content, Found, Key, Kind, MAX_DEPTH, Mount, MountOptions, Object, Reader,
};

use crate::source::{ObjectSource, Source, io_error};
use crate::{FormatError, MAX_FILES};

/// A tree of files. A *key* is the path of a file below the root, with `/` between its parts but not at its ends.
pub trait Tree: Send + Sync {
    /// Opens a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the file cannot be opened.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError>;

    /// Whether lists name every file. If not, a chunk without a file in the list cannot be taken for one that is not stored.
    fn lists_everything(&self) -> bool {
        true
    }

    /// Lists all files below a folder, which is `""` for the root: keys in the order of their bytes, and lengths. A
    /// folder that does not exist has no files.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if a folder cannot be read, and [`FormatError::Limit`] for more than [`MAX_FILES`]
    /// files.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError>;
}

/// All files of a backend, or those below one of its folders.
#[derive(Clone)]
pub struct BackendTree {
    backend: Arc<dyn Backend>,
}

impl BackendTree {
    /// The tree of a backend.
    pub fn new(backend: Arc<dyn Backend>) -> BackendTree {
        BackendTree { backend }
    }

    /// The tree below a folder of this machine. Symbolic links may lead anywhere, so the folder is one of the user who runs the process.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the folder cannot be opened.
    pub fn of_folder(root: &Path) -> Result<BackendTree, FormatError> {
        let options =
            MountOptions { without_change_time: true, follows_links_out: true, reader: Reader::Process };
        let mount =
            Mount::open_with(root, options).map_err(|error| failed(root.display().to_string(), error))?;
        Ok(BackendTree::new(Arc::new(mount)))
    }

    /// The state of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if that cannot be found out.
    pub fn stat(&self, key: &str) -> Result<Option<Found>, FormatError> {
        known(key, self.backend.stat(&checked(key)?))
    }

    /// Opens a file; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the file cannot be opened.
    pub fn object(&self, key: &str) -> Result<Option<Arc<dyn Object>>, FormatError> {
        known(key, self.backend.open(&checked(key)?))
    }

    /// Opens a file in a state that was found before; `None` if it does not exist, or has another state.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the file cannot be opened.
    pub fn object_at(&self, key: &str, found: &Found) -> Result<Option<Arc<dyn Object>>, FormatError> {
        match self.backend.open_at(&checked(key)?, found) {
            Err(BackendError::Changed { .. }) => Ok(None),
            opened => known(key, opened),
        }
    }

    /// All files below a folder, as [`Tree::list`] returns them, with their states.
    ///
    /// # Errors
    /// It fails as [`Tree::list`] does.
    pub fn files(&self, folder: &str) -> Result<Vec<(String, Found)>, FormatError> {
        let root = checked(folder)?;
        let below = match self.backend.files_below(&root, MAX_FILES) {
            Ok(below) => below,
            Err(BackendError::NotFound { .. }) if self.backend.lists_everything() => return Ok(Vec::new()),
            Err(BackendError::TooMany { .. }) => {
                let (found, max) = (MAX_FILES as u64 + 1, MAX_FILES as u64);
                return Err(FormatError::Limit { what: "files".to_owned(), found, max });
            }
            Err(BackendError::TooDeep { .. }) => {
                let max = MAX_DEPTH as u64;
                return Err(FormatError::Limit { what: "levels of folders".to_owned(), found: max + 1, max });
            }
            Err(error) if folder.is_empty() => return Err(failed(self.backend.name(), error)),
            Err(error) => return Err(failed(folder.to_owned(), error)),
        };
        let mut found = Vec::with_capacity(below.len());
        for (key, content) in below {
            let name = key.as_str().rsplit('/').next().unwrap_or_default();
            match content {
                Content::File(state) => found.push((key.to_string(), state)),
                // Without it a chunk would count as not stored, and read as the fill value. Other names do not matter.
                Content::Unreadable { why } if is_zarr_name(name) => {
                    return Err(FormatError::io(key.to_string(), std::io::Error::other(why)));
                }
                Content::Unreadable { .. } | Content::Folder => {}
            }
        }
        Ok(found)
    }
}

/// Names of files of Zarr that describe arrays and groups.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// Whether a file of this name can belong to an array of Zarr: a document, or a chunk (`0.1`, `c.0.1`, `7`). Programs also leave other
/// files there: `.#notes`, `0.1.6c1f.partial`.
pub fn is_zarr_name(name: &str) -> bool {
    let numbers = name.strip_prefix('c').unwrap_or(name);
    DOCUMENTS.contains(&name) || numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Keys come from files, so a key must not name anything above the root.
fn checked(key: &str) -> Result<Key, FormatError> {
    Key::new(key).map_err(|_| FormatError::damaged("Zarr", format!("it names a file {key:?}")))
}

fn failed(what: String, error: BackendError) -> FormatError {
    FormatError::io(what, io_error(error))
}

/// `None` for what does not exist, and for a folder.
fn known<T>(key: &str, found: gristmill_backend::Result<T>) -> Result<Option<T>, FormatError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(
            BackendError::NotFound { .. }
            | BackendError::WrongKind { kind: Kind::Folder | Kind::BelowFile, .. },
        ) => Ok(None),
        Err(error) => Err(failed(key.to_owned(), error)),
    }
}

impl Tree for BackendTree {
    fn lists_everything(&self) -> bool {
        self.backend.lists_everything()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, FormatError> {
        let object = self.object(key)?;
        Ok(object.map(|object| Arc::new(ObjectSource::new(object)) as Arc<dyn Source>))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, FormatError> {
        Ok(self.files(folder)?.into_iter().map(|(key, found)| (key, found.length)).collect())
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

#[cfg(test)]
mod tests {
    use super::is_zarr_name;

    #[test]
    fn names_of_chunks_are_told_from_other_names() {
        for name in ["0", "12.3.4", "c", "c.0.1", "zarr.json", ".zarray", ".zattrs"] {
            assert!(is_zarr_name(name), "{name}");
        }
        for name in [".#notes", "0.1.6c1f.partial", ".nfs0001", "README.md", "c.x", "v"] {
            assert!(!is_zarr_name(name), "{name}");
        }
    }
}
