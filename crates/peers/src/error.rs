//! Errors of the network as errors of requests, and on their way as gRPC statuses.

use bytes::Bytes;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::TransportError;
use gristmill_wire::ErrorBody;
use tonic::{Code, Status};

/// The failure of a node that could not be asked or did not answer to the end.
pub fn unavailable(node: &str, why: impl std::fmt::Display) -> RunError {
    let message = format!(
        "storage node {node} does not answer ({why}); check that it runs and start it again, then repeat the request"
    );
    RunError::Remote { kind: ErrorKind::Unavailable, message }
}

/// A transport's error about a node.
pub(crate) fn transport(node: &str, error: &TransportError) -> RunError {
    if matches!(error, TransportError::BadAddress { .. } | TransportError::NotLocal { .. }) {
        return RunError::Remote { kind: ErrorKind::Usage, message: error.to_string() };
    }
    unavailable(node, error)
}

/// What a node answered: its own words where they came through.
pub fn from_status(node: &str, status: &Status) -> RunError {
    if let Ok(body) = serde_json::from_slice::<ErrorBody>(status.details()) {
        return body.into_error();
    }
    let kind = match status.code() {
        Code::InvalidArgument | Code::Unimplemented => ErrorKind::Usage,
        Code::NotFound => ErrorKind::NotFound,
        Code::PermissionDenied | Code::Unauthenticated => ErrorKind::Denied,
        Code::ResourceExhausted => ErrorKind::Busy,
        _ => return unavailable(node, innermost(status)),
    };
    RunError::Remote { kind, message: format!("storage node {node}: {}", status.message()) }
}

/// The cause that says most: transports wrap theirs in several layers.
fn innermost(status: &Status) -> String {
    let mut cause: &dyn std::error::Error = status;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    if text.is_empty() { status.message().to_owned() } else { text }
}

/// An error as a status: a code that foreign clients understand, the message, and both as JSON in the details.
pub fn to_status(error: &ErrorBody) -> Status {
    let code = match ErrorKind::named(&error.kind) {
        ErrorKind::Usage => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::Stale => Code::Aborted,
        ErrorKind::Conflict => Code::AlreadyExists,
        ErrorKind::Busy | ErrorKind::NoSpace => Code::ResourceExhausted,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::Data => Code::FailedPrecondition,
        ErrorKind::Failed => Code::Internal,
    };
    let details = serde_json::to_vec(error).map(Bytes::from).unwrap_or_default();
    Status::with_details(code, error.message.clone(), details)
}
