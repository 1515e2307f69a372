//! The meaning of the error numbers of the library.

use gristmill_backend::{BackendError, Kind};
use rustix::io::Errno;

/// The error number with which Ceph refuses a client that it shut out (`ESHUTDOWN`).
const SHUT_OUT: Errno = Errno::SHUTDOWN;

/// Whether the connection is of no use any more: the cluster shut the client out, or the session with the servers ended.
pub(crate) fn is_lost(errno: Errno) -> bool {
    [SHUT_OUT, Errno::NOTCONN].contains(&errno)
}

/// The error of an operation on a file or folder.
pub(crate) fn explain(verb: &'static str, name: String, errno: Errno) -> BackendError {
    match errno {
        Errno::NOENT => BackendError::NotFound { name },
        Errno::NOTDIR => BackendError::WrongKind { name, kind: Kind::BelowFile },
        Errno::ISDIR => BackendError::WrongKind { name, kind: Kind::Folder },
        Errno::ACCESS => {
            let why = "permission denied; ask its owner for read access";
            BackendError::Denied { name, why: why.to_owned() }
        }
        // Files and folders are refused with EACCES, and objects with EPERM.
        Errno::PERM => {
            let why = "the key of this client lacks a right; it needs \"osd: allow r\" for the pool of the file, \
                       and \"mds: allow r\" for its folder (ceph auth get)";
            BackendError::Denied { name, why: why.to_owned() }
        }
        Errno::STALE => BackendError::Changed { name },
        errno if is_lost(errno) => {
            let why =
                "the cluster ended the connection of this client; it connects again when a file is opened";
            BackendError::Unavailable { name, why: why.to_owned() }
        }
        Errno::TIMEDOUT => {
            let why = "the servers of the file system do not answer".to_owned();
            BackendError::Unavailable { name, why }
        }
        Errno::IO => {
            let why =
                "Ceph gives an input/output error, as it does while a pool is full; see 'ceph health detail'";
            BackendError::Io { verb, name, source: std::io::Error::other(why) }
        }
        errno => BackendError::Io { verb, name, source: errno.into() },
    }
}
