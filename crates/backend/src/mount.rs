//! Folders of mounted file systems.

mod beneath;
mod file;
mod held;
mod plain;
mod public;

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use self::beneath::{Resolve, open_beneath};
use self::file::{FileState, Times, open_regular, read_ranges};
use self::held::{HeldFile, hold};
use crate::{
    Backend, BackendError, Content, Entry, Found, Key, Kind, MAX_LIST_PAGE, Object, Page, Result,
    check_ranges,
};

pub use self::held::MAX_HELD_FILES;
pub use self::plain::open_file;

/// Most tries to open a file whose name other files take meanwhile.
const MAX_TRIES: usize = 8;

/// A folder of a mounted file system. Names and symbolic links do not lead out of it, unless its options allow links to.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<Root>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    times: Times,
    resolve: Resolve,
    only_public: bool,
}

/// How a mount is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Leaves the time of change out of versions, for file systems that show it differently to each node. A file that gets another
    /// content of the same length, and its old time of modification, has its old version then.
    pub without_change_time: bool,
    /// Follows symbolic links that lead out of the folder. Only for folders of the user who runs this process.
    pub follows_links_out: bool,
    /// Reads only what every user of the file system may read: the bits of a file, and of all folders from it up to the root, must
    /// allow it to its group and to all others.
    pub only_public: bool,
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
        let times = if options.without_change_time { Times::Modified } else { Times::Changed };
        let resolve = if options.follows_links_out { Resolve::Anywhere } else { Resolve::Beneath };
        let path = path.into();
        // The process may change its directory later.
        let absolute = std::path::absolute(&path);
        let absolute =
            absolute.map_err(|source| BackendError::io("open", path.display().to_string(), source))?;
        let root = Root { path: absolute, times, resolve, only_public: options.only_public };
        root.folder()?;
        Ok(Mount { root: Arc::new(root) })
    }
}

impl Root {
    fn name_of(&self, key: &Key) -> String {
        self.path.join(key.as_str()).display().to_string()
    }

    /// The folder, opened for the resolution of paths only.
    fn folder(&self) -> Result<File> {
        let name = || self.path.display().to_string();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR => BackendError::WrongKind { name: name(), kind: Kind::File },
            errno => BackendError::io("open", name(), errno.into()),
        })?;
        Ok(folder.into())
    }

    /// Opens the file or folder of a key.
    fn try_open(&self, key: &Key, flags: OFlags) -> Result<std::result::Result<File, Errno>> {
        Ok(match self.resolve {
            Resolve::Anywhere => {
                let opened =
                    rustix::fs::open(self.path.join(key.as_str()), flags | OFlags::CLOEXEC, Mode::empty());
                opened.map(File::from)
            }
            Resolve::Beneath => open_beneath(&self.folder()?, key, flags),
        })
    }

    fn open(&self, verb: &'static str, key: &Key, flags: OFlags) -> Result<File> {
        self.try_open(key, flags)?.map_err(|errno| beneath::explain(verb, self.name_of(key), errno))
    }

    fn state_of(&self, key: &Key, file: &File) -> Result<FileState> {
        FileState::of(file, self.times).map_err(|source| BackendError::io("read", self.name_of(key), source))
    }

    /// Opens a regular file, and its state.
    fn open_file(&self, key: &Key) -> Result<(File, FileState)> {
        self.repeat(|| self.open_file_once(key))
    }

    fn open_file_once(&self, key: &Key) -> Result<(File, FileState)> {
        if self.look(key)?.is_none() {
            return Err(self.is_folder(key));
        }
        let explain = |errno| beneath::explain("open", self.name_of(key), errno);
        let opened =
            open_regular(|flags| self.try_open(key, flags), explain, || self.name_of(key), self.times)?;
        self.check_public(key, &opened.0)?;
        Ok(opened)
    }

    /// Refuses an opened file or folder that not everybody may read, if only public files are read.
    fn check_public(&self, key: &Key, opened: &File) -> Result<()> {
        if !self.only_public {
            return Ok(());
        }
        match public::is_public(&self.folder()?, opened) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = "not every user may read it, and its node cannot take on the rights of one user; its owner can let all read it \
                           (chmod go+r, and go+x for the folders above it)";
                Err(BackendError::Denied { name: self.name_of(key), why: why.to_owned() })
            }
            // Another file took its name, or a folder above was renamed, between two calls.
            Err(Errno::NOENT | Errno::STALE) => Err(BackendError::Changed { name: self.name_of(key) }),
            Err(errno) => Err(beneath::explain("read", self.name_of(key), errno)),
        }
    }

    /// Repeats an operation while files get other names meanwhile.
    fn repeat<T>(&self, operation: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 1..MAX_TRIES {
            match operation() {
                Err(BackendError::Changed { .. }) if self.only_public => {}
                done => return done,
            }
        }
        operation()
    }

    /// The state of a file, or `None` for a folder.
    fn look(&self, key: &Key) -> Result<Option<FileState>> {
        self.repeat(|| self.look_once(key))
    }

    fn look_once(&self, key: &Key) -> Result<Option<FileState>> {
        let state = match self.resolve {
            Resolve::Anywhere => {
                let meta = std::fs::metadata(self.path.join(key.as_str()));
                let meta = meta.map_err(|source| match Errno::from_io_error(&source) {
                    Some(errno) => beneath::explain("read", self.name_of(key), errno),
                    None => BackendError::io("read", self.name_of(key), source),
                })?;
                FileState::of_metadata(&meta, self.times)
            }
            Resolve::Beneath => {
                let opened = self.open("open", key, OFlags::PATH)?;
                let state = self.state_of(key, &opened)?;
                if !state.is_folder() {
                    self.check_public(key, &opened)?;
                }
                state
            }
        };
        if state.is_folder() {
            return Ok(None);
        }
        state.check_kind(|| self.name_of(key))?;
        Ok(Some(state))
    }

    fn is_folder(&self, key: &Key) -> BackendError {
        BackendError::WrongKind { name: self.name_of(key), kind: Kind::Folder }
    }

    /// The first `limit` names of a folder after a name.
    fn names(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<BTreeSet<String>> {
        let failed = |errno: Errno| match errno {
            Errno::NOTDIR => {
                let name = self.name_of(folder);
                BackendError::WrongKind { name, kind: Kind::File }
            }
            errno => beneath::explain("list", self.name_of(folder), errno),
        };
        let opened = self.try_open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?.map_err(failed)?;
        self.check_public(folder, &opened)?;
        let mut names = BTreeSet::new();
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let is_in_page =
                names.len() < limit || names.last().is_some_and(|last: &String| name < last.as_str());
            if matches!(name, "." | "..") || !is_in_page || after.is_some_and(|after| name <= after) {
                continue;
            }
            names.insert(name.to_owned());
            if names.len() > limit {
                names.pop_last();
            }
        }
        Ok(names)
    }

    /// Looks up a name that was listed. Returns `None` if it was removed meanwhile.
    fn entry(&self, folder: &Key, name: String) -> Result<Option<Entry>> {
        let key = folder.join(&name)?;
        let content = match self.look(&key) {
            Ok(None) => Content::Folder,
            Ok(Some(state)) => Content::File(state.found()),
            Err(BackendError::NotFound { .. }) if !self.has_name(folder, &name)? => return Ok(None),
            Err(BackendError::NotFound { name }) => Content::Unreadable {
                why: format!("{name} is a symbolic link to a file that does not exist"),
            },
            Err(error @ (BackendError::WrongKind { .. } | BackendError::Denied { .. })) => {
                Content::Unreadable { why: error.to_string() }
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Entry { name, content }))
    }

    /// Whether a folder has a name, whatever it leads to.
    fn has_name(&self, folder: &Key, name: &str) -> Result<bool> {
        let opened = self.open("list", folder, OFlags::PATH)?;
        match rustix::fs::statat(&opened, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(beneath::explain("list", self.name_of(folder), errno)),
        }
    }

    fn entries(&self, folder: &Key, names: BTreeSet<String>) -> Result<Vec<Entry>> {
        let entries = names.into_iter().map(|name| self.entry(folder, name));
        entries.filter_map(Result::transpose).collect()
    }
}

impl Backend for Mount {
    fn name(&self) -> String {
        self.root.path.display().to_string()
    }

    /// Reads all names of the folder for each page, because file systems do not sort them. It keeps those of one page in memory.
    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        let limit = limit.clamp(1, MAX_LIST_PAGE);
        let mut from = from.map(str::to_owned);
        loop {
            let names = self.root.names(folder, from.as_deref(), limit)?;
            let next = names.last().filter(|_| names.len() == limit).cloned();
            let entries = self.root.entries(folder, names)?;
            // All of them may have been removed meanwhile.
            if !entries.is_empty() || next.is_none() {
                return Ok(Page { entries, next });
            }
            from = next;
        }
    }

    /// Reads the names of the folder once.
    fn list_all(&self, folder: &Key, most: usize) -> Result<Vec<Entry>> {
        let names = self.root.names(folder, None, most.saturating_add(1))?;
        if names.len() > most {
            return Err(BackendError::TooMany { name: self.root.name_of(folder), most });
        }
        self.root.entries(folder, names)
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        self.root.look(key)?.map(|state| state.found()).ok_or_else(|| self.root.is_folder(key))
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let (file, state) = self.root.open_file(key)?;
        let found = state.found();
        Ok(Arc::new(MountedFile {
            root: self.root.clone(),
            key: key.clone(),
            found,
            state,
            file: hold(file),
        }))
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
        let (file, state) = self.root.open_file(&self.key).map_err(|error| match error {
            BackendError::NotFound { .. } | BackendError::WrongKind { .. } => changed(),
            error => error,
        })?;
        if state != self.state {
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
        match self.root.look(&self.key) {
            Ok(Some(state)) if state == self.state => Ok(()),
            Ok(_) | Err(BackendError::NotFound { .. } | BackendError::WrongKind { .. }) => {
                Err(BackendError::Changed { name: self.name() })
            }
            Err(error) => Err(error),
        }
    }
}
