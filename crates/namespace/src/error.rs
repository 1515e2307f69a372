//! Errors of the namespace, with their remedies.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DirPath, FileId, FilePath, PathFault, Principal};

/// The result of an operation on the namespace.
pub type Result<T> = std::result::Result<T, NamespaceError>;

/// Most characters of a refused string that a message repeats.
const SHOWN: usize = 64;

/// Reason why no file can be at a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathConflict {
    /// There are files below the path, so it is a directory.
    #[error("it is a directory: choose another name, or remove its files")]
    IsDirectory,
    /// A part of the path is a file.
    #[error("{0} is a file: choose another directory, or remove that file")]
    ParentIsFile(FilePath),
    /// There is a file at the path.
    #[error("it is a file: choose another name, or remove that file")]
    IsFile,
    /// The path lies in an attached tree.
    #[error(
        "it lies in the attached tree {0}, which Gristmill only reads: choose another path, or use the tools of its storage"
    )]
    InTree(FilePath),
    /// A tree is attached below the path.
    #[error("the tree {0} is attached in it: detach the tree first")]
    HasTree(FilePath),
}

/// Failure of an operation on the namespace. Each message says what is wrong and what to do.
///
/// After an error of the system ([`is_usage`](Self::is_usage) is false) it is not known whether the change was made. It
/// may be there after a crash. Every operation may be repeated.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// There is no file, or no directory, at this path.
    #[error("there is nothing at {path}: list the directory above it for the right name")]
    NotFound {
        /// The requested path.
        path: String,
    },
    /// The permission bits refuse.
    #[error("{who} may not {verb} {path}: ask the owner of the file, or an administrator")]
    Denied {
        /// The user that made the request.
        who: Principal,
        /// The file.
        path: FilePath,
        /// The action that was refused.
        verb: &'static str,
    },
    /// Only an administrator may do this.
    #[error("{who} may not {verb}: only root may, and the user that the entry node has as --admin")]
    NotAdministrator {
        /// The user that made the request.
        who: Principal,
        /// The action that was refused.
        verb: &'static str,
    },
    /// A path breaks a rule.
    #[error("the path {path:?} is not allowed, {why}")]
    InvalidPath {
        /// First 64 characters of the path.
        path: String,
        /// The broken rule.
        why: PathFault,
    },
    /// Another argument is invalid.
    #[error("{what}: {remedy}")]
    Invalid {
        /// Description of the fault.
        what: String,
        /// The action that the user must take.
        remedy: &'static str,
    },
    /// A file cannot be at the path, because of other files.
    #[error("{path} cannot be used: {conflict}")]
    Conflict {
        /// The path of the new file.
        path: FilePath,
        /// The reason.
        conflict: PathConflict,
    },
    /// The put is not in progress: its lease expired, it was abandoned, or it never began.
    #[error("put {id} is not in progress, because its lease expired or it was abandoned: begin a new put")]
    UnknownAttempt {
        /// The put.
        id: FileId,
    },
    /// A target with this number does not exist or has no address.
    #[error("target {number} is not in the cluster or has no address: take numbers from the list of targets")]
    UnknownTarget {
        /// The number.
        number: u32,
    },
    /// Another target with files has this address.
    #[error(
        "target {number} has the address {address} and contains files: give the new target another address, or remove those files"
    )]
    AddressTaken {
        /// The address.
        address: String,
        /// The target that has it.
        number: u32,
    },
    /// A number exceeds its limit.
    #[error("too many {what}, the limit is {limit}: stay within it or split the request")]
    TooMany {
        /// The counted things.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A user has too many puts that are neither finished nor collected.
    #[error(
        "{who} has {limit} puts that are not finished or not collected yet: finish some, or wait a moment"
    )]
    TooManyPuts {
        /// The user.
        who: Principal,
        /// The limit.
        limit: u64,
    },
    /// Another process, or another handle in this one, has the namespace open.
    #[error("the namespace in {} is open already: stop the process that has it open", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// A newer release wrote the namespace.
    #[error(
        "the namespace has format {found}, but this release knows only {known}: use the release that wrote it"
    )]
    NewerFormat {
        /// The format of the namespace.
        found: i64,
        /// The newest format that this release reads.
        known: i64,
    },
    /// The device or the user's quota is full.
    #[error(
        "no space left for the namespace: free space or raise the quota, then retry; acknowledged changes are safe"
    )]
    NoSpace,
    /// The stored state contradicts itself or cannot be read.
    #[error("the namespace is damaged: {what}. Restore its directory from a copy")]
    Damaged {
        /// Description of the fault.
        what: String,
    },
    /// The thread that writes has ended; only a defect ends it early.
    #[error("the namespace has stopped: close it and open it again")]
    Stopped,
    /// Any other failure of SQLite.
    #[error(
        "SQLite could not serve the namespace: {source}. Check the device and the file system, then retry"
    )]
    Sqlite {
        /// The cause.
        source: Arc<rusqlite::Error>,
    },
    /// Any other failure of the operating system.
    #[error("could not {op} {}: {source}. Check the device and the permissions, then retry", path.display())]
    Io {
        /// The operation that failed.
        op: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The cause.
        source: Arc<io::Error>,
    },
}

impl NamespaceError {
    /// Whether the request caused the error, and not the machine or its state.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Denied { .. }
            | Self::NotAdministrator { .. }
            | Self::InvalidPath { .. }
            | Self::Invalid { .. }
            | Self::Conflict { .. }
            | Self::UnknownAttempt { .. }
            | Self::UnknownTarget { .. }
            | Self::AddressTaken { .. }
            | Self::TooMany { .. } => true,
            Self::Locked { .. }
            | Self::NewerFormat { .. }
            | Self::NoSpace
            | Self::TooManyPuts { .. }
            | Self::Damaged { .. }
            | Self::Stopped
            | Self::Sqlite { .. }
            | Self::Io { .. } => false,
        }
    }

    pub(crate) fn invalid(what: impl Into<String>, remedy: &'static str) -> Self {
        Self::Invalid { what: what.into(), remedy }
    }

    /// A second commit of a put differs from the first one.
    pub(crate) fn committed_otherwise(id: &FileId) -> Self {
        let what = format!("put {id} is committed with another length or other versions");
        Self::invalid(what, "begin another put to change the file")
    }

    /// A commit has not one version for each target.
    pub(crate) fn wrong_versions(versions: usize, targets: usize) -> Self {
        let what = format!("{versions} versions were given for {targets} targets");
        Self::invalid(what, "give one version for each target")
    }

    /// A path would be moved to itself.
    pub(crate) fn same_path(source: &FilePath, destination: &DirPath) -> Self {
        Self::invalid(format!("{source} and {destination} are the same"), "give another name")
    }

    /// A directory would be moved into itself.
    pub(crate) fn into_itself(source: &FilePath, target: &FilePath) -> Self {
        let what = format!("{target} lies in {source}, so {source} would be moved into itself");
        Self::invalid(what, "choose another directory")
    }

    /// A directory would replace a file.
    pub(crate) fn onto_file(source: &FilePath, target: &FilePath) -> Self {
        let what = format!("{target} is a file, and {source} a directory");
        Self::invalid(what, "choose another name, or remove that file")
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(crate) fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io { op, path: path.to_path_buf(), source: Arc::new(source) },
        }
    }
}

impl From<rusqlite::Error> for NamespaceError {
    /// Converts a failure of SQLite to the variant whose remedy fits.
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                Code::DiskFull => Self::NoSpace,
                Code::DatabaseCorrupt | Code::NotADatabase | Code::TypeMismatch => {
                    Self::damaged(error.to_string())
                }
                _ => Self::Sqlite { source: Arc::new(error) },
            },
            // A column of the wrong type, a missing table or row: this crate did not write the file so.
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows => Self::damaged(error.to_string()),
            _ => Self::Sqlite { source: Arc::new(error) },
        }
    }
}

/// Returns the start of a string from outside, for a message.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
