//! Errors of messages and folds.

use gristmill_kernel::KernelError;

/// Why a message or a fold over an object is refused.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The message has another form. Both sides must be of the same version of Gristmill.
    #[error(
        "the message has form {got} and this side understands form {want}; install the same version of Gristmill on both sides"
    )]
    OtherForm {
        /// The form of the message.
        got: u64,
        /// The form that this side knows.
        want: u64,
    },
    /// The message cannot be read.
    #[error("the message cannot be read: {0}")]
    Malformed(String),
    /// The kernel cannot be folded over a part of an object.
    #[error("{0}")]
    NotFoldable(String),
    /// A message or an answer is too long.
    #[error("{what} has {bytes} bytes, more than {max}; fold on the storage nodes (--place storage)")]
    TooLong {
        /// The message.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The kernel cannot be bound, or breaks its contract.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
