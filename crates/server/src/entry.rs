//! Operations of the entry node on files: the namespace, and grants.

use std::collections::HashMap;
use std::time::{Instant, UNIX_EPOCH};

use gristmill_namespace::{
    Access, DirPath, FileEntry, FilePath, ListEntry, Mode, Namespace, NamespaceError, Principal,
};
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::{
    Attempt, Batch, Entry, FileInfo, List, Listing, Node, Nodes, Open, Opened, Outcome, PathRequest, SetMode,
};
use gristmill_wire::{FileMap, GRANT_SECONDS, Grant, Rights, TargetPlace};

use crate::attached::at_once;
use crate::error::{Answer, Refusal};
use crate::limits::{LOCATE_PATIENCE, PUT_LEASE};
use crate::listing::Levels;
use crate::puts::outcome;
use crate::requester::Requester;
use crate::shared::{Shared, now};

/// Largest number of names in one answer to `list`.
const LIST_PAGE: usize = 1000;

/// A search for files: where the nodes are, and how long the search may ask where files of mounts lie.
pub(crate) struct Search {
    /// The addresses of the nodes, by the numbers of their targets.
    pub addresses: HashMap<u32, String>,
    /// Whether it wants to know where files of mounts lie.
    pub places: Places,
    /// When it stops asking for that.
    pub locate_until: Instant,
}

/// Whether a request wants to know where files of mounts lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// It does not deal their stripes.
    Unwanted,
    /// It opens one file.
    OfOne,
    /// It may open several files. Together they must not have too many stripes.
    OfSeveral,
}

impl Shared {
    /// The namespace. On other nodes, returns an error with the address of the entry node.
    pub fn namespace(&self) -> Answer<&dyn Namespace> {
        self.namespace.as_deref().ok_or_else(|| {
            let entry = self.entry.as_ref().map_or_else(String::new, |entry| format!(" at {entry}"));
            Refusal::new(ErrorKind::Usage, format!("this node has no namespace; ask the entry node{entry}"))
        })
    }

    pub fn addresses(&self) -> Answer<HashMap<u32, String>> {
        let targets = self.namespace()?.targets()?;
        Ok(targets.into_iter().map(|target| (target.number, target.address)).collect())
    }

    /// A search that begins now.
    fn search(&self, places: Places) -> Answer<Search> {
        let locate_until = Instant::now() + LOCATE_PATIENCE;
        Ok(Search { addresses: self.addresses()?, places, locate_until })
    }

    /// Opens a file for a principal.
    pub fn open(&self, requester: Requester<'_>, open: &Open) -> Answer<Opened> {
        self.ready()?;
        self.open_at(requester, open, &self.search(Places::OfOne)?)
    }

    /// Opens a file that this node reads itself.
    pub fn open_here(&self, requester: Requester<'_>, open: &Open) -> Answer<Opened> {
        self.ready()?;
        self.open_at(requester, open, &self.search(Places::Unwanted)?)
    }

    /// Opens many files, each with its own outcome.
    pub fn open_many(&self, requester: Requester<'_>, many: &Batch<Open>) -> Answer<Batch<Outcome<Opened>>> {
        self.ready()?;
        let search = self.search(Places::OfSeveral)?;
        let open = |open: &Open| outcome(self.open_at(requester, open, &search));
        let in_tree = |open: &Open| {
            let tree = DirPath::parse(&open.path)
                .ok()
                .map(|path| self.namespace()?.tree_of(&path).map_err(Refusal::from));
            matches!(tree, Some(Ok(Some(_))))
        };
        // Paths of one request mostly lie in one folder.
        if !many.each.first().is_some_and(in_tree) {
            return Ok(Batch { each: many.each.iter().map(open).collect() });
        }
        Ok(Batch { each: at_once(&many.each, open)? })
    }

    fn open_at(&self, requester: Requester<'_>, open: &Open, search: &Search) -> Answer<Opened> {
        let mut info = self.stat_at(requester, open, search)?;
        // A small file lies on few targets. Every node that gets the grant reads only these.
        info.file = info.file.without_empty_targets();
        if let (Some(attached), Some(access)) = (&mut info.file.attached, requester.access)
            && attached.tree.user_credentials
        {
            attached.access = Some(self.key.seal_access(access, &attached.purpose())?);
        }
        let (principal, file) = (requester.principal.to_string(), info.file.clone());
        let grant = Grant { principal, rights: Rights::Read, file, expires: now() + GRANT_SECONDS };
        Ok(Opened { info, grant: self.key.seal(&grant)? })
    }

    /// Information about a file that the principal may read.
    pub fn stat(&self, requester: Requester<'_>, path: &str) -> Answer<FileInfo> {
        self.stat_at(requester, &Open::new(path), &self.search(Places::Unwanted)?)
    }

    fn stat_at(&self, requester: Requester<'_>, open: &Open, search: &Search) -> Answer<FileInfo> {
        match self.namespace()?.lookup(requester.principal, &FilePath::parse(&open.path)?, Access::Read) {
            Ok(entry) => Ok(info(&entry, &search.addresses)),
            Err(error @ NamespaceError::NotFound { .. }) => {
                self.stat_attached(requester, open, search)?.ok_or_else(|| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Renews the lease of a put.
    pub fn renew(&self, principal: &Principal, attempt: &Attempt) -> Answer<()> {
        Ok(self.namespace()?.renew(principal, &attempt.id.parse()?, PUT_LEASE)?)
    }

    /// Abandons a put.
    pub fn abandon(&self, principal: &Principal, attempt: &Attempt) -> Answer<()> {
        let id = attempt.id.parse()?;
        self.reserve.freeing(|| Ok(self.namespace()?.abandon(principal, &id)?))?;
        self.garbage.notify_one();
        Ok(())
    }

    /// Removes a file.
    pub fn remove(&self, principal: &Principal, path: &PathRequest) -> Answer<()> {
        let path = FilePath::parse(&path.path)?;
        self.reserve.freeing(|| Ok(self.namespace()?.remove(principal, &path)?))?;
        self.garbage.notify_one();
        Ok(())
    }

    /// Changes permission bits.
    pub fn chmod(&self, principal: &Principal, change: &SetMode) -> Answer<()> {
        Ok(self.namespace()?.set_mode(principal, &FilePath::parse(&change.path)?, Mode::new(change.mode)?)?)
    }

    /// Lists the names of a directory, with information about its files. This needs no right to read the files, except in
    /// an attached tree.
    pub fn list(&self, requester: Requester<'_>, list: &List, levels: Levels) -> Answer<Listing> {
        let addresses = self.addresses()?;
        if let Some(listing) = self.list_attached(requester, list, levels, &addresses)? {
            return Ok(listing);
        }
        let (namespace, dir, after) = (self.namespace()?, DirPath::parse(&list.path)?, list.after.as_deref());
        let found = match levels {
            Levels::One => namespace.list(&dir, after, LIST_PAGE)?,
            Levels::All => namespace.list_below(&dir, after, LIST_PAGE)?,
        };
        let more = found.len() == LIST_PAGE;
        let entry = |found: ListEntry| Entry {
            name: match levels {
                Levels::One => found.name().to_owned(),
                Levels::All => found.path_below(&dir).to_owned(),
            },
            info: match found {
                ListEntry::Dir(_) => None,
                ListEntry::File(file) => Some(info(&file, &addresses)),
            },
            unreadable: None,
        };
        let entries = found.into_iter().map(entry).collect();
        Ok(Listing { entries, more, next: None, may_lack_names: false })
    }

    /// Lists the storage nodes.
    pub fn nodes(&self) -> Answer<Nodes> {
        let targets = self.namespace()?.targets()?.into_iter();
        let node = |t: gristmill_namespace::TargetRecord| Node {
            number: t.number,
            target: t.id.to_string(),
            address: t.address,
            without_store: !t.holds_files,
        };
        Ok(Nodes { nodes: targets.map(node).collect() })
    }
}

pub(crate) fn place(number: u32, addresses: &HashMap<u32, String>, version: u64) -> TargetPlace {
    TargetPlace { number, address: addresses.get(&number).cloned().unwrap_or_default(), version }
}

pub(crate) fn info(entry: &FileEntry, addresses: &HashMap<u32, String>) -> FileInfo {
    let places = entry.targets.iter().zip(&entry.versions);
    FileInfo {
        file: FileMap {
            id: entry.id.to_string(),
            path: entry.path.to_string(),
            length: entry.length,
            unit: entry.unit,
            first: entry.first,
            record: entry.record,
            segments: entry.segments,
            attached: None,
            targets: places.map(|(number, version)| place(*number, addresses, *version)).collect(),
        },
        owner: entry.owner.to_string(),
        mode: entry.mode.bits(),
        created: entry.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    }
}
