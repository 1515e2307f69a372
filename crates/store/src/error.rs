//! What can go wrong, and what to do about it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::{IdError, ObjectId, Version};

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why a store operation failed. Each sentence says what was wrong and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no object of this name.
    #[error("object {id} does not exist: create it first, or list the store for the right name")]
    NotFound {
        /// The name asked for.
        id: ObjectId,
    },
    /// An object of this name exists already.
    #[error("object {id} exists already: choose another name or remove it first")]
    Exists {
        /// The name asked for.
        id: ObjectId,
    },
    /// The object changed since the version that was asked for, or while it was read.
    #[error("object {id} is at {actual}, not at {expected}: stat it again and start over from its new state")]
    Stale {
        /// The object.
        id: ObjectId,
        /// The version in the options.
        expected: Version,
        /// The version found.
        actual: Version,
    },
    /// Seen only by read-only opens: the writing process has changed the object and not flushed it.
    #[error(
        "object {id} has unflushed writes in another process, so no version names its bytes yet: retry after it is flushed, or read without if_version"
    )]
    Unflushed {
        /// The object.
        id: ObjectId,
    },
    /// A flush failed in the operating system; the bytes accepted since the last good flush may be lost.
    #[error(
        "the system failed to store bytes of object {id} that were accepted since its last flush: truncate it to 0 or remove it, then write it again"
    )]
    Unsynced {
        /// The object.
        id: ObjectId,
    },
    /// The object is not open (it is complete), so it has no lease to renew.
    #[error("object {id} is closed: only an object created with a lease and not yet closed can renew it")]
    NotOpen {
        /// The object.
        id: ObjectId,
    },
    /// An extent to read ends behind the end of the object.
    #[error("an extent of object {id} ends at byte {end}, the object at {length}: shorten the extent")]
    OutOfRange {
        /// The object.
        id: ObjectId,
        /// End of the extent.
        end: u64,
        /// Length of the object.
        length: u64,
    },
    /// The device or the user's quota is full.
    #[error("no space left to {op} {}: free space or raise the quota, then retry; what was flushed is safe", path.display())]
    NoSpace {
        /// What was being done.
        op: &'static str,
        /// To what.
        path: PathBuf,
    },
    /// The operating system refused access.
    #[error("no permission to {op} {}: give the store's user read and write access to it ({source})", path.display())]
    Permission {
        /// What was being done.
        op: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process has the store open for writing.
    #[error("store {} is open for writing in another process: stop that process", dir.display())]
    Locked {
        /// The directory of the store.
        dir: PathBuf,
    },
    /// A change was asked of a store opened for reading.
    #[error("the store is open for reading only: open it for writing to {op}")]
    ReadOnly {
        /// What was asked.
        op: &'static str,
    },
    /// The stored state contradicts itself.
    #[error("the store is damaged: {what}. {remedy}")]
    Damaged {
        /// What contradicts what.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The device gives other bytes than were written.
    #[error(
        "object {id} is damaged: bytes {} to {} of data file {} are not those that were written (their checksum differs). Write the object again from its source, and check the device",
        bytes.start, bytes.end, path.display()
    )]
    Corrupt {
        /// The object.
        id: ObjectId,
        /// Its data file.
        path: PathBuf,
        /// Where the bytes lie in the object; at most one block.
        bytes: Range<u64>,
    },
    /// The name of an object breaks the rule.
    #[error(transparent)]
    InvalidId(#[from] IdError),
    /// The name of an attribute breaks the rule.
    #[error("attribute name {name:?} is not allowed, {why}: use 1 to 255 bytes without control characters")]
    InvalidAttribute {
        /// Its first 64 characters.
        name: String,
        /// Which rule it breaks.
        why: &'static str,
    },
    /// Some other argument, or a stored value an operation builds on, is not what it must be.
    #[error("{what}: {remedy}")]
    Invalid {
        /// What was wrong.
        what: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A bound was passed.
    #[error("{what} passes the limit of {limit}: stay within it or split the request")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The system lets no file be so large.
    #[error("could not {op} {}: it would be larger than the file system, or the limit on this process (ulimit -f), lets a file be. Raise the limit, or spread the file over more targets", path.display())]
    FileTooLarge {
        /// What was being done.
        op: &'static str,
        /// To what.
        path: PathBuf,
    },
    /// Any other failure of the operating system or of SQLite.
    #[error("could not {op} {}: {source}. Check the device and the file system, then retry", path.display())]
    Io {
        /// What was being done.
        op: &'static str,
        /// To what.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Remedy for damage that only a copy can mend.
pub(crate) const RESTORE: &str = "Restore the store's directory from a copy, or move it away and start anew";

impl StoreError {
    /// Sorts a failure of the operating system by what the caller can do about it.
    pub(crate) fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { op, path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Permission { op, path, source }
            }
            io::ErrorKind::FileTooLarge => Self::FileTooLarge { op, path },
            _ => Self::Io { op, path, source },
        }
    }

    /// Sorts a failure of SQLite on the file `path` likewise.
    pub(crate) fn sqlite(op: &'static str, path: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_path_buf();
        let text = error.to_string();
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                Code::DiskFull => Self::NoSpace { op, path },
                Code::PermissionDenied | Code::ReadOnly | Code::CannotOpen => {
                    Self::Permission { op, path, source: io::Error::other(error) }
                }
                Code::DatabaseCorrupt | Code::NotADatabase | Code::TypeMismatch => Self::Damaged {
                    what: format!("could not {op} {}: {text}", path.display()),
                    remedy: RESTORE,
                },
                _ => Self::Io { op, path, source: io::Error::other(error) },
            },
            // A column of the wrong type, a missing table or row: the file is not what this crate wrote.
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows => {
                Self::Damaged { what: format!("could not {op} {}: {text}", path.display()), remedy: RESTORE }
            }
            _ => Self::Io { op, path, source: io::Error::other(error) },
        }
    }
}
