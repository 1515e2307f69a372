//! What can be wrong with a file, a table or a chunk, and what to do about it.

use std::io;

/// Every error of this crate. Messages do not name the file: whoever opened it knows its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes cannot be had.
    #[error("cannot read {what}: {source}")]
    Io {
        /// What was read.
        what: String,
        /// Why not.
        source: io::Error,
    },

    /// No format that is known here.
    #[error(
        "this is no netCDF, HDF5, Zarr or .npy file ({why}); for plain numbers give their type, for text a name that ends in .csv or .tsv"
    )]
    Unrecognised {
        /// What was looked at.
        why: String,
    },

    /// The file says something that cannot be.
    #[error("the {format} file is damaged: {why}")]
    Damaged {
        /// Its format.
        format: &'static str,
        /// What cannot be.
        why: String,
    },

    /// A variable that is not there.
    #[error("there is no variable {variable:?}; there {}", known_variables(.known))]
    NoVariable {
        /// The name that was asked for.
        variable: String,
        /// Those that are there.
        known: Vec<String>,
    },

    /// Something that is well formed, and not supported.
    #[error("variable {variable:?} cannot be read here: {what}")]
    Unsupported {
        /// The variable.
        variable: String,
        /// What about it, and what would help.
        what: String,
    },

    /// More than a bound of this crate allows.
    #[error("{what}: {found}, and at most {max} can be used here")]
    Limit {
        /// What there is too much of.
        what: String,
        /// How much there is.
        found: u64,
        /// How much there may be.
        max: u64,
    },

    /// Bytes of a table lie past the end of their file.
    #[error(
        "chunk {chunk} is said to lie at bytes {offset}..{end} of {file}, which has {length}: the file is truncated, or its table lies"
    )]
    PastEnd {
        /// Number of the chunk.
        chunk: u64,
        /// Its first byte.
        offset: u64,
        /// The byte after its last.
        end: u64,
        /// The file.
        file: String,
        /// Bytes of the file.
        length: u64,
    },

    /// A chunk table that cannot be.
    #[error("the chunk table is not valid: {why}; make it again from the file")]
    Table {
        /// What cannot be.
        why: String,
    },

    /// A stored chunk that does not decode to what its table says.
    #[error("the chunk is damaged: {why}")]
    Chunk {
        /// What is wrong with it.
        why: String,
    },

    /// A field of a text file that is no number.
    #[error(
        "line {line}: {text:?} in column {column:?} is no {dtype}; empty fields are allowed for floats only"
    )]
    Field {
        /// The line, counted from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// The field, at most its beginning.
        text: String,
        /// What it should be.
        dtype: &'static str,
    },
}

/// At most so many names are listed to who asked for one that is not there.
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
        matches!(self, FormatError::NoVariable { .. } | FormatError::Unrecognised { .. })
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

    /// A stored chunk that cannot be what its table says, and why.
    pub fn chunk(why: impl Into<String>) -> FormatError {
        FormatError::Chunk { why: why.into() }
    }

    /// Checks something that was found against its bound.
    ///
    /// # Errors
    /// [`FormatError::Limit`] unless `found` is at most `max`.
    pub fn limit(what: &str, found: u64, max: u64) -> Result<(), FormatError> {
        if found <= max {
            return Ok(());
        }
        Err(FormatError::Limit { what: what.to_owned(), found, max })
    }
}
