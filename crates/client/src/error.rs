//! Errors of operations on files.

use std::io;
use std::path::PathBuf;

use gristmill_array::ArrayError;
use gristmill_format::FormatError;
use gristmill_layout::LayoutError;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_store::StoreError;

/// An error of a file operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Opening or reading a file failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The entry node is not found in Ceph.
    #[error(transparent)]
    Registry(#[from] gristmill_rados::RegistryError),
    /// The address of a node or the certificates cannot be used.
    #[error(transparent)]
    Transport(#[from] gristmill_transport::TransportError),
    /// A file of a scientific format, or a variable of one, cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A request about an array is invalid.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A layout cannot be made.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The store of a target failed.
    #[error("target {}: {source}", target.display())]
    Target {
        /// Directory of the target.
        target: PathBuf,
        /// Error of the store.
        source: StoreError,
    },
    /// The layout file could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A layout file is invalid.
    #[error("{} is not a layout file of this version: {why}; put the file again", path.display())]
    Descriptor {
        /// The layout file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// A copy was stopped.
    #[error("stopped before {} was whole; nothing of it is left, copy it again", path.display())]
    Stopped {
        /// The file that the copy was to make.
        path: PathBuf,
    },
    /// A copy of many files to a folder that has other files was stopped.
    #[error("stopped before all files were in {path}; copied files stay, copy the rest again")]
    StoppedAmong {
        /// The folder.
        path: String,
    },
    /// The request itself cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// Reading or writing a file failed.
    #[error("cannot {verb} {}: {source}", path.display())]
    Io {
        /// `read`, `write` or `remove`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ClientError {
    /// The failure of storage that caused this error, also if the reader of a format met it.
    pub fn storage(&self) -> Option<&RunError> {
        match self {
            ClientError::Run(error) => Some(error),
            ClientError::Format(FormatError::Io { source, .. }) => {
                let source = source.get_ref()?;
                source.downcast_ref().or_else(|| source.downcast_ref::<ClientError>()?.storage())
            }
            _ => None,
        }
    }

    /// Whether the requested file does not exist, or is a directory.
    pub fn is_missing(&self) -> bool {
        matches!(self, ClientError::Run(error) if error.kind() == ErrorKind::NotFound)
    }

    /// Whether the request is at fault (exit code 2) rather than the data or the machine (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            ClientError::Run(error) => error.is_usage(),
            ClientError::Usage(_)
            | ClientError::Layout(_)
            | ClientError::Transport(_)
            | ClientError::Array(_) => true,
            ClientError::Format(error) => error.is_usage(),
            _ => false,
        }
    }
}
