//! What can go wrong with a kernel, said so that the user knows what to do next.

use crate::DType;

/// An error of a kernel: its parameters, its input, or a state it was given.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No kernel has this name.
    #[error("there is no kernel '{name}'; {hint}")]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The nearest name, or where to see them all.
        hint: String,
    },
    /// No element type has this name.
    #[error("'{given}' is not an element type; use one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64")]
    UnknownType {
        /// The text given.
        given: String,
    },
    /// The kernel has no parameter of this name.
    #[error("kernel '{kernel}' has no parameter '{name}'; {known}")]
    UnknownParam {
        /// Kernel asked for.
        kernel: &'static str,
        /// Parameter given.
        name: String,
        /// The parameters that it has.
        known: String,
    },
    /// A parameter was given twice.
    #[error("parameter '{name}' is given twice; give it once")]
    RepeatedParam {
        /// Parameter given.
        name: String,
    },
    /// A parameter that must be given was not.
    #[error("kernel '{kernel}' needs the parameter '{name}' ({help}), for example --param {name}={example}")]
    MissingParam {
        /// Kernel asked for.
        kernel: &'static str,
        /// Parameter missing.
        name: &'static str,
        /// What it is.
        help: &'static str,
        /// A value that would be right.
        example: &'static str,
    },
    /// A parameter's value cannot be used.
    #[error("parameter '{name}' = '{value}': {why}")]
    BadParam {
        /// Parameter given.
        name: String,
        /// Value given.
        value: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// The kernel cannot work on such an input.
    #[error("kernel '{kernel}' {why}")]
    WrongInput {
        /// Kernel asked for.
        kernel: &'static str,
        /// What it takes instead.
        why: String,
    },
    /// The record size is not a whole number of elements.
    #[error(
        "a record of {record} bytes is not a whole number of {dtype} elements; \
         give a record size that is a multiple of {}", dtype.size()
    )]
    RecordNotElements {
        /// Bytes of a record.
        record: u64,
        /// Element type.
        dtype: DType,
    },
    /// A record of no bytes.
    #[error("a record must have at least 1 byte")]
    EmptyRecord,
    /// The kernel has no answer for no records.
    #[error("kernel '{kernel}' has no answer for an empty selection; {why}")]
    Empty {
        /// Kernel asked for.
        kernel: &'static str,
        /// Why there is nothing to answer.
        why: &'static str,
    },
    /// A NaN was met and the request said that this is an error.
    #[error("element {index} is NaN and nan=error was asked for; use nan=skip or nan=propagate")]
    NotANumber {
        /// Index of a NaN: an element of the array, counted from 0.
        index: u64,
    },
    /// The values do not allow an answer.
    #[error("kernel '{kernel}': {why}")]
    Domain {
        /// Kernel asked for.
        kernel: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A line is longer than the bound.
    #[error(
        "the line at byte {offset} is longer than the bound of {max} bytes; \
         raise --max-record, or give --record if the file has fixed-size records"
    )]
    LineTooLong {
        /// Byte offset of the line, or of the part of it that was seen.
        offset: u64,
        /// The bound, in bytes.
        max: u64,
    },
    /// A saved state is not one this kernel wrote.
    #[error("the saved state of kernel '{kernel}' cannot be used: {why}")]
    BadState {
        /// Kernel asked for.
        kernel: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A kernel broke the contract.
    #[error("kernel '{kernel}' broke its contract: {why}")]
    Contract {
        /// Kernel at fault.
        kernel: &'static str,
        /// Which rule, and how.
        why: String,
    },
}

impl KernelError {
    /// Whether the request itself is at fault (a usage error, exit code 2), rather than the data or a state.
    pub fn is_usage(&self) -> bool {
        use KernelError::*;
        matches!(
            self,
            UnknownKernel { .. }
                | UnknownType { .. }
                | UnknownParam { .. }
                | RepeatedParam { .. }
                | MissingParam { .. }
                | BadParam { .. }
                | WrongInput { .. }
                | RecordNotElements { .. }
                | EmptyRecord
        )
    }
}
