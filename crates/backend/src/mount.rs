//! Folders of mounted file systems.

mod beneath;
mod file;
mod held;
mod identity;
mod plain;
mod public;
mod reader;
mod root;

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use self::file::{FileState, is_growing, read_ranges};
use self::held::{HeldFile, hold};
use self::root::Root;
use crate::{
    Backend, BackendError, Entry, Found, Key, MAX_LIST_PAGE, Object, Page, Result, WholeRecords, check_ranges,
};

pub use self::held::MAX_HELD_FILES;
pub use self::plain::{open_file, open_growing_file};
pub use self::reader::{MAX_GROUPS, Reader, UnixUser};

/// A folder of a mounted file system. Names and symbolic links do not lead out of it, unless its options allow links to.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<Root>,
}

/// How a mount is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Leaves the time of change out of versions, for file systems that show it differently to each node. A file that gets another
    /// content of the same length, and its old time of modification, has its old version then.
    pub without_change_time: bool,
    /// Follows symbolic links that lead out of the folder. Only for folders of the user who runs this process.
    pub follows_links_out: bool,
    /// The user whose rights count.
    pub reader: Reader,
}

impl Mount {
    /// Opens a folder. The path is resolved again for each file, so a folder that takes its name later is read from then on.
    ///
    /// # Errors
    /// The error is [`BackendError::NotFound`] or [`BackendError::WrongKind`] if there is no such folder, and
    /// [`BackendError::Denied`] if the folders above it may not be searched. It also fails if the system fails.
    pub fn open(path: impl Into<PathBuf>) -> Result<Mount> {
        Mount::open_with(path, MountOptions::default())
    }

    /// Opens a folder with options.
    ///
    /// # Errors
    /// It fails as [`open`](Mount::open) does.
    pub fn open_with(path: impl Into<PathBuf>, options: MountOptions) -> Result<Mount> {
        let path = path.into();
        // The process may change its directory later.
        let absolute = std::path::absolute(&path);
        let absolute =
            absolute.map_err(|source| BackendError::io("open", path.display().to_string(), source))?;
        Ok(Mount { root: Arc::new(Root::open(absolute, options)?) })
    }
}

impl Backend for Mount {
    fn name(&self) -> String {
        self.root.path.display().to_string()
    }

    /// Reads all names of the folder for each page, because file systems do not sort them. It keeps those of one page in memory.
    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        self.root.act(|root| root.page(folder, from, limit.clamp(1, MAX_LIST_PAGE)))
    }

    /// Reads the names of the folder once.
    fn list_all(&self, folder: &Key, most: usize) -> Result<Vec<Entry>> {
        self.root.act(|root| {
            let names = root.names(folder, None, most.saturating_add(1))?;
            if names.len() > most {
                return Err(BackendError::TooMany { name: root.name_of(folder), most });
            }
            root.entries(folder, names)
        })
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        self.root.act(|root| root.look(key)?.map(|state| state.found()).ok_or_else(|| root.is_folder(key)))
    }

    fn stat_growing(&self, key: &Key, records: WholeRecords) -> Result<Found> {
        let (file, state) = self.root.act(|root| root.open_file(key))?;
        let name = || self.root.name_of(key);
        Ok(state.whole_records(records, &file, name)?.found())
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let (file, state) = self.root.act(|root| root.open_file(key))?;
        Ok(self.opened(key, file, state))
    }

    fn open_at(&self, key: &Key, found: &Found) -> Result<Arc<dyn Object>> {
        let (file, state) = self.root.act(|root| root.open_file(key))?;
        let state = if is_growing(found) { state.growing(found.length) } else { Some(state) };
        let state = state.filter(|state| state.found() == *found);
        let state = state.ok_or_else(|| BackendError::Changed { name: self.root.name_of(key) })?;
        Ok(self.opened(key, file, state))
    }
}

impl Mount {
    fn opened(&self, key: &Key, file: File, state: FileState) -> Arc<dyn Object> {
        let (root, key, found) = (self.root.clone(), key.clone(), state.found());
        Arc::new(MountedFile { root, key, found, state, file: hold(file) })
    }
}

/// A file below a mount.
struct MountedFile {
    root: Arc<Root>,
    key: Key,
    found: Found,
    state: FileState,
    /// The file, if it stays open.
    file: Option<HeldFile>,
}

impl MountedFile {
    /// Calls `with` with the file in the state in which it was opened.
    fn with_file<T>(&self, with: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        if let Some(file) = &self.file {
            return with(file.file());
        }
        let changed = || BackendError::Changed { name: self.name() };
        let (file, state) = self.root.act(|root| root.open_file(&self.key)).map_err(|error| match error {
            BackendError::NotFound { .. } | BackendError::WrongKind { .. } => changed(),
            error => error,
        })?;
        if !self.state.is_state_of(state) {
            return Err(changed());
        }
        with(&file)
    }
}

impl Object for MountedFile {
    fn name(&self) -> String {
        self.root.name_of(&self.key)
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found.length, ranges, out.len())?;
        self.with_file(|file| read_ranges(file, || self.name(), ranges, out))
    }

    fn unchanged(&self) -> Result<()> {
        if let Some(file) = &self.file {
            return self.state.check_same(file.file(), || self.name());
        }
        match self.root.act(|root| root.look(&self.key)) {
            Ok(Some(state)) if self.state.is_state_of(state) => Ok(()),
            Ok(_) | Err(BackendError::NotFound { .. } | BackendError::WrongKind { .. }) => {
                Err(BackendError::Changed { name: self.name() })
            }
            Err(error) => Err(error),
        }
    }
}
