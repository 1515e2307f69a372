//! A folder of a file system as a backend.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_backend::{
    Backend, BackendError, Content, Entry, FirstNames, Found, HostStripes, Key, Kind, MAX_LIST_PAGE, Object,
    Page, Reader, Result, WholeRecords, page_of_names,
};

use crate::CephOptions;
use crate::client::{Attributes, Inode, Mounted, OpenFile};
use crate::error::explain;
use crate::file::CephFile;
use crate::file_system::FileSystem;
use crate::places::locate;
use crate::reader::ReadingUser;
use crate::state::{Thing, found, growing, has_state, thing};
use crate::walk::{Lost, Place, named, not_for_everybody};

/// A folder of a file system, read with the rights of a reader. Names and symbolic links do not lead out of it.
pub struct CephFs {
    name: String,
    options: CephOptions,
    way: Way,
    /// The way through the whole file system, if the path of the folder ends with a link. Servers mount a link as a file.
    through_links: OnceLock<Way>,
    reader: Reader,
}

/// How a folder is reached.
struct Way {
    file_system: Arc<FileSystem>,
    /// The folder below the one that is mounted. The servers mount no folder of a snapshot.
    base: Key,
}

/// The folder of all snapshots of a folder.
const SNAPSHOTS: &str = ".snap";

/// The folder to mount for a folder, and the rest of its path.
fn split(folder: &str) -> (&str, &str) {
    let of_snapshots = |at: &usize| {
        let before = folder.get(..*at).unwrap_or_default();
        let behind = folder.get(at + SNAPSHOTS.len()..).unwrap_or_default();
        (before.is_empty() || before.ends_with('/')) && (behind.is_empty() || behind.starts_with('/'))
    };
    match folder.match_indices(SNAPSHOTS).map(|(at, _)| at).find(of_snapshots) {
        Some(at) => {
            let (mounted, rest) = folder.split_at(at);
            (mounted.trim_end_matches('/'), rest)
        }
        None => (folder, ""),
    }
}

/// The folder while it is used.
pub(crate) struct Root<'a> {
    tree: &'a CephFs,
    way: &'a Way,
    mounted: Arc<Mounted>,
    reader: Arc<ReadingUser>,
    /// Whether what is mounted was found to be a link.
    is_link: AtomicBool,
}

/// A file that may be read, with its attributes.
pub(crate) struct Opened {
    pub inode: Arc<Inode>,
    pub attributes: Attributes,
    pub file: OpenFile,
    pub reader: Arc<ReadingUser>,
}

impl CephFs {
    /// A folder, read by `reader`. Nothing is connected: the file system is mounted when it is used for the first time.
    ///
    /// # Errors
    /// The error is [`BackendError::InvalidKey`] if the folder cannot have such a name.
    pub fn new(options: &CephOptions, reader: Reader) -> Result<CephFs> {
        let (mounted, base) = split(&options.folder);
        let way = Way::new(options, mounted, base)?;
        let options = options.clone();
        Ok(CephFs { name: options.to_string(), options, way, through_links: OnceLock::new(), reader })
    }

    fn name_of(&self, key: &Key) -> String {
        if key.is_root() {
            return self.name.clone();
        }
        let slash = if self.name.ends_with('/') { "" } else { "/" };
        format!("{}{slash}{key}", self.name)
    }

    fn root(&self) -> Result<Root<'_>> {
        let way = self.through_links.get().unwrap_or(&self.way);
        let mounted = way.file_system.mounted()?;
        let reader = Arc::new(ReadingUser::of(&self.reader)?);
        Ok(Root { tree: self, way, mounted, reader, is_link: AtomicBool::new(false) })
    }

    /// Calls `work` with the folder. A connection that is of no use is made again once.
    fn with_root<T>(&self, work: impl Fn(&Root<'_>) -> Result<T>) -> Result<T> {
        let root = self.root()?;
        let done = match work(&root) {
            Err(BackendError::Unavailable { .. }) => {
                root.way.file_system.forget(&root.mounted);
                work(&self.root()?)
            }
            Err(_) if root.is_link.load(Ordering::Relaxed) => {
                let way = Way::new(&self.options, "", &self.options.folder)?;
                self.through_links.get_or_init(|| way);
                work(&self.root()?)
            }
            done => done,
        };
        done.map_err(|error| match (error, &self.reader) {
            (BackendError::Denied { name, why }, Reader::User(user)) => {
                BackendError::Denied { name, why: format!("{why} (it was opened as user {})", user.uid()) }
            }
            (error, _) => error,
        })
    }

    fn is_folder(&self, key: &Key) -> BackendError {
        BackendError::WrongKind { name: self.name_of(key), kind: Kind::Folder }
    }
}

impl Way {
    fn new(options: &CephOptions, mounted: &str, base: &str) -> Result<Way> {
        let file_system = FileSystem::of(CephOptions { folder: mounted.to_owned(), ..options.clone() });
        Ok(Way { file_system, base: Key::new(base)? })
    }
}

impl Root<'_> {
    fn place(&self, verb: &'static str) -> Result<Place> {
        let name = || self.tree.name.clone();
        let place = self.mounted.root().and_then(|root| Place::root(root, &self.reader));
        let mut place = place.map_err(|errno| explain(verb, name(), errno))?;
        let (_, attributes) = named(place.enter(&self.way.base, &self.reader), verb, name)?;
        match thing(&attributes) {
            Thing::Folder => Ok(place.into_root()),
            Thing::Link => {
                self.is_link.store(true, Ordering::Relaxed);
                Err(Lost::Link.explain(verb, name()))
            }
            _ => Err(BackendError::WrongKind { name: name(), kind: Kind::File }),
        }
    }

    /// Opens a file, which the reader must be allowed to read.
    pub fn open(&self, key: &Key) -> Result<Opened> {
        let mut place = self.place("open")?;
        let name = || self.tree.name_of(key);
        let (inode, attributes) = named(place.enter(key, &self.reader), "open", name)?;
        self.open_inode(key, inode, &attributes)
    }

    fn open_inode(&self, key: &Key, inode: Arc<Inode>, looked_up: &Attributes) -> Result<Opened> {
        let name = || self.tree.name_of(key);
        self.check_kind(key, looked_up)?;
        if self.reader.may_not_read(looked_up) {
            return Err(not_for_everybody(name()));
        }
        let failed = |errno| explain("open", name(), errno);
        let file = inode.open(&self.reader.user).map_err(failed)?;
        // While it is open, nobody holds bytes back. So the attributes are those of the bytes that are read.
        let attributes = inode.attributes(&self.reader.user).map_err(failed)?;
        Ok(Opened { inode, attributes, file, reader: self.reader.clone() })
    }

    fn check_kind(&self, key: &Key, found: &Attributes) -> Result<()> {
        match thing(found) {
            Thing::Other(Kind::File) => Ok(()),
            Thing::Folder => Err(self.tree.is_folder(key)),
            Thing::Link => Err(Lost::Link.explain("open", self.tree.name_of(key))),
            Thing::Other(kind) => Err(BackendError::WrongKind { name: self.tree.name_of(key), kind }),
        }
    }

    /// The state of a file that the reader may read; `None` for a folder.
    fn look(&self, place: &mut Place, below: &Key, key: &Key) -> Result<Option<Found>> {
        let name = || self.tree.name_of(key);
        let (inode, attributes) = named(place.enter(below, &self.reader), "read", name)?;
        if thing(&attributes) == Thing::Folder {
            return Ok(None);
        }
        // Root may read everything, so its files need not be opened.
        if self.reader.is_root {
            self.check_kind(key, &attributes)?;
            return Ok(Some(found(&attributes)));
        }
        Ok(Some(found(&self.open_inode(key, inode, &attributes)?.attributes)))
    }

    /// The first `limit` names of a folder after a name, and the folder.
    fn names(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<(Place, BTreeSet<String>)> {
        let mut place = self.place("list")?;
        let name = || self.tree.name_of(folder);
        let (inode, attributes) = named(place.enter(folder, &self.reader), "list", name)?;
        if thing(&attributes) != Thing::Folder {
            return Err(BackendError::WrongKind { name: name(), kind: Kind::File });
        }
        if self.reader.may_not_read(&attributes) || self.reader.may_not_search(&attributes) {
            return Err(not_for_everybody(name()));
        }
        let mut names = FirstNames::new(after, limit);
        let listed = inode.names(&self.reader.user, |name| names.offer(name));
        listed.map_err(|errno| explain("list", name(), errno))?;
        Ok((place, names.found()))
    }

    fn page(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        page_of_names(from, |from| {
            let (place, names) = self.names(folder, from, limit)?;
            let next = names.last().filter(|_| names.len() == limit).cloned();
            Ok((self.entries(folder, &place, names)?, next))
        })
    }

    fn entries(&self, folder: &Key, place: &Place, names: BTreeSet<String>) -> Result<Vec<Entry>> {
        let entries = names.into_iter().map(|name| self.entry(folder, place, name));
        entries.filter_map(Result::transpose).collect()
    }

    /// Looks up a name that was listed. Returns `None` if it was removed meanwhile.
    fn entry(&self, folder: &Key, place: &Place, name: String) -> Result<Option<Entry>> {
        let content = match self.look(&mut place.clone(), &Key::new(name.as_str())?, &folder.join(&name)?) {
            Ok(None) => Content::Folder,
            Ok(Some(found)) => Content::File(found),
            Err(BackendError::NotFound { .. }) if !place.has(&name, &self.reader) => return Ok(None),
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
}

impl Backend for CephFs {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Reads all names of the folder for each page, because the servers do not sort them. It keeps those of one page in memory.
    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        self.with_root(|root| root.page(folder, from, limit.clamp(1, MAX_LIST_PAGE)))
    }

    /// Reads the names of the folder once.
    fn list_all(&self, folder: &Key, most: usize) -> Result<Vec<Entry>> {
        self.with_root(|root| {
            let (place, names) = root.names(folder, None, most.saturating_add(1))?;
            if names.len() > most {
                return Err(BackendError::TooMany { name: self.name_of(folder), most });
            }
            root.entries(folder, &place, names)
        })
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        self.with_root(|root| {
            root.look(&mut root.place("read")?, key, key)?.ok_or_else(|| self.is_folder(key))
        })
    }

    fn stat_growing(&self, key: &Key, records: WholeRecords) -> Result<Found> {
        self.with_root(|root| {
            let opened = root.open(key)?;
            let name = || self.name_of(key);
            let read = |offset, out: &mut [u8]| opened.file.read_whole(name, offset, out);
            let length = records.end(name, opened.attributes.size, read)?;
            growing(&opened.attributes, length).ok_or_else(|| BackendError::Changed { name: name() })
        })
    }

    fn reads_ahead(&self) -> bool {
        true
    }

    fn locate(&self, key: &Key, length: u64) -> Result<Vec<HostStripes>> {
        self.with_root(|root| {
            let mut place = root.place("read")?;
            let (inode, attributes) = named(place.enter(key, &root.reader), "read", || self.name_of(key))?;
            root.check_kind(key, &attributes)?;
            if !inode.has_map() {
                // The map of the cluster comes with the first bytes.
                let opened = root.open_inode(key, inode.clone(), &attributes)?;
                opened.file.read(0, &mut [0]).map_err(|errno| explain("read", self.name_of(key), errno))?;
            }
            // A file without bytes has no objects, and so no need of the map.
            if !inode.has_map() {
                return Ok(Vec::new());
            }
            let path = format!("/{}/{key}", root.way.base);
            let located = locate(&root.mounted, &path, inode.layout(), length);
            located.map_err(|errno| explain("open", self.name_of(key), errno))
        })
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        self.with_root(|root| {
            let opened = root.open(key)?;
            let found = found(&opened.attributes);
            Ok(CephFile::new(self.name_of(key), found, opened) as Arc<dyn Object>)
        })
    }

    fn open_at(&self, key: &Key, found: &Found) -> Result<Arc<dyn Object>> {
        self.with_root(|root| {
            let opened = root.open(key)?;
            if !has_state(&opened.attributes, found) {
                return Err(BackendError::Changed { name: self.name_of(key) });
            }
            Ok(CephFile::new(self.name_of(key), found.clone(), opened) as Arc<dyn Object>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_of_a_snapshot_is_mounted() {
        for (folder, mounted, base) in [
            ("", "", ""),
            ("a/b", "a/b", ""),
            ("a/.snap/then/b", "a", ".snap/then/b"),
            (".snap/then", "", ".snap/then"),
            ("a/b.snap/.snapshots/x", "a/b.snap/.snapshots/x", ""),
            ("a.snap/.snap", "a.snap", ".snap"),
        ] {
            assert_eq!(split(folder), (mounted, base), "{folder}");
        }
    }
}
