//! Failures on their way to Python: their kind and their message.

use std::fs::File;
use std::io;

use gristmill_client::ClientError;
use gristmill_kernel::KernelError;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::TransportError;
use pyo3::prelude::*;

/// The kind of a time-out; [`ErrorKind`] has the other kinds.
const TIMED_OUT: &str = "timed-out";

/// A failure of a function of this module.
pub enum Failure {
    /// A failure with a message of Gristmill.
    Reported {
        kind: &'static str,
        message: String,
        /// Seconds after which a busy node wants to be asked again.
        retry_after: Option<u32>,
    },
    /// An exception of Python code of the caller.
    Raised(PyErr),
}

impl Failure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Failure {
        Failure::Reported { kind: kind.name(), message: message.into(), retry_after: None }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Usage, message)
    }

    pub fn timed_out(message: String) -> Failure {
        Failure::Reported { kind: TIMED_OUT, message, retry_after: None }
    }

    /// A file of this machine that could not be read, written or removed.
    pub fn of_file(verb: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        Failure::new(kind_of_io(error), format!("cannot {verb} {}: {error}", path.display()))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let parts = match failure {
            Failure::Raised(error) => return error,
            Failure::Reported { kind, message, retry_after } => (kind, message, retry_after),
        };
        Python::attach(|py| {
            let made = py.import("gristmill._errors").and_then(|m| m.call_method1("error_for", parts));
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Raised(error)
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Failure {
        RunError::from(error).into()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        let kind = match &error {
            RunError::Open { path, usage, .. } => match (File::open(path), usage) {
                (Err(now), _) if now.kind() != io::ErrorKind::NotFound => kind_of_io(&now),
                (Err(_), _) => ErrorKind::NotFound,
                (Ok(_), true) => ErrorKind::Usage,
                (Ok(_), false) => ErrorKind::Failed,
            },
            other => other.kind(),
        };
        let retry_after = error.retry_after();
        Failure::Reported { kind: kind.name(), message: error.to_string(), retry_after }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let error = match error {
            ClientError::Run(error) => return error.into(),
            other => other,
        };
        let kind = match &error {
            ClientError::Transport(
                TransportError::Refused { .. }
                | TransportError::Timeout { .. }
                | TransportError::Stalled { .. }
                | TransportError::Closed { .. },
            ) => ErrorKind::Unavailable,
            ClientError::Target { source, .. } | ClientError::Store(source) => ErrorKind::of_store(source),
            ClientError::Io { source, .. } => kind_of_io(source),
            other if other.is_usage() => ErrorKind::Usage,
            other => other.storage().map_or(ErrorKind::Failed, RunError::kind),
        };
        Failure::new(kind, error.to_string())
    }
}

fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
        _ => ErrorKind::Failed,
    }
}
