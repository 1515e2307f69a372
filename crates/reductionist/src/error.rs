//! Errors of requests.

use gristmill_format::FormatError;

/// The reason why a request has no answer. Each one is a fault of the request, or of the bytes that it names.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The body is not JSON of a request. The text begins with the field that is wrong.
    #[error("the request is not valid: {0}")]
    Json(String),
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

/// The path of an error that is not in a field.
const NO_FIELD: &str = ".";

impl RequestError {
    pub(crate) fn field(error: serde_path_to_error::Error<serde_json::Error>) -> RequestError {
        let path = error.path().to_string();
        let error = error.into_inner();
        RequestError::Json(if path == NO_FIELD { error.to_string() } else { format!("{path}: {error}") })
    }

    pub(crate) fn invalid(why: impl Into<String>) -> RequestError {
        RequestError::Invalid(why.into())
    }
}
