//! From a file and a variable to a *chunk table*: what is in the file, where each chunk of a variable lies, and how to
//! decode it. netCDF classic (CDF-1, 2, 5), netCDF-4 and HDF5, Zarr v2 and v3, `.npy`, delimited text, and plain numbers.
//!
//! A scientific file is an index and chunks. Reading the index takes a parser that believes much of what it is told;
//! decoding a chunk does not. So the two are apart: a client, or a limited worker, parses and makes a [`ChunkTable`];
//! a server gets the table, checks it against its own files ([`ChunkTable::check`]) and decodes chunks with output
//! bounded by the table ([`Decoder`]). The table knows nothing of the format it comes from.
//!
//! # Rules
//! - Shapes and origins are in elements, in C order; places are in bytes.
//! - A chunk's number is its number in C order in the grid of all chunks, stored or not. One that is not stored reads as
//!   the fill value.
//! - Chunks of HDF5 and Zarr are whole also at the ends of an axis; data without an index is described by arithmetic
//!   ([`Rows`]) in chunks of our choice, which end where the array ends ([`Edges`]).
//! - Decoded elements are little-endian. Their bits are those of the file: no scaling, no missing values; attributes
//!   ([`Attribute`]) say what they mean.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use gristmill_format::{Decoder, Kind, MemoryTree, open_tree};
//! # fn main() -> Result<(), gristmill_format::FormatError> {
//! let mut files = MemoryTree::default();
//! files.0.insert(".zarray".into(), br#"{"zarr_format": 2, "shape": [3, 4], "chunks": [2, 4], "dtype": ">i2",
//!     "compressor": null, "filters": null, "fill_value": -1, "order": "C"}"#.to_vec());
//! files.0.insert("0.0".into(), (1..=8i16).flat_map(i16::to_be_bytes).collect());
//!
//! let dataset = open_tree(Arc::new(files))?;
//! let variable = &dataset.variables[0];
//! assert_eq!((variable.kind.clone(), variable.shape.as_slice()), (Kind::Number("i16".parse().unwrap()), [3, 4].as_slice()));
//!
//! // Two chunks of two rows; the second is not there.
//! let table = dataset.table(&variable.path)?;
//! assert_eq!((table.array.chunks(), table.stored_chunks()), (2, 1));
//! assert_eq!(table.array.extent(1).unwrap().clipped, [1, 4]);
//!
//! let (mut decoder, mut elements) = (Decoder::new(&table.array)?, Vec::new());
//! dataset.read_chunk(&table, 0, &mut decoder, &mut elements)?;
//! assert_eq!(elements, (1..=8i16).flat_map(i16::to_le_bytes).collect::<Vec<u8>>());
//! dataset.read_chunk(&table, 1, &mut decoder, &mut elements)?;
//! assert_eq!(elements, vec![0xff; 16]);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//! [`open_path`], [`open`], [`open_tree`] and [`open_raw`] give a [`Dataset`]; [`Dataset::table`] a [`ChunkTable`];
//! [`wire`] is the table as bytes, in pages. HDF5 files are parsed by the crate `hdf5-reader` and headers of classic
//! netCDF by `netcdf-reader`, compared with the C libraries in `tests/test_format_*.py`.

mod array;
mod attribute;
mod classic;
mod codec;
mod dataset;
mod decode;
mod error;
mod filter;
mod hdf5;
mod npy;
mod open;
mod raw;
mod rows;
mod source;
mod table;
mod text;
mod tree;
pub mod wire;
mod zarr;

pub use array::{Array, Edges, Extent};
pub use attribute::{Attribute, AttributeValue};
pub use dataset::{Dataset, Dimension, Format, Kind, Storage, Variable, is_named};
pub use decode::Decoder;
pub use error::FormatError;
pub use filter::{Column, Filter};
pub use open::{open, open_path, open_tree};
pub use raw::open_raw;
pub use rows::Rows;
pub use source::{FileSource, Source};
pub use table::{ChunkTable, FileRef, Found, MAX_CHUNKS, Place, Places};
pub use tree::{FolderTree, MemoryTree, Tree};

/// Most dimensions of a variable; HDF5's own bound.
pub const MAX_DIMENSIONS: usize = 32;

/// Most bytes of a variable; what a signed 64-bit offset can reach.
pub const MAX_ARRAY_BYTES: u64 = i64::MAX as u64;

/// Most bytes of a decoded chunk, which every lane holds whole.
pub const MAX_CHUNK_BYTES: u64 = 256 << 20;

/// Most bytes of a stored chunk.
pub const MAX_STORED_BYTES: u64 = MAX_CHUNK_BYTES + MAX_CHUNK_BYTES / 8;

/// Bytes of a chunk of data that has no index, where a row is no longer. They are no larger so that few lie on two targets; of
/// arrays that would have more than [`VIRTUAL_CHUNKS`] of them they are.
pub const VIRTUAL_CHUNK_BYTES: u64 = 256 << 10;

/// Chunks of data that has no index, about: larger arrays have larger ones.
pub const VIRTUAL_CHUNKS: u64 = 1 << 20;

/// Most filters of a variable; HDF5's own bound, and the bits of a mask.
pub const MAX_FILTERS: usize = 32;

/// Most parameters of a filter.
pub const MAX_FILTER_PARAMETERS: usize = 64;

/// Most bytes of a chunk that is inside a table; HDF5's bound on compact data.
pub const MAX_INLINE_BYTES: usize = 64 << 10;

/// Most files of a tree, and of a table.
pub const MAX_FILES: usize = 1 << 20;

/// Most bytes of the name of a file.
pub const MAX_NAME_BYTES: usize = 4_096;

/// Most variables of a file.
pub const MAX_VARIABLES: usize = 1 << 16;

/// Most groups of a file, and levels of them.
pub const MAX_GROUPS: usize = 1 << 16;
/// See [`MAX_GROUPS`].
pub const MAX_GROUP_DEPTH: usize = 64;

/// Most bytes of one attribute.
pub const MAX_ATTRIBUTE_BYTES: usize = 16 << 20;

/// Most bytes of what a file says about itself that are read at once: a header, an index, a metadata document.
pub const MAX_METADATA_BYTES: u64 = 256 << 20;
