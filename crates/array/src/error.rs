//! What can be wrong with an array request.

use gristmill_kernel::KernelError;

/// A request over an array that cannot be answered, said before anything is read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The shape or the chunks of the array make no sense.
    #[error("the array cannot be used: {why}")]
    Grid {
        /// What is wrong.
        why: String,
    },
    /// A selection cannot be read.
    #[error("selection '{text}': {why}; write start:stop:step or a number for each axis, as in 2:10:2,:,5")]
    Selection {
        /// The selection, or its part.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// An index outside its axis.
    #[error("index {index} is out of range for axis {axis} of length {length}")]
    Index {
        /// The index.
        index: i64,
        /// The axis.
        axis: usize,
        /// Its length.
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
        /// Where, counted in characters from 1.
        at: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A variable or a constant beside the one that is reduced does not fit.
    #[error("input {number} of the expression, counted from 0: {why}")]
    Input {
        /// Which one; 0 is the variable that is reduced.
        number: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A request that came as bytes cannot be read.
    #[error("this is no request over an array: {why}")]
    Spoken {
        /// What is wrong.
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
    /// The answer, or what has to be kept for it, is beyond the bound.
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
