//! Errors of array requests.

use gristmill_kernel::KernelError;

/// An error that is found in an array request before anything is read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The shape or the chunks of the array make no sense.
    #[error("the array cannot be used: {why}")]
    Grid {
        /// Description of the fault.
        why: String,
    },
    /// A selection cannot be read.
    #[error("selection '{text}': {why}; write start:stop:step or a number for each axis, as in 2:10:2,:,5")]
    Selection {
        /// The selection, or its part.
        text: String,
        /// Description of the fault.
        why: String,
    },
    /// An index outside its axis.
    #[error("index {index} is out of range for axis {axis} of length {length}")]
    Index {
        /// The index.
        index: i64,
        /// The axis.
        axis: usize,
        /// Length of the axis.
        length: u64,
    },
    /// The attributes of a variable contradict each other.
    #[error("attribute {name}: {why}")]
    Meaning {
        /// The attribute.
        name: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// An expression cannot be read, or its types do not fit.
    #[error("expression, at character {at}: {why}")]
    Expression {
        /// Position of the error, counted in characters from 1.
        at: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A further variable or a constant of the expression does not fit.
    #[error("input {number} of the expression, counted from 0: {why}")]
    Input {
        /// Number of the input; 0 is the variable that is reduced.
        number: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A request cannot be encoded, or its bytes cannot be decoded.
    #[error("this is not a request over an array: {why}")]
    Encoding {
        /// Description of the fault.
        why: String,
    },
    /// A reduction cannot be done on such an array.
    #[error("{op}: {why}")]
    Reduction {
        /// The operation.
        op: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// The saved state of the request could exceed the bound.
    #[error(
        "{op} would keep {bytes} bytes for {cells} numbers, which is more than {most}; \
         reduce over more axes, or ask for a part of the array at a time"
    )]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// Numbers of the answer.
        cells: u64,
        /// Bytes that a state may have.
        bytes: u64,
        /// The bound.
        most: u64,
    },
}

impl From<ArrayError> for KernelError {
    fn from(error: ArrayError) -> KernelError {
        KernelError::BadParam { name: "array".into(), value: String::new(), why: error.to_string() }
    }
}
