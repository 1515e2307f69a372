//! Requests that got no answer, and whether they may be repeated.

use std::error::Error;

use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::TransportError;
use gristmill_wire::ErrorBody;
use tonic::Status;

use crate::error::from_status;

/// The failure of a request to a node.
#[derive(Debug)]
pub struct FailedRequest {
    /// The error for the user.
    pub error: RunError,
    /// The node may have done what it was asked, although its answer is lost.
    pub begun: bool,
    /// The node was connected and sent nothing for the longest time that a request waits. It would be silent again.
    pub silent: bool,
}

impl FailedRequest {
    /// Whether a repetition may get an answer soon: the node cannot be reached, broke off, or reports that it is not
    /// ready. `repeatable` says that a second execution has no further effect.
    pub fn may_be_repeated(&self, repeatable: bool) -> bool {
        self.error.kind() == ErrorKind::Unavailable && !self.silent && (repeatable || !self.begun)
    }

    /// The failure for a status: the node refused, or its connection failed.
    pub(crate) fn from_status(node: &str, status: &Status) -> FailedRequest {
        // With the node's own error body the node refused and did nothing.
        let refused = serde_json::from_slice::<ErrorBody>(status.details()).is_ok();
        let failed = connecting(status);
        let silent = matches!(failed, Some(TransportError::Timeout { .. } | TransportError::Tls { .. }));
        FailedRequest { error: from_status(node, status), begun: !refused && failed.is_none(), silent }
    }
}

impl From<RunError> for FailedRequest {
    fn from(error: RunError) -> FailedRequest {
        FailedRequest { error, begun: false, silent: false }
    }
}

/// The reason why no connection was made, if that failed.
fn connecting(status: &Status) -> Option<&TransportError> {
    let mut cause: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = cause {
        if let Some(
            found @ (TransportError::Refused { .. }
            | TransportError::Timeout { .. }
            | TransportError::Tls { .. }),
        ) = error.downcast_ref::<TransportError>()
        {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
