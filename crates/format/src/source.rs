//! Sources of the bytes of one file.

use std::io;
use std::sync::Arc;

use gristmill_backend::{BackendError, Object};

use crate::FormatError;

/// The bytes of one file, which can be read at any offset. The length does not change while the file is open.
pub trait Source: Send + Sync {
    /// Length of the file in bytes.
    fn len(&self) -> u64;

    /// Whether the file is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes at `offset`.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the bytes cannot be read or are past the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError>;
}

/// Reads `bytes` bytes at `offset`. It first checks that the file has them, so that memory is allocated only for bytes
/// that exist.
///
/// # Errors
/// Returns [`FormatError::Limit`] for more than `max` bytes, and [`FormatError::Io`] if they cannot be read.
pub(crate) fn read(source: &dyn Source, offset: u64, bytes: u64, max: u64) -> Result<Vec<u8>, FormatError> {
    FormatError::limit("bytes to read at once", bytes, max)?;
    check_range(offset, bytes, source.len())?;
    let bytes = usize::try_from(bytes).map_err(|_| past_end(offset, bytes, source.len()))?;
    let mut out = vec![0; bytes];
    source.read_at(offset, &mut out)?;
    Ok(out)
}

fn check_range(offset: u64, bytes: u64, len: u64) -> Result<(), FormatError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= len => Ok(()),
        _ => Err(past_end(offset, bytes, len)),
    }
}

fn past_end(offset: u64, bytes: u64, len: u64) -> FormatError {
    FormatError::io(
        format!("{bytes} bytes at {offset} of a file of {len}"),
        std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file ends before"),
    )
}

/// An opened object of a backend.
pub struct ObjectSource(Arc<dyn Object>);

impl ObjectSource {
    /// The bytes of an object.
    pub fn new(object: Arc<dyn Object>) -> ObjectSource {
        ObjectSource(object)
    }
}

impl Source for ObjectSource {
    fn len(&self) -> u64 {
        self.0.found().length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError> {
        let what = format!("{} bytes at {offset}", into.len());
        self.0.read_at(offset, into).map_err(|error| FormatError::io(what, io_error(error)))
    }
}

/// The error of a backend as one of the system, of the same kind.
pub(crate) fn io_error(error: BackendError) -> io::Error {
    match error {
        BackendError::Io { source, .. } => source,
        BackendError::NotFound { .. } => io::ErrorKind::NotFound.into(),
        BackendError::Denied { .. } => io::Error::new(io::ErrorKind::PermissionDenied, error),
        BackendError::Short { .. } => io::Error::new(io::ErrorKind::UnexpectedEof, error),
        BackendError::WrongKind { .. } | BackendError::InvalidKey { .. } | BackendError::TooMany { .. } => {
            io::Error::new(io::ErrorKind::InvalidInput, error)
        }
        error => io::Error::other(error),
    }
}

/// Bytes in memory.
impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), FormatError> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(into.len())?));
        match range.and_then(|range| self.get(range)) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return Err(past_end(offset, into.len() as u64, self.as_slice().len() as u64)),
        }
        Ok(())
    }
}
