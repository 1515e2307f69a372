//! Why a message cannot be decoded.

use arrow_schema::ArrowError;

/// Why a [`FlightData`](crate::FlightData) cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError {
    /// The header is not a message of Arrow's IPC format.
    #[error("a message has an invalid header: {why}")]
    Header {
        /// The reason why it is invalid.
        why: String,
    },
    /// A record batch came before the schema.
    #[error("a record batch came before its schema")]
    NoSchema,
    /// A stream has one schema.
    #[error("a second schema came")]
    SecondSchema,
    /// A message of a kind that is not supported, such as a dictionary.
    #[error("a message of the kind {kind} is not supported")]
    Unsupported {
        /// Name of the kind in Arrow's IPC format.
        kind: String,
    },
    /// A schema or a record batch that Arrow refuses.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
