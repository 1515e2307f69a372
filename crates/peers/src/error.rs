//! Errors of the network as errors of requests, and errors of requests as gRPC statuses.

use bytes::Bytes;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::TransportError;
use gristmill_wire::ErrorBody;
use tonic::{Code, Status};

/// The error for a node that could not be reached or did not answer to the end.
pub fn unavailable(node: &str, why: impl std::fmt::Display) -> RunError {
    let message = format!(
        "storage node {node} does not answer ({why}); check that it runs and start it again, then repeat the request"
    );
    RunError::Remote { kind: ErrorKind::Unavailable, message }
}

/// The error for a failure of the transport to a node.
pub(crate) fn transport_error(node: &str, error: &TransportError) -> RunError {
    if matches!(error, TransportError::BadAddress { .. } | TransportError::NotLocal { .. }) {
        return RunError::Remote { kind: ErrorKind::Usage, message: error.to_string() };
    }
    unavailable(node, error)
}

/// The error for a gRPC status of a node. If the node sent its own error body, it is that error.
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

/// The innermost cause, which is the clearest. Transports wrap it in several layers.
fn innermost(status: &Status) -> String {
    let mut cause: &dyn std::error::Error = status;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    if text.is_empty() { status.message().to_owned() } else { text }
}

/// An error as a gRPC status: a code that other clients understand, the message, and the whole error as JSON in the details.
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
