//! The meaning of the error numbers of the library.

use std::io;
use std::path::PathBuf;

use gristmill_store::StoreError;
use rustix::io::Errno;

use crate::client::ConnectFailure;
use crate::{ANSWER_PATIENCE, MONITOR_PATIENCE, RadosLocation};

/// The error number with which Ceph refuses a client that was shut out (`EBLOCKLISTED`).
pub(crate) const SHUT_OUT: Errno = Errno::SHUTDOWN;

/// The message for a process that has lost the store.
pub(crate) const TAKEN_OVER: &str =
    "another process took over the store, because this one did not renew its lock; restart one of them only";

/// The error of an operation on something in a store.
pub(crate) fn explain(op: &'static str, name: String, errno: Errno) -> StoreError {
    let path = PathBuf::from(name);
    let other = |why: &str| io::Error::other(why.to_owned());
    match errno {
        Errno::NOSPC | Errno::DQUOT => StoreError::NoSpace { op, path },
        Errno::PERM | Errno::ACCESS => {
            let source = other(
                "the key lacks a right for the pool; it needs \"osd: allow rwx pool=POOL\" (ceph auth caps)",
            );
            StoreError::Permission { op, path, source }
        }
        Errno::TIMEDOUT => {
            let why = format!(
                "the storage daemons did not answer within {ANSWER_PATIENCE} s (see 'ceph health detail')"
            );
            StoreError::Io { op, path, source: other(&why) }
        }
        Errno::OPNOTSUPP => {
            let why = "the pool does not support it; use a replicated pool, because pools with erasure codes have no entries";
            StoreError::Io { op, path, source: other(why) }
        }
        SHUT_OUT => StoreError::Io { op, path, source: other(TAKEN_OVER) },
        errno => StoreError::Io { op, path, source: errno.into() },
    }
}

/// The error of a store that cannot be opened.
pub(crate) fn explain_connection(id: &str, location: &RadosLocation, failure: ConnectFailure) -> StoreError {
    let path = PathBuf::from(location.to_string());
    let io = |why: String| StoreError::Io { op: "open", path: path.clone(), source: io::Error::other(why) };
    match failure {
        ConnectFailure::NoLibrary(why) => io(format!(
            "the client library of Ceph is not installed ({why}); install librados2 of the release of the cluster"
        )),
        ConnectFailure::Name(name) => io(format!("the name {name:?} holds a NUL character")),
        ConnectFailure::Configuration(what, errno) => io(format!(
            "{what} cannot be read or set ({errno}); set CEPH_CONF to the configuration of the cluster"
        )),
        ConnectFailure::Connect(errno) => match errno {
            Errno::NOENT => io(format!(
                "the configuration names no monitor, or there is no key of client.{id}; check CEPH_CONF, CEPH_ARGS (--id NAME) and the keyring"
            )),
            Errno::ACCESS | Errno::PERM => StoreError::Permission {
                op: "open",
                path: path.clone(),
                source: io::Error::other(format!("the cluster refuses client.{id}: its key is another one")),
            },
            Errno::TIMEDOUT => io(format!(
                "the monitors did not answer within {MONITOR_PATIENCE} s; check that they run (ceph status)"
            )),
            errno => {
                io(format!("the cluster cannot be reached ({errno}); check mon_host in the configuration"))
            }
        },
        ConnectFailure::Pool(Errno::NOENT) => {
            io(format!("there is no pool {}; make it (ceph osd pool create)", location.pool))
        }
        ConnectFailure::Pool(errno) => io(format!("the pool cannot be opened ({errno})")),
    }
}
