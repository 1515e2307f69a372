//! Questions that got no answer, and whether they may be asked once more.

use std::error::Error;

use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::TransportError;
use gristmill_wire::ErrorBody;
use tonic::Status;

use crate::error::from_status;

/// The failure of a question to a node.
#[derive(Debug)]
pub struct Unanswered {
    /// What is told.
    pub error: RunError,
    /// The node may have done what it was asked, although its answer is lost.
    pub begun: bool,
    /// The node was connected and said nothing for as long as somebody waits: it would only do so again.
    pub silent: bool,
}

impl Unanswered {
    /// Whether the same question may have an answer soon: the node cannot be reached, broke off, or says itself that it is
    /// not ready. `repeatable`: to do it twice is the same as once.
    pub fn may_be_asked_again(&self, repeatable: bool) -> bool {
        self.error.kind() == ErrorKind::Unavailable && !self.silent && (repeatable || !self.begun)
    }

    /// What a node answered, or what became of the connection to it.
    pub(crate) fn of_status(node: &str, status: &Status) -> Unanswered {
        // Its own words: it refused, and did nothing.
        let refused = serde_json::from_slice::<ErrorBody>(status.details()).is_ok();
        let failed = connecting(status);
        let silent = matches!(failed, Some(TransportError::Timeout { .. } | TransportError::Tls { .. }));
        Unanswered { error: from_status(node, status), begun: !refused && failed.is_none(), silent }
    }
}

impl From<RunError> for Unanswered {
    fn from(error: RunError) -> Unanswered {
        Unanswered { error, begun: false, silent: false }
    }
}

/// Why no connection came about, if that is what failed.
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
