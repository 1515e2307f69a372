//! Attached trees on the entry node: attach, detach, and the files of trees as operations on files see them.

use std::collections::HashMap;
use std::time::UNIX_EPOCH;

use gristmill_backend::{Backend, BackendError, Content, Found, Key, Kind, MAX_DEPTH, MAX_LIST_PAGE};
use gristmill_namespace::{AttachedTree, DirPath, FilePath, Mode, Principal};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Amount, Attach, Entry, FileInfo, List, Listing, PathRequest, Tree, Trees};
use gristmill_wire::{AttachedFile, FileMap, TargetPlace, TreeSource};
use ring::digest::{SHA256, digest};

use super::open_trees::is_mount;
use crate::error::{Answer, Refusal};
use crate::limits::{MAX_COUNTED, MAX_TREE_STRIPES, MIN_TREE_STRIPE, STATS_AT_ONCE};
use crate::shared::Shared;

/// Permission bits that a file of a tree can have.
const READ_BITS: u16 = 0o444;

/// A tree as a user reads it.
struct OpenTree {
    record: AttachedTree,
    source: TreeSource,
    backend: std::sync::Arc<dyn Backend>,
    with_all_rights: bool,
    /// The targets whose nodes reach the tree.
    numbers: Vec<u32>,
}

impl Shared {
    /// Attaches a tree, if the entry node reaches it.
    pub fn attach(&self, principal: &Principal, attach: &Attach) -> Answer<Tree> {
        let namespace = self.namespace()?;
        let (path, mode) = (FilePath::parse(&attach.path)?, Mode::new(attach.mode & READ_BITS)?);
        if !namespace.is_administrator(principal) {
            // The namespace refuses. Before that, nobody learns whether a folder exists.
            namespace.attach(principal, &path, "", mode)?;
        }
        self.sight.forget(&attach.source);
        self.seeing(&attach.source)?;
        let source = serde_json::to_string(&attach.source);
        let source = source.map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
        namespace.attach(principal, &path, &source, mode)?;
        let attached = namespace.tree_of(&DirPath::from(&path))?;
        let gone = || Refusal::new(ErrorKind::Stale, format!("{path} was detached at once by somebody else"));
        self.describe(attached.ok_or_else(gone)?)
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
    fn open_tree(&self, principal: &Principal, path: &str) -> Answer<Option<OpenTree>> {
        let namespace = self.namespace()?;
        let Some(record) = namespace.tree_of(&DirPath::parse(path)?)? else { return Ok(None) };
        namespace.check_reader(principal, &record)?;
        let source = source_of(&record)?;
        let with_all_rights =
            !is_mount(&source) || namespace.is_administrator(principal) || is_this_user(principal);
        let backend = self.trees.open(&source, with_all_rights)?;
        let numbers = self.seeing(&source)?;
        Ok(Some(OpenTree { record, source, backend, with_all_rights, numbers }))
    }

    /// Information about a file of an attached tree; `None` if the path is in none.
    pub fn stat_attached(
        &self,
        principal: &Principal,
        path: &str,
        addresses: &HashMap<u32, String>,
    ) -> Answer<Option<FileInfo>> {
        let Some(tree) = self.open_tree(principal, path)? else { return Ok(None) };
        let key = tree.key(path)?;
        let found = tree.backend.stat(&key).map_err(|error| tree.refusal(error))?;
        Ok(Some(tree.info(&key, &found, addresses)))
    }

    /// A page of the names of a directory of an attached tree; `None` if the path is in none.
    pub fn list_attached(
        &self,
        principal: &Principal,
        list: &List,
        addresses: &HashMap<u32, String>,
    ) -> Answer<Option<Listing>> {
        let Some(tree) = self.open_tree(principal, &list.path)? else { return Ok(None) };
        if list.after.is_some() && list.from.is_none() {
            let text =
                "the list of an attached tree goes on from the 'next' of the page before, not after a name";
            return Err(Refusal::new(ErrorKind::Usage, text));
        }
        let folder = tree.key(&list.path)?;
        let page = tree.backend.list(&folder, list.from.as_deref(), MAX_LIST_PAGE);
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
                    let mut info = tree.info(&key, found, addresses);
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
    pub fn usage_attached(&self, principal: &Principal, path: &str) -> Answer<Option<Amount>> {
        let Some(tree) = self.open_tree(principal, path)? else { return Ok(None) };
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

impl OpenTree {
    /// Number and size of all files below a folder.
    fn count(&self, folder: Key, path: &str) -> Result<Amount, BackendError> {
        let too_many = || BackendError::TooMany { name: path.to_owned(), most: MAX_COUNTED as usize };
        let mut all = Amount { files: 0, bytes: 0, changed: 0, directory: true, unread: 0 };
        let (mut folders, mut counted) = (vec![(folder, 0)], 0u64);
        while let Some((folder, depth)) = folders.pop() {
            if depth > MAX_DEPTH {
                return Err(BackendError::TooDeep { name: path.to_owned() });
            }
            let left = MAX_COUNTED.checked_sub(counted).ok_or_else(too_many)?;
            let entries = match self.backend.list_all(&folder, left as usize) {
                Err(BackendError::Denied { .. }) if depth > 0 => {
                    all.unread += 1;
                    continue;
                }
                // It was removed meanwhile.
                Err(BackendError::NotFound { .. }) if depth > 0 => continue,
                entries => entries?,
            };
            counted = counted.saturating_add(entries.len() as u64).saturating_add(1);
            for entry in entries {
                match entry.content {
                    Content::File(found) => {
                        all.files += 1;
                        all.bytes = all.bytes.saturating_add(found.length);
                    }
                    Content::Folder => folders.push((folder.join(&entry.name)?, depth + 1)),
                    Content::Unreadable { .. } => all.unread += 1,
                }
            }
        }
        Ok(all)
    }
}

impl OpenTree {
    /// The key of a path in the tree.
    fn key(&self, path: &str) -> Answer<Key> {
        let path = path.strip_suffix('/').unwrap_or(path);
        Key::new(self.record.key_of(path).unwrap_or_default()).map_err(|error| self.refusal(error))
    }

    /// The meaning of an error for a client. A path that is no file counts as one that does not exist.
    fn refusal(&self, error: BackendError) -> Refusal {
        match error {
            BackendError::WrongKind { kind: Kind::Folder | Kind::BelowFile | Kind::File, .. } => {
                Refusal::new(ErrorKind::NotFound, format!("{}: {error}", self.record.path))
            }
            error => RunError::from(error).into(),
        }
    }

    /// A file in a state: its records are dealt to the nodes that reach the tree.
    fn info(&self, key: &Key, found: &Found, addresses: &HashMap<u32, String>) -> FileInfo {
        let id = id(&self.source, key, found);
        let version = found.stamp.number().max(1);
        let place = |number: &u32| {
            let address = addresses.get(number).cloned().unwrap_or_default();
            TargetPlace { number: *number, address, version }
        };
        // Files of few stripes begin on different nodes.
        let turn = u32::from_str_radix(id.get(..8).unwrap_or_default(), 16).unwrap_or(0);
        let count = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).max(1);
        let map = FileMap {
            id,
            path: format!("{}/{key}", self.record.path),
            length: found.length,
            unit: stripe_unit(found.length),
            first: turn % count,
            record: None,
            segments: false,
            attached: Some(Box::new(AttachedFile {
                tree: self.source.clone(),
                key: key.to_string(),
                stamp: found.stamp.to_string(),
                with_all_rights: self.with_all_rights,
            })),
            targets: self.numbers.iter().map(place).collect(),
        };
        let (owner, mode) = (self.record.owner.to_string(), self.record.mode.bits());
        // A page of a list has a thousand files. Most are small, and on a cluster of many nodes.
        FileInfo { file: map.without_empty_targets(), owner, mode, created: 0 }
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

/// The stripe unit of a file: a few large requests for each stripe, and not too many stripes.
fn stripe_unit(length: u64) -> u64 {
    length.div_ceil(MAX_TREE_STRIPES).max(1).next_multiple_of(MIN_TREE_STRIPE)
}

/// The id of a file in a state: 32 hexadecimal digits of a hash of where it lies and of its version.
fn id(source: &TreeSource, key: &Key, found: &Found) -> String {
    let texts = [
        source.url.as_str(),
        source.endpoint.as_deref().unwrap_or_default(),
        key.as_str(),
        found.stamp.as_str(),
    ];
    let mut bytes = found.length.to_le_bytes().to_vec();
    for text in texts {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    digest(&SHA256, &bytes).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_backend::Stamp;

    use super::*;

    #[test]
    fn a_file_has_at_most_some_thousand_stripes() {
        assert_eq!((stripe_unit(0), stripe_unit(1), stripe_unit(1 << 30)), (8 << 20, 8 << 20, 8 << 20));
        for length in [1 << 37, (1 << 37) + 1, 5 << 40, i64::MAX as u64] {
            let unit = stripe_unit(length);
            assert!(
                length.div_ceil(unit) <= MAX_TREE_STRIPES && unit.is_multiple_of(MIN_TREE_STRIPE),
                "{length}"
            );
        }
    }

    #[test]
    fn an_id_differs_if_the_place_or_the_version_does() {
        let source = TreeSource { url: "s3://a/b".into(), ..TreeSource::default() };
        let elsewhere = TreeSource { endpoint: Some("http://host".into()), ..source.clone() };
        let key = |text: &str| Key::new(text).unwrap();
        let found = |length, stamp: &str| Found { length, stamp: Stamp::new(stamp).unwrap() };
        let ids = [
            id(&source, &key("c"), &found(1, "x")),
            id(&source, &key("d"), &found(1, "x")),
            id(&source, &key("c"), &found(2, "x")),
            id(&source, &key("c"), &found(1, "y")),
            id(&elsewhere, &key("c"), &found(1, "x")),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert!(distinct.len() == ids.len() && ids.iter().all(|id| id.len() == 32));
    }
}
