//! Errors of backends.

use std::{fmt, io};

use crate::MAX_DEPTH;

/// The reason why an object or a folder of a backend cannot be read. `name` is the object as a user knows it: the path on a mount,
/// or the URL.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// There is no such file or folder.
    #[error("there is no {name}; check the path")]
    NotFound {
        /// The file or folder.
        name: String,
    },
    /// It has another kind than the one that is needed.
    #[error("{name} is {kind}")]
    WrongKind {
        /// The file or folder.
        name: String,
        /// Its kind.
        kind: Kind,
    },
    /// The user or the node may not read it.
    #[error("{name} may not be read: {why}")]
    Denied {
        /// The file or folder.
        name: String,
        /// The reason, and what to do.
        why: String,
    },
    /// It has another version than the one that was opened.
    #[error("{name} was changed while it was read; repeat the request when nothing writes to it")]
    Changed {
        /// The file.
        name: String,
    },
    /// It ends before the bytes that were asked for.
    #[error("{name} has {length} bytes, and bytes up to {end} were asked for; it is cut off, or was changed")]
    Short {
        /// The file.
        name: String,
        /// The end of the range that was asked for.
        end: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// The name cannot be that of a file in a backend.
    #[error("the name {key:?} is not allowed: {why}")]
    InvalidKey {
        /// The name.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// A folder has more names than its reader takes.
    #[error("{name} has more than {most} files and folders; use fewer, for example with larger chunks")]
    TooMany {
        /// The folder.
        name: String,
        /// The bound.
        most: usize,
    },
    /// A folder has more levels of folders than its reader takes.
    #[error("{name} is below more than {MAX_DEPTH} folders; use fewer levels")]
    TooDeep {
        /// The folder.
        name: String,
    },
    /// The storage does not answer now.
    #[error("{name} cannot be reached: {why}")]
    Unavailable {
        /// The file or folder.
        name: String,
        /// The reason.
        why: String,
    },
    /// The system failed.
    #[error("cannot {verb} {name}: {source}")]
    Io {
        /// The operation: `open`, `read` or `list`.
        verb: &'static str,
        /// The file or folder.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The caller broke a rule of the trait.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// The rule.
        what: &'static str,
    },
}

/// The kind of something that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A path that goes on below a file.
    BelowFile,
    /// A file with bytes whose length is 0, as in `/proc`.
    WithoutLength,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A symbolic link that is not followed.
    Link,
    /// A device.
    Device,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::File => "a file; name a directory",
            Kind::Folder => "a directory; name a file",
            Kind::BelowFile => "below a file; check the path",
            Kind::WithoutLength => "a file with bytes and the length 0; copy its bytes into a regular file",
            Kind::Pipe => "a pipe; name a regular file",
            Kind::Socket => "a socket; name a regular file",
            Kind::Link => "a symbolic link; name a regular file",
            Kind::Device => "a device; name a regular file",
        })
    }
}

impl BackendError {
    /// The error of a system call on a file.
    pub(crate) fn io(verb: &'static str, name: impl Into<String>, source: io::Error) -> BackendError {
        let name = name.into();
        match source.kind() {
            io::ErrorKind::NotFound => BackendError::NotFound { name },
            io::ErrorKind::PermissionDenied => {
                let why = "permission denied; ask its owner for read access, or run as a user who has it";
                BackendError::Denied { name, why: why.to_owned() }
            }
            io::ErrorKind::IsADirectory => BackendError::WrongKind { name, kind: Kind::Folder },
            io::ErrorKind::NotADirectory => BackendError::WrongKind { name, kind: Kind::BelowFile },
            _ => BackendError::Io { verb, name, source },
        }
    }
}
