//! Errors of the start of a node, and errors as they are sent.

use std::io;
use std::path::PathBuf;

use axum::body::Body;
use axum::response::{AppendHeaders, IntoResponse, Response};
use gristmill_namespace::NamespaceError;
use gristmill_rados::RegistryError;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_store::StoreError;
use gristmill_transport::TransportError;
use gristmill_wire::{ErrorBody, WireError};
use http::{StatusCode, header};

/// Error that prevents a node from starting or ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The target's store cannot be used.
    #[error("target {}: {source}", target.display())]
    Store {
        /// Directory of the target.
        target: PathBuf,
        /// Error of the store.
        source: StoreError,
    },
    /// The namespace cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The address cannot be used.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The entry node refused this node.
    #[error("the entry node does not take this node in: {0}")]
    Join(#[source] RunError),
    /// The nodes of the cluster are not found in Ceph, or this node cannot be noted there.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Connections to other nodes cannot be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A message cannot be encoded or decoded.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A thread that the node needs cannot be started.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file that the node needs cannot be read or written.
    #[error("cannot {verb} {}: {source}", path.display())]
    File {
        /// What failed, for example `read`.
        verb: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Something that cannot happen did, for example a panic.
    #[error("internal error: {what}; this is a defect of Gristmill, please report it")]
    Internal {
        /// A clause that says what happened.
        what: String,
    },
    /// The options do not fit together, or a file has invalid content.
    #[error("{0}")]
    Usage(String),
}

impl ServerError {
    /// Whether the options are wrong (exit code 2) and not the machine (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            ServerError::Usage(_) => true,
            ServerError::Transport(error) => matches!(
                error,
                TransportError::BadAddress { .. }
                    | TransportError::NotLocal { .. }
                    | TransportError::NotLocalListen { .. }
            ),
            ServerError::Namespace(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// The result of a request.
pub(crate) type Answer<T> = Result<T, Refusal>;

/// An error as it is sent to a client.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(pub ErrorBody);

impl Refusal {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        Refusal(ErrorBody::new(kind, message))
    }

    /// The error of a request that was not begun because the node is busy. `why`: the reason. `seconds`: time to try
    /// again.
    pub fn busy(why: &str, seconds: u32) -> Refusal {
        let body = ErrorBody::new(ErrorKind::Busy, format!("{why}; try again in {seconds} s"));
        Refusal(ErrorBody { retry_after: Some(seconds), ..body })
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        Refusal(ErrorBody::from(&error))
    }
}

impl From<ServerError> for Refusal {
    fn from(error: ServerError) -> Refusal {
        Refusal::new(ErrorKind::Failed, error.to_string())
    }
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Refusal {
        Refusal(ErrorBody::from(&error))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::new(ErrorKind::of_store(&error), error.to_string())
    }
}

impl From<NamespaceError> for Refusal {
    fn from(error: NamespaceError) -> Refusal {
        let kind = match &error {
            NamespaceError::NotFound { .. } => ErrorKind::NotFound,
            NamespaceError::Denied { .. } | NamespaceError::NotAdministrator { .. } => ErrorKind::Denied,
            NamespaceError::NoSpace => ErrorKind::NoSpace,
            NamespaceError::UnknownAttempt { .. } => ErrorKind::Conflict,
            NamespaceError::TooManyPuts { .. } => ErrorKind::Busy,
            other if other.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<Refusal> for tonic::Status {
    fn from(refusal: Refusal) -> tonic::Status {
        gristmill_peers::to_status(&refusal.0)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match ErrorKind::named(&self.0.kind) {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Denied => StatusCode::FORBIDDEN,
            ErrorKind::Stale | ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Unavailable => StatusCode::BAD_GATEWAY,
            ErrorKind::Data => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut body = serde_json::to_vec(&self.0).unwrap_or_default();
        body.push(b'\n');
        let again = self.0.retry_after.map(|seconds| (header::RETRY_AFTER, seconds.to_string()));
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (status, kind, AppendHeaders(again), Body::from(body)).into_response()
    }
}
