//! Errors of requests.

use gristmill_format::FormatError;

/// The reason why a request has no answer. Each one is a fault of the request, or of the bytes that it names.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The body is not JSON of a request.
    #[error("the request is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// Fields of the request do not fit together.
    #[error("the request is not valid: {0}")]
    Invalid(String),
    /// There is no such operation.
    #[error("there is no operation '{0}'; there are count, max, min, select and sum")]
    Operation(String),
    /// The stored bytes are not those of the chunk.
    #[error("the bytes of the chunk cannot be decoded: {0}")]
    Bytes(#[from] FormatError),
}

impl RequestError {
    pub(crate) fn invalid(why: impl Into<String>) -> RequestError {
        RequestError::Invalid(why.into())
    }
}
