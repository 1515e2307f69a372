//! What is in a file.

use std::fmt;
use std::sync::Arc;

use gristmill_kernel::{ByteOrder, DType};

use crate::attribute::Attribute;
use crate::filter::Filter;
use crate::source::Source;
use crate::table::ChunkTable;
use crate::{Decoder, FormatError};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Classic netCDF, with offsets of 32 bits.
    Cdf1,
    /// Classic netCDF with offsets of 64 bits.
    Cdf2,
    /// Classic netCDF with lengths of 64 bits and more types.
    Cdf5,
    /// HDF5 that a netCDF library wrote, or that looks as if one had.
    Netcdf4,
    /// Any other HDF5.
    Hdf5,
    /// Zarr, version 2.
    Zarr2,
    /// Zarr, version 3.
    Zarr3,
    /// NumPy's `.npy`.
    Npy,
    /// Delimited text.
    Text,
    /// Plain numbers.
    Raw,
}

impl Format {
    /// Its name, as `stat` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Cdf1 => "netCDF classic (CDF-1)",
            Format::Cdf2 => "netCDF classic (CDF-2)",
            Format::Cdf5 => "netCDF classic (CDF-5)",
            Format::Netcdf4 => "netCDF-4",
            Format::Hdf5 => "HDF5",
            Format::Zarr2 => "Zarr v2",
            Format::Zarr3 => "Zarr v3",
            Format::Npy => "npy",
            Format::Text => "text",
            Format::Raw => "raw",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A named length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name, with the groups it is in: `group/name`.
    pub name: String,
    /// Its length.
    pub length: u64,
    /// Whether it may grow.
    pub unlimited: bool,
}

/// What the names of dimensions begin with that a file has not, as netCDF-C and h5netcdf make them up.
pub(crate) const PHONY: &str = "phony_dim_";

/// Whether a file itself names a dimension. Where it does not, two axes may be the same whatever they are called.
pub fn is_named(dimension: &str) -> bool {
    let name = dimension.rsplit('/').next().unwrap_or(dimension);
    !name.is_empty() && !name.starts_with(PHONY)
}

/// What the elements of a variable are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers that kernels compute on.
    Number(DType),
    /// Anything else, in words: `text`, `compound of 3 fields`.
    Other(String),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number(dtype) => write!(f, "{dtype}"),
            Kind::Other(what) => f.write_str(what),
        }
    }
}

/// How the elements of a variable are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// In chunks that the file lists.
    Chunked,
    /// One after the other.
    Contiguous,
    /// One record after the other, with records of other variables in between.
    Records,
    /// Inside what the file says about itself.
    Compact,
    /// Lines of text.
    Lines,
    /// In other files, or in other datasets.
    Elsewhere,
}

impl Storage {
    /// Its name, as `stat` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Storage::Chunked => "chunked",
            Storage::Contiguous => "contiguous",
            Storage::Records => "records",
            Storage::Compact => "compact",
            Storage::Lines => "lines",
            Storage::Elsewhere => "elsewhere",
        }
    }
}

/// A variable of a file: a netCDF variable, an HDF5 dataset, a Zarr array, a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, with the groups it is in: `group/name`.
    pub path: String,
    /// The names of its dimensions, one for each axis, as in [`Dimension::name`]; empty where an axis has none.
    pub dimensions: Vec<String>,
    /// What its elements are.
    pub kind: Kind,
    /// Byte order of stored elements.
    pub order: ByteOrder,
    /// Lengths of its axes.
    pub shape: Vec<u64>,
    /// Lengths of a chunk, where the file has chunks.
    pub chunk: Option<Vec<u64>>,
    /// How it is stored.
    pub storage: Storage,
    /// What was done to its chunks; names, since it may be something that cannot be undone here.
    pub filters: Vec<String>,
    /// What an element is that is not stored: one, little-endian. `None` for what is no number.
    pub fill: Option<Vec<u8>>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
}

impl Variable {
    /// An attribute by name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The type of its elements.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] for what is no number.
    pub fn dtype(&self) -> Result<DType, FormatError> {
        match &self.kind {
            Kind::Number(dtype) => Ok(*dtype),
            Kind::Other(what) => Err(FormatError::unsupported(
                &self.path,
                format!("its elements are {what}, and only numbers (i8 to u64, f32, f64) are computed on"),
            )),
        }
    }
}

/// What makes the tables of a format.
pub(crate) trait Tables: Send + Sync {
    /// The table of variable number `index`, whose elements are numbers.
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError>;

    /// One of the files of a table.
    fn source(&self, table: &ChunkTable, file: u32) -> Result<Arc<dyn Source>, FormatError>;
}

/// An opened file.
pub struct Dataset {
    /// Its format.
    pub format: Format,
    /// Its dimensions.
    pub dimensions: Vec<Dimension>,
    /// Its groups below the root, also those without variables, with the groups they are in: `group/name`.
    pub groups: Vec<String>,
    /// Its own attributes.
    pub attributes: Vec<Attribute>,
    /// Its variables, in the order of the file.
    pub variables: Vec<Variable>,
    pub(crate) tables: Box<dyn Tables>,
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Dataset");
        out.field("format", &self.format).field("variables", &self.variables).finish_non_exhaustive()
    }
}

impl Dataset {
    /// A variable by its path; a `/` at its beginning may be left out.
    ///
    /// # Errors
    /// [`FormatError::NoVariable`], with those that are there.
    pub fn variable(&self, path: &str) -> Result<&Variable, FormatError> {
        self.index(path).and_then(|index| self.variables.get(index)).ok_or_else(|| FormatError::NoVariable {
            variable: path.to_owned(),
            known: self.variables.iter().map(|variable| variable.path.clone()).collect(),
        })
    }

    fn index(&self, path: &str) -> Option<usize> {
        let path = path.trim_start_matches('/');
        self.variables.iter().position(|variable| variable.path == path)
    }

    /// The chunk table of a variable, checked against the lengths of its files.
    ///
    /// # Errors
    /// [`FormatError::NoVariable`]; [`FormatError::Unsupported`] for elements, filters and storage that cannot be used
    /// here; [`FormatError::PastEnd`] for a truncated file; [`FormatError::Damaged`], [`FormatError::Limit`].
    pub fn table(&self, path: &str) -> Result<ChunkTable, FormatError> {
        let variable = self.variable(path)?;
        variable.dtype()?;
        let index = self.index(path).unwrap_or(usize::MAX);
        let table = self.tables.table(index, variable)?;
        let lengths: Vec<u64> = table.files.iter().map(|file| file.length).collect();
        table.check(&lengths)?;
        Ok(table)
    }

    /// Reads and decodes one chunk of a table of this file; see [`Decoder::decode`].
    ///
    /// # Errors
    /// Those of [`ChunkTable::read`].
    pub fn read_chunk(
        &self,
        table: &ChunkTable,
        number: u64,
        decoder: &mut Decoder,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        table.read(number, decoder, &|file| self.tables.source(table, file), out)
    }
}

/// Names of filters.
pub(crate) fn names(filters: &[Filter]) -> Vec<String> {
    filters.iter().map(|filter| filter.name().to_owned()).collect()
}
