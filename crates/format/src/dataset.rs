//! The content of a file: its variables, dimensions and attributes.

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
    /// HDF5 that a netCDF library wrote, or that looks like it.
    Netcdf4,
    /// Other HDF5.
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
    /// The name of the format, as `stat` prints it.
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

/// A dimension of a file: a length with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The name, with the groups of the dimension: `group/name`.
    pub name: String,
    /// Number of elements along the dimension.
    pub length: u64,
    /// Whether the dimension may grow.
    pub unlimited: bool,
}

/// Beginning of the names of dimensions that the file does not name, as in netCDF-C and h5netcdf.
pub(crate) const PHONY: &str = "phony_dim_";

/// Returns whether the file names a dimension. Two axes with different made-up names may still be the same dimension.
pub fn is_named(dimension: &str) -> bool {
    let name = dimension.rsplit('/').next().unwrap_or(dimension);
    !name.is_empty() && !name.starts_with(PHONY)
}

/// The kind of a variable's elements.
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

/// The storage of a variable's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// In chunks that the file lists.
    Chunked,
    /// One after the other.
    Contiguous,
    /// One record after the other, with records of other variables in between.
    Records,
    /// Inside the metadata of the file.
    Compact,
    /// Lines of text.
    Lines,
    /// In other files, or in other datasets.
    Elsewhere,
}

impl Storage {
    /// The name of the storage, as `stat` prints it.
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
    /// The name, with the groups of the variable: `group/name`.
    pub path: String,
    /// The name of the dimension of each axis, as in [`Dimension::name`]; empty for an axis without a name.
    pub dimensions: Vec<String>,
    /// The kind of the elements.
    pub kind: Kind,
    /// Byte order of stored elements.
    pub order: ByteOrder,
    /// Lengths of the axes, in elements.
    pub shape: Vec<u64>,
    /// Lengths of a chunk in elements, if the file has chunks.
    pub chunk: Option<Vec<u64>>,
    /// The storage of the elements.
    pub storage: Storage,
    /// Names of the filters of the chunks. Some may not be supported.
    pub filters: Vec<String>,
    /// The value of an element that is not stored, little-endian; `None` if elements are not numbers.
    pub fill: Option<Vec<u8>>,
    /// The attributes of the variable.
    pub attributes: Vec<Attribute>,
}

impl Variable {
    /// Returns an attribute by its name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The type of the elements.
    ///
    /// # Errors
    /// Returns [`FormatError::Unsupported`] if the elements are not numbers.
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

/// The chunk tables of an opened file.
pub(crate) trait Tables: Send + Sync {
    /// Makes the table of variable number `index`, whose elements are numbers.
    fn table(&self, index: usize, variable: &Variable) -> Result<ChunkTable, FormatError>;

    /// Opens one of the files of a table.
    fn source(&self, table: &ChunkTable, file: u32) -> Result<Arc<dyn Source>, FormatError>;
}

/// An opened file.
pub struct Dataset {
    /// The format of the file.
    pub format: Format,
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
    /// All groups below the root, also those without variables: `group/name`.
    pub groups: Vec<String>,
    /// The attributes of the root.
    pub attributes: Vec<Attribute>,
    /// The variables, in the order of the file.
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
    /// Returns a variable by its path, with or without a `/` at the beginning.
    ///
    /// # Errors
    /// Returns [`FormatError::NoVariable`], which lists the variables of the file.
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

    /// Makes the chunk table of a variable and checks it against the lengths of its files.
    ///
    /// # Errors
    /// Returns [`FormatError::NoVariable`] if there is no such variable, [`FormatError::Unsupported`] if its elements,
    /// its filters or its storage are not supported, [`FormatError::PastEnd`] if the file is truncated,
    /// [`FormatError::Damaged`] if it is damaged, and [`FormatError::Limit`] if something is too large.
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
    /// Returns the errors of [`ChunkTable::read`].
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
