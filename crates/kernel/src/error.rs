//! Errors of kernels. Each message tells the user what to do next.

use crate::DType;

/// An error in the parameters, the input or a saved state of a kernel, or in the kernel itself.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No kernel has this name.
    #[error("there is no kernel '{name}'; {hint}")]
    UnknownKernel {
        /// The name that was asked for.
        name: String,
        /// The kernel that was probably meant, or how to list all kernels.
        hint: String,
    },
    /// No element type has this name.
    #[error("'{given}' is not an element type; use one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64")]
    UnknownType {
        /// The text that was given.
        given: String,
    },
    /// The kernel has no parameter of this name.
    #[error("kernel '{kernel}' has no parameter '{name}'; {known}")]
    UnknownParam {
        /// Kernel asked for.
        kernel: &'static str,
        /// Parameter given.
        name: String,
        /// The parameters that the kernel has.
        known: String,
    },
    /// A parameter was given twice.
    #[error("parameter '{name}' is given twice; give it once")]
    RepeatedParam {
        /// Parameter given.
        name: String,
    },
    /// A required parameter is missing.
    #[error("kernel '{kernel}' needs the parameter '{name}' ({help}), for example --param {name}={example}")]
    MissingParam {
        /// Kernel asked for.
        kernel: &'static str,
        /// Parameter missing.
        name: &'static str,
        /// The meaning of the parameter.
        help: &'static str,
        /// A valid value.
        example: &'static str,
    },
    /// A parameter's value cannot be used.
    #[error("parameter '{name}' = '{value}': {why}")]
    BadParam {
        /// Parameter given.
        name: String,
        /// Value given.
        value: String,
        /// A clause that says what is wrong with the value, and which values are valid.
        why: String,
    },
    /// The kernel does not accept the input.
    #[error("kernel '{kernel}' {why}")]
    WrongInput {
        /// Kernel asked for.
        kernel: &'static str,
        /// The input that it accepts.
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
    /// A record has no bytes.
    #[error("a record must have at least 1 byte")]
    EmptyRecord,
    /// The kernel has no answer for an empty selection.
    #[error("kernel '{kernel}' has no answer for an empty selection; {why}")]
    Empty {
        /// Kernel asked for.
        kernel: &'static str,
        /// Why there is no answer.
        why: &'static str,
    },
    /// An element is NaN, and the request said that this is an error.
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
        /// A clause that says what is wrong, and what to do.
        why: String,
    },
    /// A line is longer than the bound.
    #[error(
        "the line at byte {offset} is longer than the bound of {max} bytes; \
         raise --max-record, or give --record if the file has fixed-size records"
    )]
    LineTooLong {
        /// Byte offset of the line, or of the part of it that was read.
        offset: u64,
        /// The bound, in bytes.
        max: u64,
    },
    /// A saved state was not written by this kernel.
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
        /// The kernel that broke it.
        kernel: &'static str,
        /// The rule, and how the kernel broke it.
        why: String,
    },
}

impl KernelError {
    /// Whether the request itself is wrong (a usage error, exit code 2), and not the data or a state.
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
