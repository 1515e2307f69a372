//! Errors: of messages that make no sense, and as they travel.

use gristmill_runtime::{ErrorKind, RunError};
use serde::{Deserialize, Serialize};

/// Why a message cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Not of the form that it should have.
    #[error("this is no {what}: {why}")]
    Malformed {
        /// What was expected.
        what: &'static str,
        /// Description of the fault.
        why: String,
    },
    /// Of another version.
    #[error(
        "the {what} is of protocol version {given}, this node speaks {speaks}; use the same version on both sides"
    )]
    Version {
        /// What was given.
        what: &'static str,
        /// Its version.
        given: u32,
        /// Ours.
        speaks: u32,
    },
    /// Beyond a bound.
    #[error("the {what} has {bytes} bytes; the bound is {max}")]
    TooLong {
        /// What was given.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A grant or a pass that this cluster did not give.
    #[error("the grant was not given by this cluster, or was changed; open the file again")]
    Seal,
    /// A grant, or its pass, that has run out.
    #[error("the grant has run out; open the file again")]
    Expired,
    /// The system gives no random numbers.
    #[error("the system gave no random numbers; check that it has a random device")]
    Random,
}

impl WireError {
    /// What sort of failure this is.
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

/// Longest time after which a busy node has somebody try again, in seconds. What is beyond it is taken for it.
pub const MAX_RETRY_AFTER: u32 = 60;

/// An error on its way: `{"kind": "not-found", "message": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Sort of failure, as [`ErrorKind::name`] has it.
    pub kind: String,
    /// What was wrong and what to do.
    pub message: String,
    /// Of a request that was refused as busy before it began: seconds after which to try again. Older nodes do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

impl ErrorBody {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorBody {
        ErrorBody { kind: kind.name().to_owned(), message: message.into(), retry_after: None }
    }

    /// As an error of a request.
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
