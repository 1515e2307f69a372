//! What the namespace says about files, puts and targets.

use std::time::SystemTime;

use crate::{FileId, FilePath, Mode, Principal, TargetId};

/// A storage target of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRecord {
    /// Its number, given when it first joined and never changed.
    pub number: u32,
    /// Its own name.
    pub id: TargetId,
    /// Where its storage node listens. Empty if another target has taken over the address since.
    pub address: String,
}

/// A file to be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where it is to appear.
    pub path: FilePath,
    /// Stripe unit in bytes, 1 to [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    pub unit: u64,
    /// Position in `targets` of the one that holds the first stripe.
    pub first: u32,
    /// Numbers of the targets it lies on, each once, in the order of the stripes.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Its pieces lie where they were made: the objects say which they have.
    pub segments: bool,
    /// Its mode. `None`: that of the file it replaces, or else [`DEFAULT_MODE`](crate::DEFAULT_MODE).
    pub mode: Option<Mode>,
}

/// A file at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The put that made it.
    pub id: FileId,
    /// Where it is.
    pub path: FilePath,
    /// Whose it is.
    pub owner: Principal,
    /// Who may use it.
    pub mode: Mode,
    /// Its length in bytes.
    pub length: u64,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Position in `targets` of the one that holds the first stripe.
    pub first: u32,
    /// Numbers of the targets it lies on, in the order of the stripes.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Its pieces lie where they were made; unit and first say nothing then.
    pub segments: bool,
    /// Version of its object on each of `targets`.
    pub versions: Vec<u64>,
    /// When it was committed.
    pub created: SystemTime,
}

/// A put as [`begin`](crate::Namespace::begin) stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Where the file is to appear.
    pub path: FilePath,
    /// Who began it.
    pub who: Principal,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Position in `targets` of the one that holds the first stripe.
    pub first: u32,
    /// Numbers of the targets.
    pub targets: Vec<u32>,
    /// Bytes in a record, if its records have a fixed length.
    pub record: Option<u64>,
    /// Its pieces lie where they were made.
    pub segments: bool,
    /// It was committed already; to commit it again changes nothing and answers the same.
    pub committed: bool,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The file, now at its path.
    pub file: FileEntry,
    /// The file that was there before, now garbage.
    pub replaced: Option<FileId>,
}

/// Objects that nobody needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// The name of the objects.
    pub id: FileId,
    /// Numbers of the targets that may hold one.
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
}
