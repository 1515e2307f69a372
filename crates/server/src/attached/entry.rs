//! Attached trees on the entry node: attach, detach, and the files of trees as operations on files see them.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Instant, UNIX_EPOCH};

use gristmill_backend::{BackendError, Content, HostStripes, Key, Kind, MAX_LIST_PAGE, WholeRecords};
use gristmill_namespace::{AttachedTree, DirPath, FilePath, Mode, Principal};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_sources::{SourceUrl, s3_of_environment};
use gristmill_wire::action::{
    Amount, Attach, Entry, FileInfo, Growing, List, Listing, Open, PathRequest, Tree, Trees,
};
use gristmill_wire::{FileReader, SourceAccess, TreeSource};

use super::open_tree::OpenTree;
use super::open_trees::{has_users, mount_root};
use crate::entry::{Places, Search};
use crate::error::{Answer, Refusal};
use crate::limits::STATS_AT_ONCE;
use crate::listing::Levels;
use crate::requester::Requester;
use crate::shared::Shared;

/// Permission bits that a file of a tree can have.
const READ_BITS: u16 = 0o444;

impl Shared {
    /// Attaches a tree, if the entry node reaches it.
    pub fn attach(&self, requester: Requester<'_>, attach: &Attach) -> Answer<Tree> {
        let Requester { principal, access } = requester;
        let attach = &with_environment(attach.clone());
        let namespace = self.namespace()?;
        let (path, mode) = (FilePath::parse(&attach.path)?, Mode::new(attach.mode & READ_BITS)?);
        if !namespace.is_administrator(principal) {
            // The namespace refuses. Before that, nobody learns whether a folder exists.
            namespace.attach(principal, &path, "", mode)?;
        }
        self.sight.forget(&attach.source);
        let source = serde_json::to_string(&attach.source);
        let source = source.map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
        let seen = self.seeing(&attach.source).and_then(|_| self.check_prefix(&attach.source, access));
        let done = seen.and_then(|_| Ok(namespace.attach(principal, &path, &source, mode)?));
        // What is known about trees that are not attached would only grow.
        done.inspect_err(|_| self.sight.forget(&attach.source))?;
        let attached = namespace.tree_of(&DirPath::from(&path))?;
        let gone = || Refusal::new(ErrorKind::Stale, format!("{path} was detached at once by somebody else"));
        self.describe(attached.ok_or_else(gone)?)
    }

    /// Checks that there is something below the prefix of a bucket. A folder of a bucket exists only as a part of names. A tree that users
    /// read with credentials of their own can be checked with those of whoever attaches it, if he gave some.
    fn check_prefix(&self, source: &TreeSource, access: Option<&SourceAccess>) -> Answer<()> {
        let access = access.filter(|_| source.user_credentials);
        if source.user_credentials && access.is_none() {
            return Ok(());
        }
        let has_prefix = source.url.parse::<SourceUrl>().is_ok_and(|url| !url.key().is_root());
        let tree = self.trees.open_as(source, &FileReader::Node, access)?;
        if !tree.folders_are_names() || !has_prefix && access.is_none() {
            return Ok(());
        }
        let page = match tree.list(&Key::ROOT, None, 1) {
            // Who attaches it need not be somebody who reads it.
            Err(BackendError::Denied { .. }) if source.user_credentials => return Ok(()),
            page => page.map_err(RunError::from)?,
        };
        if has_prefix && page.entries.is_empty() {
            let text =
                format!("there is nothing below {}; check the name, or put a file there first", source.url);
            return Err(Refusal::new(ErrorKind::NotFound, text));
        }
        Ok(())
    }

    /// Detaches a tree.
    pub fn detach(&self, principal: &Principal, path: &PathRequest) -> Answer<()> {
        let path = FilePath::parse(&path.path)?;
        let namespace = self.namespace()?;
        let tree = namespace.tree_of(&DirPath::from(&path))?.filter(|tree| tree.path == path);
        namespace.detach(principal, &path)?;
        if let Some(source) = tree.and_then(|tree| source_of(&tree).ok()) {
            self.sight.forget(&source);
        }
        Ok(())
    }

    /// Lists the trees that a user may read, with the nodes that reach them.
    pub fn attached_trees(&self, principal: &Principal) -> Answer<Trees> {
        let namespace = self.namespace()?;
        let trees = namespace.trees()?.into_iter();
        let readable: Vec<_> = trees.filter(|tree| namespace.check_reader(principal, tree).is_ok()).collect();
        let trees = at_once(&readable, |tree| self.describe(tree.clone()))?;
        Ok(Trees { trees: trees.into_iter().collect::<Answer<_>>()? })
    }

    fn describe(&self, record: AttachedTree) -> Answer<Tree> {
        let source = source_of(&record)?;
        let (seen_by, failed) = match self.seeing(&source) {
            Ok(numbers) => (numbers, None),
            Err(refusal) => (Vec::new(), Some(refusal.0.message)),
        };
        Ok(Tree {
            path: record.path.to_string(),
            source,
            owner: record.owner.to_string(),
            mode: record.mode.bits(),
            attached: record.attached.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            seen_by,
            failed,
        })
    }

    /// The tree at a path or above it, as this user reads it. `None` if there is none.
    fn open_tree(&self, requester: Requester<'_>, path: &str) -> Answer<Option<OpenTree>> {
        let namespace = self.namespace()?;
        let Some(record) = namespace.tree_of(&DirPath::parse(path)?)? else { return Ok(None) };
        namespace.check_reader(requester.principal, &record)?;
        let source = source_of(&record)?;
        let reader = self.reader_of(requester.principal, &source)?;
        let backend = self.trees.open_as(&source, &reader, requester.access)?;
        let numbers = self.seeing(&source)?;
        Ok(Some(OpenTree { record, source, backend, reader, numbers }))
    }

    /// The user whose rights count when a principal reads files of a tree.
    fn reader_of(&self, principal: &Principal, source: &TreeSource) -> Answer<FileReader> {
        if !has_users(source) || self.namespace()?.is_administrator(principal) || is_this_user(principal) {
            return Ok(FileReader::Node);
        }
        self.users.reader_of(principal)
    }

    /// Information about a file of an attached tree; `None` if the path is in none.
    pub fn stat_attached(
        &self,
        requester: Requester<'_>,
        open: &Open,
        search: &Search,
    ) -> Answer<Option<FileInfo>> {
        let Some(tree) = self.open_tree(requester, &open.path)? else { return Ok(None) };
        let key = tree.key(&open.path)?;
        let found = match &open.growing {
            None => tree.backend.stat_settled(&key),
            Some(Growing { header, record }) => {
                let found = tree.backend.stat_growing(&key, WholeRecords::new(*header, *record));
                found.map(|found| (found, false))
            }
        };
        let (found, settled) = found.map_err(|error| tree.refusal(error))?;
        let mut info = tree.info(&key, &found, settled, &search.addresses);
        if let Some(attached) = &mut info.file.attached {
            attached.growing = open.growing.is_some();
        }
        if let Some(located) = self.located(&tree, &key, found.length, search) {
            tree.deal_to_near_nodes(&mut info.file, &located, search);
        }
        Ok(Some(info))
    }

    /// The hosts of the bytes of a file, if somebody wants to know them and they are known in time: from the program of the administrator, or
    /// from the storage itself.
    fn located(&self, tree: &OpenTree, key: &Key, length: u64, search: &Search) -> Option<Vec<HostStripes>> {
        if search.places == Places::Unwanted {
            return None;
        }
        match (&self.locator, mount_root(&tree.source)) {
            (Some(locator), Some(root)) => {
                let path = format!("{}/{key}", root.trim_end_matches('/'));
                return locator.locate(&path, length, search.locate_until);
            }
            (None, Some(root)) => return self.mounted_ceph.locate(Path::new(root), key, length),
            (_, None) => {}
        }
        // It is only a hint. If the storage fails, whoever reads the file finds out.
        let in_time = Instant::now() < search.locate_until;
        in_time.then(|| tree.backend.locate(key, length).ok()).flatten()
    }

    /// A page of the names of a directory of an attached tree; `None` if the path is in none.
    pub fn list_attached(
        &self,
        requester: Requester<'_>,
        list: &List,
        levels: Levels,
        addresses: &HashMap<u32, String>,
    ) -> Answer<Option<Listing>> {
        let Some(tree) = self.open_tree(requester, &list.path)? else { return Ok(None) };
        if list.after.is_some() && list.from.is_none() {
            let text =
                "the list of an attached tree goes on from the 'next' of the page before, not after a name";
            return Err(Refusal::new(ErrorKind::Usage, text));
        }
        let folder = tree.key(&list.path)?;
        let from = list.from.as_deref();
        let page = match levels {
            Levels::One => tree.backend.list(&folder, from, MAX_LIST_PAGE),
            Levels::All => tree.backend.list_below(&folder, from, MAX_LIST_PAGE),
        };
        let page = page.map_err(|error| tree.refusal(error))?;
        let mut entries = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            let key = folder.join(&entry.name).map_err(|error| tree.refusal(error))?;
            let allowed = FilePath::parse(&format!("{}/{key}", tree.record.path));
            let (info, unreadable) = match &entry.content {
                Content::Unreadable { why } => (None, Some(why.clone())),
                _ if let Err(error) = allowed => (None, Some(error.to_string())),
                Content::Folder => (None, None),
                Content::File(found) => {
                    let mut info = tree.info(&key, found, false, addresses);
                    // It is the same for a thousand files of a page.
                    info.file.attached = None;
                    (Some(info), None)
                }
            };
            entries.push(Entry { name: entry.name, info, unreadable });
        }
        let may_lack_names = !tree.backend.lists_everything();
        Ok(Some(Listing { entries, more: page.next.is_some(), next: page.next, may_lack_names }))
    }

    /// Number and size of the files of an attached tree at a path and below it; `None` if the path is in none.
    pub fn usage_attached(&self, requester: Requester<'_>, path: &str) -> Answer<Option<Amount>> {
        let Some(tree) = self.open_tree(requester, path)? else { return Ok(None) };
        let key = tree.key(path)?;
        if !path.ends_with('/') && !key.is_root() {
            match tree.backend.stat(&key) {
                Ok(found) => {
                    let (files, bytes) = (1, found.length);
                    return Ok(Some(Amount { files, bytes, changed: 0, directory: false, unread: 0 }));
                }
                Err(BackendError::NotFound { .. } | BackendError::WrongKind { kind: Kind::Folder, .. }) => {}
                Err(error) => return Err(tree.refusal(error)),
            }
        }
        tree.count(key, path).map(Some).map_err(|error| tree.refusal(error))
    }
}

/// Calls `work` with each item, with [`STATS_AT_ONCE`] threads, because storage behind a network takes its time for each.
///
/// # Errors
/// It fails if a thread cannot be started or panics.
pub(crate) fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Answer<Vec<R>> {
    let share = items.len().div_ceil(STATS_AT_ONCE).max(1);
    let done = std::thread::scope(|scope| {
        let start = |some| {
            let work = &work;
            let work = move || Vec::from_iter(<[T]>::iter(some).map(work));
            std::thread::Builder::new().name("attached".into()).spawn_scoped(scope, work)
        };
        // All threads are started before a wait for the first one.
        let threads: Vec<_> = items.chunks(share).map(start).collect();
        threads.into_iter().map(|thread| thread.ok()?.join().ok()).collect::<Option<Vec<_>>>()
    });
    let failed =
        || Refusal::new(ErrorKind::Failed, "a thread for an attached tree could not start, or it panicked");
    Ok(done.ok_or_else(failed)?.into_iter().flatten().collect())
}

/// The environment of this node names the server of a bucket for its own credentials. Those of users must go to the same one, from each
/// node.
fn with_environment(mut attach: Attach) -> Attach {
    let source = &mut attach.source;
    if source.user_credentials && source.url.starts_with("s3://") {
        let (endpoint, region) = s3_of_environment();
        source.endpoint = source.endpoint.take().or(endpoint);
        source.region = source.region.take().or(region);
    }
    attach
}

/// Where a tree lies.
fn source_of(tree: &AttachedTree) -> Answer<TreeSource> {
    serde_json::from_str(&tree.source).map_err(|error| {
        let text = format!("the record of the tree {} cannot be read: {error}; attach it again", tree.path);
        Refusal::new(ErrorKind::Failed, text)
    })
}

/// Whether a principal is the user of this process, who may read what the process may read.
fn is_this_user(principal: &Principal) -> bool {
    let uid = principal.as_str().strip_prefix("uid:").and_then(|uid| uid.parse::<u32>().ok());
    uid == Some(rustix::process::geteuid().as_raw())
}
