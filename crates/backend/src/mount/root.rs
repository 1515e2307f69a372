//! The folder of a mount, and what is opened below it.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{Access, AtFlags, CWD, Dir, Mode, OFlags, accessat};
use rustix::io::Errno;

use super::beneath::{self, Resolve, open_beneath};
use super::file::{FileState, Times, open_regular};
use super::{MountOptions, Reader, identity, public};
use crate::{BackendError, Content, Entry, FirstNames, Key, Kind, Page, Result, page_of_names};

/// Most tries to open a file whose name other files take meanwhile.
const MAX_TRIES: usize = 8;

/// A folder that is read with the rights of a reader. All its names are those of keys below it.
#[derive(Debug)]
pub(super) struct Root {
    pub path: PathBuf,
    times: Times,
    resolve: Resolve,
    reader: Reader,
    /// Whether the rights of everybody count because this process cannot take on the identity of a user.
    cannot_act: bool,
}

/// The reader that this process can have instead of another, and whether it cannot take on the identity of the user.
fn reader_here(reader: Reader) -> (Reader, bool) {
    match &reader {
        Reader::User(_) if identity::can_act() => (reader, false),
        Reader::User(user) if user.uid() == rustix::process::geteuid().as_raw() => (Reader::Process, false),
        Reader::User(_) => (Reader::Everybody, true),
        _ => (reader, false),
    }
}

impl Root {
    /// Opens a folder with an absolute path.
    pub fn open(path: PathBuf, options: MountOptions) -> Result<Root> {
        let times = if options.without_change_time { Times::Modified } else { Times::Changed };
        let resolve = if options.follows_links_out { Resolve::Anywhere } else { Resolve::Beneath };
        let (reader, cannot_act) = reader_here(options.reader);
        let root = Root { path, times, resolve, reader, cannot_act };
        root.act(|root| root.folder().map(drop))?;
        Ok(root)
    }

    /// Calls `work` with the identity of the reader.
    pub fn act<T: Send>(&self, work: impl FnOnce(&Root) -> Result<T> + Send) -> Result<T> {
        let Reader::User(user) = &self.reader else { return work(self) };
        let failed = |source| BackendError::io("open", self.path.display().to_string(), source);
        let done = identity::act_as(user, || work(self)).map_err(failed)?;
        done.map_err(|error| match error {
            BackendError::Denied { name, why } => {
                BackendError::Denied { name, why: format!("{why} (it was opened as user {})", user.uid()) }
            }
            error => error,
        })
    }

    pub fn name_of(&self, key: &Key) -> String {
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
            Resolve::Beneath => {
                let opened = open_beneath(&self.folder()?, key, flags);
                if opened.is_err() && self.reader == Reader::Everybody {
                    self.check_look_up(key)?;
                }
                opened
            }
        })
    }

    /// Refuses to tell whether a name exists in a folder in which not everybody may look up names.
    fn check_look_up(&self, key: &Key) -> Result<()> {
        let root = self.folder()?;
        let mut folder = key.above();
        let found = loop {
            match open_beneath(&root, &folder, OFlags::PATH | OFlags::DIRECTORY) {
                Err(_) if !folder.is_root() => folder = folder.above(),
                found => break found,
            }
        };
        match found.and_then(|found| public::is_searchable(&root, found)) {
            // A link tells whether the name exists to which it leads.
            Ok(true) if !beneath::has_link(&root, key) => Ok(()),
            Ok(_) => Err(self.not_for_everybody(key)),
            Err(errno) => Err(beneath::explain("open", self.name_of(key), errno)),
        }
    }

    /// Refuses an opened name that not everybody may know of, if the rights of everybody count.
    fn check_reachable(&self, key: &Key, opened: &File, is_folder: bool) -> Result<()> {
        if self.reader != Reader::Everybody {
            return Ok(());
        }
        if !is_folder {
            return self.check_public(key, opened);
        }
        match public::is_reachable(&self.folder()?, opened) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.not_for_everybody(key)),
            Err(errno) => Err(beneath::explain("open", self.name_of(key), errno)),
        }
    }

    fn not_for_everybody(&self, key: &Key) -> BackendError {
        let node = match self.cannot_act {
            true => "lacks CAP_SETUID and CAP_SETGID, so it cannot take on the rights of one user",
            false => "does not know which user of the system you are (--mount-users)",
        };
        let why = format!(
            "not every user may read it, and its node {node}; its owner can let all read it (chmod go+r, and go+x for the \
             folders above it)"
        );
        BackendError::Denied { name: self.name_of(key), why }
    }

    fn open_path(&self, verb: &'static str, key: &Key, flags: OFlags) -> Result<File> {
        self.try_open(key, flags)?.map_err(|errno| beneath::explain(verb, self.name_of(key), errno))
    }

    fn state_of(&self, key: &Key, file: &File) -> Result<FileState> {
        FileState::of(file, self.times).map_err(|source| BackendError::io("read", self.name_of(key), source))
    }

    /// Opens a regular file, and its state.
    pub fn open_file(&self, key: &Key) -> Result<(File, FileState)> {
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

    /// Refuses an opened file or folder that not everybody may read, if the rights of everybody count.
    fn check_public(&self, key: &Key, opened: &File) -> Result<()> {
        if self.reader != Reader::Everybody {
            return Ok(());
        }
        match public::is_public(&self.folder()?, opened) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.not_for_everybody(key)),
            // Another file took its name, or a folder above was renamed, between two calls.
            Err(Errno::NOENT | Errno::STALE) => Err(BackendError::Changed { name: self.name_of(key) }),
            Err(errno) => Err(beneath::explain("read", self.name_of(key), errno)),
        }
    }

    /// Refuses a regular file that was opened without the right to read it, if the reader is a user without this right.
    fn check_right(&self, key: &Key, opened: &File) -> Result<()> {
        let Reader::User(_) = self.reader else { return Ok(()) };
        let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let checked = match accessat(CWD, &link, Access::READ_OK, AtFlags::EACCESS) {
            // A kernel before 5.8, or a sandbox that does not know the call. The file is a regular one.
            Err(Errno::NOSYS | Errno::PERM) => {
                rustix::fs::open(&link, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
                    .map(drop)
            }
            checked => checked,
        };
        checked.map_err(|errno| beneath::explain("read", self.name_of(key), errno))
    }

    /// Repeats an operation while files get other names meanwhile.
    fn repeat<T>(&self, operation: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 1..MAX_TRIES {
            match operation() {
                Err(BackendError::Changed { .. }) if self.reader == Reader::Everybody => {}
                done => return done,
            }
        }
        operation()
    }

    /// The state of a file, or `None` for a folder.
    pub fn look(&self, key: &Key) -> Result<Option<FileState>> {
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
                let opened = self.open_path("open", key, OFlags::PATH)?;
                let state = self.state_of(key, &opened)?;
                // A kind is told to those only who may know of the name.
                self.check_reachable(key, &opened, state.is_folder())?;
                if !state.is_folder() {
                    state.check_kind(|| self.name_of(key))?;
                    self.check_right(key, &opened)?;
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

    pub fn is_folder(&self, key: &Key) -> BackendError {
        BackendError::WrongKind { name: self.name_of(key), kind: Kind::Folder }
    }

    /// The first `limit` names of a folder after a name.
    pub fn names(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<BTreeSet<String>> {
        let failed = |errno: Errno| match errno {
            Errno::NOTDIR => {
                let name = self.name_of(folder);
                BackendError::WrongKind { name, kind: Kind::File }
            }
            errno => beneath::explain("list", self.name_of(folder), errno),
        };
        let opened = self.try_open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?.map_err(failed)?;
        self.check_public(folder, &opened)?;
        let mut names = FirstNames::new(after, limit);
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Ok(name) = entry.file_name().to_str() {
                names.offer(name);
            }
        }
        Ok(names.found())
    }

    /// A page of the names of a folder.
    pub fn page(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        page_of_names(from, |from| {
            let names = self.names(folder, from, limit)?;
            let next = names.last().filter(|_| names.len() == limit).cloned();
            Ok((self.entries(folder, names)?, next))
        })
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
        let opened = self.open_path("list", folder, OFlags::PATH)?;
        match rustix::fs::statat(&opened, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(beneath::explain("list", self.name_of(folder), errno)),
        }
    }

    pub fn entries(&self, folder: &Key, names: BTreeSet<String>) -> Result<Vec<Entry>> {
        let entries = names.into_iter().map(|name| self.entry(folder, name));
        entries.filter_map(Result::transpose).collect()
    }
}
