//! Records of files, puts and targets.

use std::time::SystemTime;

use crate::{DirPath, FileId, FilePath, Mode, Principal, TargetId};

/// A storage target of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRecord {
    /// Its number. It gets the number when it first joins, and keeps it.
    pub number: u32,
    /// Its name.
    pub id: TargetId,
    /// Address of its storage node. It is empty if another target has taken over the address.
    pub address: String,
    /// Whether its storage node holds files of the cluster. If not, the node only reads attached trees.
    pub holds_files: bool,
}

/// Description of a new file for a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its path.
    pub path: FilePath,
    /// Stripe unit in bytes, 1 to [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    pub unit: u64,
    /// Position in `targets` of the target with the first stripe.
    pub first: u32,
    /// Numbers of its targets, each once, in the order of the stripes.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Whether its pieces lie on the nodes that made them. The objects list their pieces.
    pub segments: bool,
    /// Its mode. `None`: the mode of the file that it replaces, or else [`DEFAULT_MODE`](crate::DEFAULT_MODE).
    pub mode: Option<Mode>,
}

/// A file at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Id of the put that made it.
    pub id: FileId,
    /// Its path.
    pub path: FilePath,
    /// Its owner.
    pub owner: Principal,
    /// Its permission bits.
    pub mode: Mode,
    /// Its length in bytes.
    pub length: u64,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Position in `targets` of the target with the first stripe.
    pub first: u32,
    /// Numbers of its targets, in the order of the stripes.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Whether its pieces lie on the nodes that made them. Then `unit` and `first` have no meaning.
    pub segments: bool,
    /// Version of its object on each of `targets`.
    pub versions: Vec<u64>,
    /// Time of its commit.
    pub created: SystemTime,
}

/// A put as [`begin`](crate::Namespace::begin) stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Path of the new file.
    pub path: FilePath,
    /// User that began it.
    pub who: Principal,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Position in `targets` of the target with the first stripe.
    pub first: u32,
    /// Numbers of the targets.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Whether its pieces lie on the nodes that made them.
    pub segments: bool,
    /// Whether it is committed already. A second commit changes nothing and has the same answer.
    pub committed: bool,
}

/// Outcome of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOutcome {
    /// The file, now at its path.
    pub file: FileEntry,
    /// The file that it replaced, which is garbage now.
    pub replaced: Option<FileId>,
}

/// Objects of a put that are not needed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// The name of the objects.
    pub id: FileId,
    /// Numbers of the targets that may have one.
    pub targets: Vec<u32>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEntry {
    /// A directory of this name.
    Dir(String),
    /// A file.
    File(FileEntry),
}

impl ListEntry {
    /// The name within the directory that was listed.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Dir(name) => name,
            Self::File(file) => file.path.name(),
        }
    }

    /// The path below the directory of which all levels were listed.
    #[must_use]
    pub fn path_below(&self, dir: &DirPath) -> &str {
        match self {
            Self::Dir(path) => path,
            Self::File(file) => {
                let prefix = if dir.is_root() { "" } else { dir.as_str() };
                let below = file.path.as_str().strip_prefix(prefix).unwrap_or_default();
                below.strip_prefix('/').unwrap_or(below)
            }
        }
    }
}

/// Number and size of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Number of files.
    pub files: u64,
    /// Total length of the files in bytes.
    pub bytes: u64,
    /// Time of the last commit among the files.
    pub changed: SystemTime,
    /// Whether the requested path is a directory, and not a file.
    pub directory: bool,
}

/// Outcome of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveOutcome {
    /// The new path.
    pub path: FilePath,
    /// Number of files whose path changed.
    pub files: u64,
}

/// A put in any state. Its objects have its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPut {
    /// The name of the objects.
    pub id: FileId,
    /// Numbers of the targets that may have one.
    pub targets: Vec<u32>,
    /// The file, if it is at a path. `None`: the put is in progress, or its objects are garbage.
    pub file: Option<FileEntry>,
}
