//! Errors of messages, and the form of errors in messages.

use gristmill_runtime::{ErrorKind, RunError};
use serde::{Deserialize, Serialize};

/// The reason why a message cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The message has the wrong form.
    #[error("this is not a valid {what}: {why}")]
    Malformed {
        /// The expected kind of message.
        what: &'static str,
        /// Description of the fault.
        why: String,
    },
    /// The message has another version of the protocol.
    #[error(
        "the {what} is of protocol version {version}, this node speaks {supported}; use the same version on both sides"
    )]
    Version {
        /// The kind of message.
        what: &'static str,
        /// The version of the message.
        version: u32,
        /// The version of this program.
        supported: u32,
    },
    /// The message is longer than its bound.
    #[error("the {what} has {bytes} bytes; the bound is {max}")]
    TooLong {
        /// The kind of message.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// This cluster did not give the grant or the pass.
    #[error("the grant was not given by this cluster, or was changed; open the file again")]
    Seal,
    /// The grant, or its pass, has expired.
    #[error("the grant has expired; open the file again")]
    Expired,
    /// The system gives no random numbers.
    #[error("the system gave no random numbers; check that it has a random device")]
    Random,
}

impl WireError {
    /// The kind of the failure.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            WireError::Malformed { .. } | WireError::Version { .. } | WireError::TooLong { .. } => {
                ErrorKind::Usage
            }
            WireError::Seal => ErrorKind::Denied,
            WireError::Expired => ErrorKind::Stale,
            WireError::Random => ErrorKind::Failed,
        }
    }
}

/// Longest time after which a busy node lets a client try again, in seconds. A longer time is reduced to this.
pub const MAX_RETRY_AFTER: u32 = 60;

/// An error in a message: `{"kind": "not-found", "message": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Kind of the failure, in the words of [`ErrorKind::name`].
    pub kind: String,
    /// What was wrong and what to do.
    pub message: String,
    /// Seconds after which to try again, if the request was refused as busy before it began. Older nodes do not send
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

impl ErrorBody {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorBody {
        ErrorBody { kind: kind.name().to_owned(), message: message.into(), retry_after: None }
    }

    /// Converts it to an error of a request.
    pub fn into_error(self) -> RunError {
        match (ErrorKind::named(&self.kind), self.retry_after) {
            (ErrorKind::Busy, Some(seconds)) => {
                RunError::Busy { message: self.message, retry_after: seconds.clamp(1, MAX_RETRY_AFTER) }
            }
            (kind, _) => RunError::Remote { kind, message: self.message },
        }
    }
}

impl From<&RunError> for ErrorBody {
    fn from(error: &RunError) -> ErrorBody {
        ErrorBody { retry_after: error.retry_after(), ..ErrorBody::new(error.kind(), error.to_string()) }
    }
}

impl From<&WireError> for ErrorBody {
    fn from(error: &WireError) -> ErrorBody {
        ErrorBody::new(error.kind(), error.to_string())
    }
}

impl From<WireError> for RunError {
    fn from(error: WireError) -> RunError {
        RunError::Remote { kind: error.kind(), message: error.to_string() }
    }
}
