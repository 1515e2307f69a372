//! From a file and a variable to a *chunk table*: the content of the file, the location of each chunk of a variable,
//! and the way to decode it. Formats are netCDF classic (CDF-1, 2, 5), netCDF-4 and HDF5, Zarr v2 and v3, `.npy`,
//! delimited text, and plain numbers.
//!
//! A scientific file has an index and chunks. A parser of the index must trust much of its input; a decoder of a chunk
//! need not. So the two are separate. A client, or a limited worker, parses the index and makes a [`ChunkTable`]. A
//! server gets the table, checks it against its own files ([`ChunkTable::check`]) and decodes chunks with output
//! bounded by the table ([`Decoder`]). The table does not depend on the format.
//!
//! # Rules
//! - Shapes and origins are in elements, in C order; locations are in bytes.
//! - A chunk's number is its number in C order in the grid of all chunks, stored or not. A chunk that is not stored
//!   reads as the fill value.
//! - Chunks of HDF5 and Zarr are whole also at the ends of an axis. Data without an index is described by arithmetic
//!   ([`Rows`]) in chunks of our choice, which end where the array ends ([`Edges`]).
//! - Decoded elements are little-endian, with the bits of the file. They are not scaled and not masked; the attributes
//!   ([`Attribute`]) tell how to do that.
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
//! // Two chunks of two rows; the second is not stored.
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
//! [`open_path`], [`open`], [`open_tree`] and [`open_raw`] return a [`Dataset`]. [`join`] makes one of several files whose
//! variables continue one another. [`Dataset::table`] returns a [`ChunkTable`]. [`wire`] encodes the table in pages. The crate `hdf5-reader` parses HDF5 files, and `netcdf-reader`
//! the headers of classic netCDF; `tests/test_format_*.py` compares them with the C libraries.

mod array;
mod attribute;
mod classic;
mod codec;
mod dataset;
mod decode;
mod error;
mod filter;
mod hdf5;
mod joined;
mod not_text;
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
pub use joined::{join, join_tables};
pub use open::{is_self_describing, open, open_path, open_tree};
pub use raw::open_raw;
pub use rows::Rows;
pub use source::{ObjectSource, Source};
pub use table::{ChunkLocation, ChunkLocations, ChunkTable, FileRef, FoundChunk, MAX_CHUNKS};
pub use tree::{BackendTree, MemoryTree, Tree, is_zarr_name};

/// Most dimensions of a variable; HDF5's own bound.
pub const MAX_DIMENSIONS: usize = 32;

/// Most bytes of a variable: the largest signed 64-bit offset.
pub const MAX_ARRAY_BYTES: u64 = i64::MAX as u64;

/// Most bytes of a decoded chunk, which every lane holds whole.
pub const MAX_CHUNK_BYTES: u64 = 256 << 20;

/// Most bytes of a stored chunk.
pub const MAX_STORED_BYTES: u64 = MAX_CHUNK_BYTES + MAX_CHUNK_BYTES / 8;

/// Bytes of a chunk of data without an index, unless a row is longer. Chunks are small so that few lie on two targets.
/// They are larger in arrays that would have more than [`VIRTUAL_CHUNKS`] chunks.
pub const VIRTUAL_CHUNK_BYTES: u64 = 256 << 10;

/// Approximate largest number of chunks of data without an index. Larger arrays have larger chunks.
pub const VIRTUAL_CHUNKS: u64 = 1 << 20;

/// Most filters of a variable; HDF5's own bound, and the bits of a mask.
pub const MAX_FILTERS: usize = 32;

/// Most parameters of a filter.
pub const MAX_FILTER_PARAMETERS: usize = 64;

/// Most bytes of a chunk that is stored inside a table; HDF5's bound on compact data.
pub const MAX_INLINE_BYTES: usize = 64 << 10;

/// Most files of a tree, and of a table.
pub const MAX_FILES: usize = 1 << 20;

/// Most bytes of the name of a file.
pub const MAX_NAME_BYTES: usize = 4_096;

/// Most variables of a file.
pub const MAX_VARIABLES: usize = 1 << 16;

/// Most groups of a file.
pub const MAX_GROUPS: usize = 1 << 16;
/// Most levels of groups of a file.
pub const MAX_GROUP_DEPTH: usize = 64;

/// Most bytes of one attribute.
pub const MAX_ATTRIBUTE_BYTES: usize = 16 << 20;

/// Most bytes of metadata that are read at once: a header, an index, a document.
pub const MAX_METADATA_BYTES: u64 = 256 << 20;
