//! Folders of mounted file systems.

mod beneath;
mod file;

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Dir, FileType, OFlags};

use self::beneath::Resolve;
use self::file::{FileState, Times, read_range};
use crate::{Backend, BackendError, Entry, Found, Key, MAX_LIST_PAGE, Object, Result, check_ranges};

/// Most files of a mount that stay open between reads. Further files are opened for each read.
pub const MAX_HELD_FILES: usize = 256;

/// A folder of a mounted file system. Names and symbolic links do not lead out of it, unless its options allow links to.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<Root>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// The folder, opened for the resolution of paths only.
    folder: File,
    times: Times,
    resolve: Resolve,
    held: AtomicUsize,
}

/// How a mount is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Leaves the time of change out of versions, for file systems that show it differently to each node. A file that gets another
    /// content of the same length, and its old time of modification, has its old version then.
    pub without_change_time: bool,
    /// Follows symbolic links that lead out of the folder. Only for folders of the user who runs this process.
    pub follows_links_out: bool,
}

impl Mount {
    /// Opens a folder.
    ///
    /// # Errors
    /// The error is [`BackendError::NotFound`], [`BackendError::WrongKind`] or [`BackendError::Denied`] if there is no such folder
    /// or it may not be searched. It also fails if the system fails.
    pub fn open(path: impl Into<PathBuf>) -> Result<Mount> {
        Mount::open_with(path, MountOptions::default())
    }

    /// Opens a folder with options.
    ///
    /// # Errors
    /// It fails as [`open`](Mount::open) does.
    pub fn open_with(path: impl Into<PathBuf>, options: MountOptions) -> Result<Mount> {
        let path = path.into();
        let name = || path.display().to_string();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).map_err(|errno| match errno {
                rustix::io::Errno::NOTDIR => {
                    BackendError::WrongKind { name: name(), what: "a file", wanted: "a directory" }
                }
                errno => BackendError::io("open", name(), errno.into()),
            })?;
        let times = if options.without_change_time { Times::Modified } else { Times::Changed };
        let resolve = if options.follows_links_out { Resolve::Anywhere } else { Resolve::Beneath };
        let root = Root { folder: folder.into(), path, times, resolve, held: AtomicUsize::new(0) };
        Ok(Mount { root: Arc::new(root) })
    }
}

impl Root {
    fn name_of(&self, key: &Key) -> String {
        self.path.join(key.as_str()).display().to_string()
    }

    /// Opens a regular file, and its state.
    fn open_file(&self, key: &Key) -> Result<(File, FileState)> {
        let name = || self.name_of(key);
        // Without the flag, opening a pipe waits for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .resolve
            .open(&self.folder, key, flags)
            .map_err(|errno| beneath::explain("open", name(), errno))?;
        let state =
            FileState::of(&file, self.times).map_err(|source| BackendError::io("read", name(), source))?;
        state.check_kind(name)?;
        Ok((file, state))
    }

    /// The state of a file, or `None` for a folder.
    fn look(&self, key: &Key) -> Result<Option<FileState>> {
        let name = || self.name_of(key);
        let found = self
            .resolve
            .open(&self.folder, key, OFlags::PATH)
            .map_err(|errno| beneath::explain("open", name(), errno))?;
        let state =
            FileState::of(&found, self.times).map_err(|source| BackendError::io("read", name(), source))?;
        if state.is_folder() {
            return Ok(None);
        }
        state.check_kind(name)?;
        Ok(Some(state))
    }
}

impl Backend for Mount {
    fn name(&self) -> String {
        self.root.path.display().to_string()
    }

    /// Reads all names of the folder, whatever the page. It keeps those of one page in memory.
    fn list(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<Vec<Entry>> {
        let limit = limit.clamp(1, MAX_LIST_PAGE);
        let mut after = after.map(str::to_owned);
        loop {
            let names = self.names(folder, after.as_deref(), limit)?;
            let Some(last) = names.last().cloned() else { return Ok(Vec::new()) };
            let mut entries = Vec::with_capacity(names.len());
            for name in names {
                match self.root.look(&folder.join(&name)?) {
                    Ok(state) => entries.push(Entry { name, found: state.map(|state| state.found()) }),
                    // It was removed meanwhile, is a pipe or a device, or a link that leads nowhere or out of the tree.
                    Err(
                        BackendError::NotFound { .. }
                        | BackendError::WrongKind { .. }
                        | BackendError::Denied { .. },
                    ) => {}
                    Err(error) => return Err(error),
                }
            }
            if !entries.is_empty() {
                return Ok(entries);
            }
            after = Some(last);
        }
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        let state = self.root.look(key)?;
        state.map(|state| state.found()).ok_or_else(|| BackendError::WrongKind {
            name: self.root.name_of(key),
            what: "a directory",
            wanted: "a file",
        })
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let (file, state) = self.root.open_file(key)?;
        let is_held = self.root.held.fetch_add(1, Ordering::Relaxed) < MAX_HELD_FILES;
        if !is_held {
            self.root.held.fetch_sub(1, Ordering::Relaxed);
        }
        let file = is_held.then_some(file);
        Ok(Arc::new(MountedFile {
            root: self.root.clone(),
            key: key.clone(),
            found: state.found(),
            state,
            file,
        }))
    }
}

impl Mount {
    /// The first `limit` names of a folder after a name.
    fn names(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<BTreeSet<String>> {
        let name = || self.root.name_of(folder);
        let failed = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::NOTDIR => {
                BackendError::WrongKind { name: name(), what: "a file", wanted: "a directory" }
            }
            errno => beneath::explain("list", name(), errno),
        };
        let opened = self
            .root
            .resolve
            .open(&self.root.folder, folder, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed)?;
        let mut names = BTreeSet::new();
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let kind = entry.file_type();
            let may_count = matches!(
                kind,
                FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Unknown
            );
            let is_in_page =
                names.len() < limit || names.last().is_some_and(|last: &String| name < last.as_str());
            if matches!(name, "." | "..")
                || !may_count
                || !is_in_page
                || after.is_some_and(|after| name <= after)
            {
                continue;
            }
            names.insert(name.to_owned());
            if names.len() > limit {
                names.pop_last();
            }
        }
        Ok(names)
    }
}

/// A file below a mount.
struct MountedFile {
    root: Arc<Root>,
    key: Key,
    found: Found,
    state: FileState,
    /// The file, if it stays open.
    file: Option<File>,
}

impl MountedFile {
    /// Calls `with` with the file in the state in which it was opened.
    fn with_file<T>(&self, with: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        if let Some(file) = &self.file {
            return with(file);
        }
        let (file, state) = self.root.open_file(&self.key)?;
        if state != self.state {
            return Err(BackendError::Changed { name: self.name() });
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
        self.with_file(|file| self.state.check_same(file, || self.name()))
    }
}

impl Drop for MountedFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.root.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn read_ranges(
    file: &File,
    name: impl Fn() -> String + Copy,
    ranges: &[Range<u64>],
    out: &mut [u8],
) -> Result<()> {
    let mut rest = out;
    for range in ranges {
        let (now, later) = rest.split_at_mut(range.end.saturating_sub(range.start) as usize);
        read_range(file, name, range.start, now)?;
        rest = later;
    }
    Ok(())
}

/// Opens a file of this machine by its path, which may lead anywhere. Its version has no time of change, so it stays the same if the
/// file is renamed.
///
/// # Errors
/// The error is [`BackendError::NotFound`] if there is no such file, [`BackendError::WrongKind`] if it is not a regular file, and
/// [`BackendError::Denied`] if it may not be read. It also fails if the system fails.
pub fn open_file(path: &Path) -> Result<Arc<dyn Object>> {
    let name = || path.display().to_string();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, rustix::fs::Mode::empty());
    let file: File = opened.map_err(|errno| BackendError::io("open", name(), errno.into()))?.into();
    let state =
        FileState::of(&file, Times::Modified).map_err(|source| BackendError::io("read", name(), source))?;
    state.check_kind(name)?;
    // An error is ignored: this is a hint to the page cache.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
    Ok(Arc::new(PlainFile { name: name(), found: state.found(), state, file }))
}

/// A file that was opened by its path.
struct PlainFile {
    name: String,
    found: Found,
    state: FileState,
    file: File,
}

impl Object for PlainFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found.length, ranges, out.len())?;
        read_ranges(&self.file, || self.name(), ranges, out)
    }

    fn unchanged(&self) -> Result<()> {
        self.state.check_same(&self.file, || self.name())
    }
}
