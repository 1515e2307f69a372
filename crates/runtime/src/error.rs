//! The errors of a request.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use gristmill_backend::BackendError;
use gristmill_format::FormatError;
use gristmill_kernel::KernelError;
use gristmill_layout::LayoutError;
use gristmill_store::StoreError;

/// An error of a request. Its message says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The kernel refused its parameters, its input or the data.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A layout or record rule cannot be used.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A file of a scientific format, or its chunk table, cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A chunk cannot be decoded.
    #[error("chunk {number} of the array: {source}")]
    Chunk {
        /// Its number, in C order in the grid of chunks.
        number: u64,
        /// Description of the fault.
        source: FormatError,
    },
    /// Variables cannot be read together.
    #[error("the variables cannot be read together: {why}")]
    SideBySide {
        /// Description of the fault.
        why: String,
    },
    /// The store that holds a target's part failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage of others that holds a file failed.
    #[error(transparent)]
    Backend(BackendError),
    /// A file could not be opened.
    #[error("cannot open {}: {why}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// A clause that says what is wrong, and what to do.
        why: String,
        /// Whether the request is at fault rather than the machine.
        usage: bool,
    },
    /// Reading failed.
    #[error("cannot read {name} at byte {offset}: {source}; check the disk and run again")]
    Read {
        /// The file or object.
        name: String,
        /// Offset of the read, in bytes.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A file became shorter while it was read.
    #[error(
        "{name} ended at or before byte {offset} although it had {length} bytes when it was opened; it was cut while being read: run again once it is no longer written"
    )]
    Truncated {
        /// The file or object.
        name: String,
        /// Offset at which bytes were missing.
        offset: u64,
        /// Its length when it was opened.
        length: u64,
    },
    /// A file changed while it was read. The answer would mix two states of it.
    #[error(
        "{name} was changed while it was read, so the answer would mix two states of it; run again once it is no longer written"
    )]
    Changed {
        /// The file.
        name: String,
    },
    /// The selection does not lie within the file.
    #[error("the range of bytes {} to {} does not lie within {name}, which has {length} bytes; {remedy}", range.start, range.end)]
    OutOfFile {
        /// The file.
        name: String,
        /// Its length.
        length: u64,
        /// The bytes that the request selects.
        range: Range<u64>,
        /// The clause of the message that says what to do.
        remedy: &'static str,
    },
    /// The bytes are not a whole number of records.
    #[error(
        "the {bytes} bytes of records (behind {skip} skipped) are no multiple of the record size {record}: {left} bytes are left over; \
         give --skip N for a header, --range START:LENGTH to leave out the end, or another --type or --record"
    )]
    Ragged {
        /// Bytes of the file behind the header.
        bytes: u64,
        /// Bytes that the request skips.
        skip: u64,
        /// Bytes of a record.
        record: u64,
        /// Bytes behind the last whole record.
        left: u64,
    },
    /// A record with its halo is larger than a block may be.
    #[error("a record has {bytes} bytes with its halo, and the limit is {max} bytes; use smaller records")]
    RecordTooLong {
        /// Bytes of the record and its halo.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// Two partials cover the same records, which would be counted twice.
    #[error("records {} to {} are in two partial results; leave one of them out", at.start, at.end)]
    Overlap {
        /// Records that are covered twice.
        at: Range<u64>,
    },
    /// Partials of different passes cannot be joined.
    #[error("a partial result of pass {got} cannot join one of pass {want}; start the request again")]
    Round {
        /// Pass of this side.
        want: u32,
        /// Pass of the other.
        got: u32,
    },
    /// An encoded partial or checkpoint is damaged or does not fit.
    #[error("a saved partial result cannot be used: {why}; start the request again without it")]
    BadPartial {
        /// Description of the fault.
        why: String,
    },
    /// A checkpoint belongs to another request.
    #[error(
        "the checkpoint is of another request, of '{kernel}'; repeat that request, or use another checkpoint"
    )]
    OtherRequest {
        /// The kernel of the request of the checkpoint.
        kernel: String,
    },
    /// A file was changed after the checkpoint was made.
    #[error("{name} was changed after the checkpoint was made; remove the checkpoint and start over")]
    ChangedSince {
        /// The file.
        name: String,
    },
    /// A partial has too many pieces that cannot be merged.
    #[error("a partial result has more than {max} pieces; use a larger stripe unit")]
    TooManyPieces {
        /// The bound.
        max: usize,
    },
    /// Some records were not folded.
    #[error("the partial results leave out records {} to {}; this is a fault of Gristmill, please report it", gap.start, gap.end)]
    Incomplete {
        /// Records that were not folded.
        gap: Range<u64>,
    },
    /// A kernel asked for more passes than a request may have.
    #[error("kernel '{kernel}' asked for more than {max} passes; its parameters do not let it end")]
    TooManyRounds {
        /// The kernel.
        kernel: &'static str,
        /// The bound.
        max: u32,
    },
    /// The rows could not be written.
    #[error("the rows cannot be written: {0}")]
    Rows(#[source] io::Error),
    /// A second input is missing, is not needed, or does not fit.
    #[error("kernel '{kernel}': {why}")]
    SecondInput {
        /// The kernel.
        kernel: &'static str,
        /// Description of the fault.
        why: String,
    },
    /// The storage of a file was to fold and cannot.
    #[error("the storage daemons cannot fold this: {why}; use --place storage or auto")]
    NotInStorage {
        /// The reason.
        why: String,
    },
    /// The bytes of this kernel cannot be kept where they are made.
    #[error(
        "the output of '{kernel}' cannot be kept where it is made: only bytes of a kernel whose partial results are \
         merged in any order can; write the output to a file"
    )]
    CannotKeep {
        /// The kernel.
        kernel: &'static str,
    },
    /// A storage node failed, or the way to it. The message is a whole sentence and names the node where that matters.
    #[error("{message}")]
    Remote {
        /// The kind of the failure.
        kind: ErrorKind,
        /// The whole message: what is wrong and what to do.
        message: String,
    },
    /// A node refused the request because it is busy. No part of the request had begun, so the request can be sent again. The
    /// message is a whole sentence.
    #[error("{message}")]
    Busy {
        /// The whole message: what was refused, and by which node.
        message: String,
        /// Seconds until the next try.
        retry_after: u32,
    },
    /// A thread could not be started.
    #[error("cannot start a lane: {0}; lower --lanes or raise the limit on threads")]
    Lane(#[source] io::Error),
    /// A lane ended without an answer.
    #[error("a lane panicked; this is a fault of the kernel or of Gristmill, please report it")]
    Panicked,
    /// Gristmill itself has a defect.
    #[error("internal error: {what}; this is a defect of Gristmill, please report it")]
    Internal {
        /// A clause that says what happened.
        what: &'static str,
    },
    /// The number of lanes is out of range.
    #[error("lanes must be 1 to {max}, not {lanes}")]
    Lanes {
        /// The number that was asked for.
        lanes: usize,
        /// The bound.
        max: usize,
    },
}

/// Kinds of failure that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong, whatever the data.
    Usage,
    /// There is no such file.
    NotFound,
    /// The principal may not do this.
    Denied,
    /// The file changed or was replaced meanwhile. The request can be made again.
    Stale,
    /// Something has this name already, or another process uses it.
    Conflict,
    /// There is too much to do at once. The request can be made again later.
    Busy,
    /// A node does not answer.
    Unavailable,
    /// The data does not allow an answer.
    Data,
    /// A disk is full.
    NoSpace,
    /// Any other failure, damage included.
    Failed,
}

impl ErrorKind {
    /// All kinds, with their names on the wire.
    pub const NAMES: [(ErrorKind, &'static str); 10] = [
        (ErrorKind::Usage, "usage"),
        (ErrorKind::NotFound, "not-found"),
        (ErrorKind::Denied, "denied"),
        (ErrorKind::Stale, "stale"),
        (ErrorKind::Conflict, "conflict"),
        (ErrorKind::Busy, "busy"),
        (ErrorKind::Unavailable, "unavailable"),
        (ErrorKind::Data, "data"),
        (ErrorKind::NoSpace, "no-space"),
        (ErrorKind::Failed, "failed"),
    ];

    /// The name of the kind on the wire.
    pub fn name(self) -> &'static str {
        ErrorKind::NAMES.iter().find(|(kind, _)| *kind == self).map_or("failed", |(_, name)| name)
    }

    /// The kind with this name; [`Failed`](ErrorKind::Failed) if this version does not know the name.
    pub fn named(name: &str) -> ErrorKind {
        ErrorKind::NAMES.iter().find(|(_, known)| *known == name).map_or(ErrorKind::Failed, |(kind, _)| *kind)
    }

    /// The kind of a backend's failure.
    pub fn of_backend(error: &BackendError) -> ErrorKind {
        match error {
            BackendError::NotFound { .. } => ErrorKind::NotFound,
            BackendError::WrongKind { .. }
            | BackendError::InvalidKey { .. }
            | BackendError::TooMany { .. }
            | BackendError::TooDeep { .. } => ErrorKind::Usage,
            BackendError::Denied { .. } => ErrorKind::Denied,
            BackendError::Changed { .. } | BackendError::Short { .. } => ErrorKind::Stale,
            BackendError::Unavailable { .. } => ErrorKind::Unavailable,
            BackendError::Io { .. } | BackendError::Internal { .. } => ErrorKind::Failed,
        }
    }

    /// The kind of a store's failure.
    pub fn of_store(error: &StoreError) -> ErrorKind {
        match error {
            StoreError::NotFound { .. } => ErrorKind::NotFound,
            StoreError::Stale { .. } | StoreError::Unflushed { .. } => ErrorKind::Stale,
            StoreError::Exists { .. } | StoreError::Locked { .. } => ErrorKind::Conflict,
            StoreError::NoSpace { .. } => ErrorKind::NoSpace,
            StoreError::Permission { .. } => ErrorKind::Denied,
            StoreError::OutOfRange { .. }
            | StoreError::InvalidId(_)
            | StoreError::InvalidAttribute { .. }
            | StoreError::Invalid { .. }
            | StoreError::NoStore
            | StoreError::TooLarge { .. } => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }
}

impl From<BackendError> for RunError {
    fn from(error: BackendError) -> RunError {
        match error {
            BackendError::Changed { name } => RunError::Changed { name },
            BackendError::Internal { what } => RunError::Internal { what },
            error => RunError::Backend(error),
        }
    }
}

impl RunError {
    /// The error of a request that was stopped before its answer.
    pub fn given_up() -> RunError {
        RunError::Remote {
            kind: ErrorKind::Failed,
            message: "the request was given up before its answer".into(),
        }
    }

    /// The kind of this failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RunError::Remote { kind, .. } => *kind,
            RunError::Busy { .. } => ErrorKind::Busy,
            RunError::Store(error) => ErrorKind::of_store(error),
            RunError::Backend(error) => ErrorKind::of_backend(error),
            RunError::Changed { .. } | RunError::ChangedSince { .. } | RunError::Truncated { .. } => {
                ErrorKind::Stale
            }
            RunError::Open { usage: true, .. } => ErrorKind::NotFound,
            RunError::Kernel(error) if !error.is_usage() => match error {
                KernelError::Contract { .. } | KernelError::BadState { .. } => ErrorKind::Failed,
                _ => ErrorKind::Data,
            },
            other if other.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    /// Seconds until the next try, if a busy node gave them.
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            RunError::Busy { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether the request is at fault (exit code 2), and not the data or the machine (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            RunError::Kernel(error) => error.is_usage(),
            RunError::Open { usage, .. } => *usage,
            RunError::Remote { kind, .. } => matches!(kind, ErrorKind::Usage | ErrorKind::NotFound),
            RunError::Backend(error) => {
                matches!(ErrorKind::of_backend(error), ErrorKind::Usage | ErrorKind::NotFound)
            }
            RunError::Layout(_)
            | RunError::OutOfFile { .. }
            | RunError::Ragged { .. }
            | RunError::RecordTooLong { .. }
            | RunError::SecondInput { .. }
            | RunError::SideBySide { .. }
            | RunError::CannotKeep { .. }
            | RunError::NotInStorage { .. }
            | RunError::OtherRequest { .. }
            | RunError::Lanes { .. } => true,
            _ => false,
        }
    }
}
