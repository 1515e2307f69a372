//! Errors of store operations, with their remedies.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::{IdError, ObjectId, Version};

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Failure of a store operation. Each message says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no object of this name.
    #[error("object {id} does not exist: create it first, or list the store for the right name")]
    NotFound {
        /// The requested name.
        id: ObjectId,
    },
    /// An object of this name exists already.
    #[error("object {id} exists already: choose another name or remove it first")]
    Exists {
        /// The requested name.
        id: ObjectId,
    },
    /// The object has another version than the requested one, or changed during the read.
    #[error("object {id} is at {actual}, not at {expected}: stat it again and start over from its new state")]
    Stale {
        /// The object.
        id: ObjectId,
        /// The version in the options.
        expected: Version,
        /// The version of the object.
        actual: Version,
    },
    /// The writing process has changed the object and not flushed it. Only stores that are open for reading return
    /// this.
    #[error(
        "object {id} has unflushed writes in another process, so no version names its bytes yet: retry after it is flushed, or read without if_version"
    )]
    Unflushed {
        /// The object.
        id: ObjectId,
    },
    /// A flush failed in the operating system. Bytes that were accepted since the last good flush may be lost.
    #[error(
        "the system failed to store bytes of object {id} that were accepted since its last flush: truncate it to 0 or remove it, then write it again"
    )]
    Unsynced {
        /// The object.
        id: ObjectId,
    },
    /// The object is closed (complete), so it has no lease to renew.
    #[error("object {id} is closed: only an object created with a lease and not yet closed can renew it")]
    NotOpen {
        /// The object.
        id: ObjectId,
    },
    /// An extent of a read ends after the end of the object.
    #[error(
        "an extent of object {id} ends at byte {end}, but the object ends at byte {length}: shorten the extent"
    )]
    OutOfRange {
        /// The object.
        id: ObjectId,
        /// End of the extent.
        end: u64,
        /// Length of the object.
        length: u64,
    },
    /// The device or the user's quota is full.
    #[error("no space left to {op} {}: free space or raise the quota, then retry; flushed data is safe", path.display())]
    NoSpace {
        /// The operation that failed.
        op: &'static str,
        /// Its file or directory.
        path: PathBuf,
    },
    /// The operating system refused access.
    #[error("no permission to {op} {}: give the store's user read and write access to it ({source})", path.display())]
    Permission {
        /// The operation that failed.
        op: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process has the store open for writing.
    #[error("store {} is open for writing in another process: stop that process", dir.display())]
    Locked {
        /// The directory of the store.
        dir: PathBuf,
    },
    /// A change was requested of a store that is open for reading.
    #[error("the store is open for reading only: open it for writing to {op}")]
    ReadOnly {
        /// The requested change.
        op: &'static str,
    },
    /// The node has no store.
    #[error("this node holds no files of the cluster (--without-store): put the file on other targets")]
    NoStore,
    /// The stored state contradicts itself.
    #[error("the store is damaged: {what}. {remedy}")]
    Damaged {
        /// Description of the contradiction.
        what: String,
        /// The action that the user must take.
        remedy: &'static str,
    },
    /// The device returns other bytes than were written.
    #[error(
        "object {id} is damaged: bytes {} to {} of data file {} differ from the written bytes (their checksum is wrong). Write the object again from its source, and check the device",
        bytes.start, bytes.end, path.display()
    )]
    Corrupt {
        /// The object.
        id: ObjectId,
        /// Its data file.
        path: PathBuf,
        /// Range of the bytes in the object; at most one block.
        bytes: Range<u64>,
    },
    /// The name of an object breaks a rule.
    #[error(transparent)]
    InvalidId(#[from] IdError),
    /// The name of an attribute breaks a rule.
    #[error("attribute name {name:?} is not allowed, {why}: use 1 to 255 bytes without control characters")]
    InvalidAttribute {
        /// First 64 characters of the name.
        name: String,
        /// The broken rule.
        why: &'static str,
    },
    /// Another argument, or a stored value that the operation needs, is invalid.
    #[error("{what}: {remedy}")]
    Invalid {
        /// Description of the fault.
        what: String,
        /// The action that the user must take.
        remedy: &'static str,
    },
    /// A quantity exceeds its limit.
    #[error("{what} exceeds the limit of {limit}: stay within it or split the request")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The system does not allow a file of this length.
    #[error("could not {op} {}: the file would be longer than the file system or the limit of this process (ulimit -f) allows. Raise the limit, or spread the file over more targets", path.display())]
    FileTooLarge {
        /// The operation that failed.
        op: &'static str,
        /// Its file.
        path: PathBuf,
    },
    /// Any other failure of the operating system or of SQLite.
    #[error("could not {op} {}: {source}. Check the device and the file system, then retry", path.display())]
    Io {
        /// The operation that failed.
        op: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Remedy for damage that only a copy of the store can repair.
pub(crate) const RESTORE: &str = "Restore the store's directory from a copy, or move it away and start anew";

impl StoreError {
    /// Converts a failure of the operating system to the variant whose remedy fits.
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

    /// Converts a failure of SQLite on the file `path` to the variant whose remedy fits.
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
            // A column of the wrong type, a missing table or row: this crate did not write the file so.
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
