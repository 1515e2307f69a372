//! Errors of files, tables and chunks.

use std::io;

/// An error of this crate. Messages do not name the file, because the caller knows its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Bytes cannot be read.
    #[error("cannot read {what}: {source}")]
    Io {
        /// What was read.
        what: String,
        /// Why not.
        source: io::Error,
    },

    /// The format is unknown.
    #[error(
        "this is not a netCDF, HDF5, Zarr or .npy file ({why}); for plain numbers give their type, for text a name that ends in .csv or .tsv"
    )]
    Unrecognised {
        /// Why the format is unknown.
        why: String,
    },

    /// The name is that of delimited text, and the bytes are not text.
    #[error("this is not delimited text, although its name ends in .csv or .tsv: {why}")]
    NotText {
        /// A description of the file, and a remedy.
        why: String,
    },

    /// The file contradicts its format.
    #[error("the {format} file is damaged: {why}")]
    Damaged {
        /// Format of the file.
        format: &'static str,
        /// Description of the fault.
        why: String,
    },

    /// The variable does not exist.
    #[error("there is no variable {variable:?}; there {}", known_variables(.known))]
    NoVariable {
        /// The requested name.
        variable: String,
        /// Names of the existing variables.
        known: Vec<String>,
    },

    /// The variable is well formed but not supported.
    #[error("variable {variable:?} cannot be read here: {what}")]
    Unsupported {
        /// The variable.
        variable: String,
        /// The unsupported feature, and a remedy.
        what: String,
    },

    /// More than a bound of this crate allows.
    #[error("{what}: {found}, and at most {max} can be used here")]
    Limit {
        /// The limited quantity.
        what: String,
        /// The value found.
        found: u64,
        /// The bound.
        max: u64,
    },

    /// Bytes of a table lie past the end of their file.
    #[error(
        "chunk {chunk} should be at bytes {offset}..{end} of {file}, which has {length} bytes: the file is truncated, or the table is wrong"
    )]
    PastEnd {
        /// Number of the chunk.
        chunk: u64,
        /// Offset of its first byte.
        offset: u64,
        /// Offset after its last byte.
        end: u64,
        /// The file.
        file: String,
        /// Bytes of the file.
        length: u64,
    },

    /// A chunk table is invalid.
    #[error("the chunk table is not valid: {why}; make it again from the file")]
    Table {
        /// Description of the fault.
        why: String,
    },

    /// A stored chunk cannot be decoded as its table says.
    #[error("the chunk is damaged: {why}")]
    Chunk {
        /// Description of the fault of the chunk.
        why: String,
    },

    /// A field of a text file is not a number.
    #[error(
        "line {line}: {text:?} in column {column:?} is not {dtype}; empty fields are allowed for floats only"
    )]
    Field {
        /// The line, counted from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// The beginning of the field.
        text: String,
        /// The type of the column.
        dtype: &'static str,
    },
}

/// Most names that the message about a missing variable lists.
const KNOWN_LISTED: usize = 12;

fn known_variables(known: &[String]) -> String {
    let listed: Vec<_> = known.iter().take(KNOWN_LISTED).map(String::as_str).collect();
    match (listed.as_slice(), known.len() - listed.len()) {
        ([], _) => "are none".to_owned(),
        (_, 0) => format!("are {}", listed.join(", ")),
        (_, more) => format!("are {} and {more} more", listed.join(", ")),
    }
}

impl FormatError {
    /// Whether the request is at fault, and not the data or the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            FormatError::NoVariable { .. } | FormatError::Unrecognised { .. } | FormatError::NotText { .. }
        )
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> FormatError {
        FormatError::Io { what: what.into(), source }
    }

    pub(crate) fn damaged(format: &'static str, why: impl Into<String>) -> FormatError {
        FormatError::Damaged { format, why: why.into() }
    }

    pub(crate) fn unsupported(variable: &str, what: impl Into<String>) -> FormatError {
        FormatError::Unsupported { variable: variable.to_owned(), what: what.into() }
    }

    pub(crate) fn table(why: impl Into<String>) -> FormatError {
        FormatError::Table { why: why.into() }
    }

    /// An error about a stored chunk that cannot be decoded as its table says.
    pub fn chunk(why: impl Into<String>) -> FormatError {
        FormatError::Chunk { why: why.into() }
    }

    /// Checks that a value is within its bound.
    ///
    /// # Errors
    /// Returns [`FormatError::Limit`] if `found` is above `max`.
    pub fn limit(what: &str, found: u64, max: u64) -> Result<(), FormatError> {
        if found <= max {
            return Ok(());
        }
        Err(FormatError::Limit { what: what.to_owned(), found, max })
    }
}
