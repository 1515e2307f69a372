//! Targets, puts, files and trees in memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

use crate::path::SEPARATOR;
use crate::{
    AttachedTree, DirPath, FileEntry, FileId, FilePath, MAX_CLUSTER_TARGETS, MAX_SOURCE_BYTES, MAX_TREES,
    Mode, NamespaceError, NewFile, PathConflict, Principal, Result, TargetId, TargetRecord, checks, clock,
};

/// The state of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is in progress until the end of its lease, in nanoseconds since 1970.
    Begun { lease: i64 },
    /// Its file is at its path.
    Live,
    /// Its objects are not needed any more. `again`: they were collected once.
    Garbage { again: bool },
    /// Its objects were collected, and may be written again until this time.
    Held { until: i64 },
}

/// One put, from its beginning until its objects are collected and cannot be written again.
#[derive(Debug, Clone)]
pub(super) struct Put {
    pub id: FileId,
    pub who: Principal,
    pub new: NewFile,
    pub stage: Stage,
    /// The file that the commit made. It stays here after its removal.
    pub file: Option<FileEntry>,
    pub replaced: Option<FileId>,
}

impl Put {
    pub fn in_progress(&self) -> bool {
        matches!(self.stage, Stage::Begun { lease } if lease > clock::now())
    }

    pub fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Held { .. })
    }
}

/// Everything. Keys of maps of paths are those of [`FilePath::key`].
#[derive(Debug, Default)]
pub(super) struct State {
    pub targets: Vec<TargetRecord>,
    /// Puts in the order of their beginning.
    pub puts: BTreeMap<u64, Put>,
    pub by_id: HashMap<FileId, u64>,
    /// Live files.
    pub files: BTreeMap<String, u64>,
    pub trees: BTreeMap<String, AttachedTree>,
    /// Number of the next put.
    pub next: u64,
    /// Number of the last garbage that was returned.
    pub cursor: Option<u64>,
    ids: RandomState,
}

impl State {
    /// A new id.
    ///
    /// # Errors
    /// It does not fail: the text is one.
    pub fn new_id(&self) -> Result<FileId> {
        let half = |salt: u64| {
            let mut hasher = self.ids.build_hasher();
            hasher.write_u64(self.next);
            hasher.write_u64(salt);
            hasher.finish()
        };
        format!("{:016x}{:016x}", half(0), half(1)).parse()
    }

    pub fn at(&self, path: &FilePath) -> Option<&Put> {
        self.puts.get(self.files.get(&path.key())?)
    }

    /// The file at a path.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound).
    pub fn file(&self, path: &FilePath) -> Result<FileEntry> {
        let file = self.at(path).and_then(|put| put.file.clone());
        file.ok_or_else(|| NamespaceError::NotFound { path: path.to_string() })
    }

    /// The live files of a directory, at any depth.
    pub fn files_in<'s>(&'s self, dir: &DirPath) -> impl Iterator<Item = (&'s str, &'s FileEntry)> + use<'s> {
        self.files_from(&dir.prefix(), dir)
    }

    /// The live files of a directory with keys from `start` on.
    pub fn files_from<'s>(
        &'s self,
        start: &str,
        dir: &DirPath,
    ) -> impl Iterator<Item = (&'s str, &'s FileEntry)> + use<'s> {
        let end = dir.prefix_end();
        let range = (start < end.as_str()).then(|| self.files.range(start.to_owned()..end));
        range
            .into_iter()
            .flatten()
            .filter_map(|(key, n)| Some((key.as_str(), self.puts.get(n)?.file.as_ref()?)))
    }

    /// The attached trees below a directory.
    pub fn trees_in<'s>(
        &'s self,
        dir: &DirPath,
    ) -> impl Iterator<Item = (&'s str, &'s AttachedTree)> + use<'s> {
        let range = self.trees.range(dir.prefix()..dir.prefix_end());
        range.map(|(key, tree)| (key.as_str(), tree))
    }

    /// Whether a file or an attached tree lies in a directory, at any depth.
    pub fn directory_exists(&self, dir: &DirPath) -> bool {
        self.files_in(dir).next().is_some() || self.trees_in(dir).next().is_some()
    }

    /// The file whose path is a parent of `path`.
    pub fn file_above(&self, path: &FilePath) -> Option<FilePath> {
        let key = path.key();
        let ends = key.match_indices(SEPARATOR).map(|(at, _)| at).filter(|at| *at > 0);
        let above = ends.filter_map(|end| self.files.get(key.get(..end)?));
        let file = above.filter_map(|n| self.puts.get(n)?.file.as_ref()).next();
        file.map(|file| file.path.clone())
    }

    /// The tree at the path of a key or above it.
    pub fn tree_of(&self, key: &str) -> Option<&AttachedTree> {
        let (tree, found) = self.trees.range(..=key.to_owned()).next_back()?;
        let rest = key.strip_prefix(tree.as_str())?;
        (rest.is_empty() || rest.starts_with(SEPARATOR)).then_some(found)
    }

    /// Refuses a change of a path in a tree.
    pub fn check_not_in_tree(&self, path: &FilePath) -> Result<()> {
        match self.tree_of(&path.key()) {
            Some(tree) => Err(conflict(path, PathConflict::InTree(tree.path.clone()))),
            None => Ok(()),
        }
    }

    pub fn attach(&mut self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(NamespaceError::invalid("the source of the tree is too long", "use a shorter URL"));
        }
        if self.at(path).is_some() {
            return Err(conflict(path, PathConflict::IsFile));
        }
        if let Some(parent) = self.file_above(path) {
            return Err(conflict(path, PathConflict::ParentIsFile(parent)));
        }
        self.check_not_in_tree(path)?;
        if self.directory_exists(&DirPath::from(path)) {
            return Err(conflict(path, PathConflict::IsDirectory));
        }
        if self.trees.len() >= MAX_TREES {
            return Err(NamespaceError::TooMany { what: "attached trees", limit: MAX_TREES as u64 });
        }
        let attached = SystemTime::now();
        let tree =
            AttachedTree { path: path.clone(), source: source.into(), owner: who.clone(), mode, attached };
        self.trees.insert(path.key(), tree);
        Ok(())
    }

    pub fn join(&mut self, id: &TargetId, address: &str, holds_files: bool) -> Result<u32> {
        checks::check_address(address)?;
        let known = self.targets.iter().position(|target| target.id == *id);
        let holder = self.targets.iter().position(|target| target.address == address && target.id != *id);
        if let Some(at) = holder {
            let number = self.targets.get(at).map_or(0, |target| target.number);
            let uses = |put: &Put| put.stage == Stage::Live || put.in_progress();
            if self.puts.values().any(|put| uses(put) && put.new.targets.contains(&number)) {
                return Err(NamespaceError::AddressTaken { address: address.into(), number });
            }
        }
        if known.is_none() && self.targets.len() >= MAX_CLUSTER_TARGETS {
            let (what, limit) = ("targets in the cluster", MAX_CLUSTER_TARGETS as u64);
            return Err(NamespaceError::TooMany { what, limit });
        }
        if let Some(target) = holder.and_then(|at| self.targets.get_mut(at)) {
            target.address.clear();
        }
        if let Some(target) = known.and_then(|at| self.targets.get_mut(at)) {
            (target.address, target.holds_files) = (address.into(), holds_files);
            return Ok(target.number);
        }
        let number = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        self.targets.push(TargetRecord { number, id: id.clone(), address: address.into(), holds_files });
        Ok(number)
    }
}

pub(super) fn conflict(path: &FilePath, conflict: PathConflict) -> NamespaceError {
    NamespaceError::Conflict { path: path.clone(), conflict }
}
