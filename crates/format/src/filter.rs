//! Filters, which writers apply to the elements of a chunk before they store it.

use crate::array::Array;
use crate::{FormatError, MAX_FILTER_PARAMETERS};

/// One step between elements and stored bytes. The codec of the same name describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// zlib streams (RFC 1950): HDF5's deflate, `zlib` of numcodecs.
    Zlib,
    /// gzip members (RFC 1952).
    Gzip,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// LZ4 blocks in HDF5's framing (filter 32004).
    Lz4Hdf5,
    /// One LZ4 block after its length, as numcodecs writes it.
    Lz4Numcodecs,
    /// h5py's LZF (HDF5 filter 32000).
    Lzf,
    /// Blosc 1 buffers, whose header names the codec.
    Blosc,
    /// Blosc 2 chunks, whose header names the codec and the filters.
    Blosc2,
    /// CCSDS 121 (HDF5's szip, filter 4), with the parameters of the file.
    Szip(Vec<u32>),
    /// The first bytes of all elements, then the second bytes, and so on.
    Shuffle {
        /// Bytes of an element. Bytes after the last whole element stay at the end.
        size: u32,
    },
    /// HDF5's checksum (Fletcher32), after the data.
    Fletcher32,
    /// Zarr's checksum after the data: that of iSCSI (RFC 3720).
    Crc32c,
    /// Axes in another order: stored axis `i` is axis `axes[i]` of the array.
    Transpose(Vec<u8>),
    /// One column of lines of text.
    Column(Column),
}

/// A column of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Number of the field in each line, counted from 0.
    pub index: u32,
    /// Byte between two fields; a space means any white space.
    pub delimiter: u8,
}

impl Filter {
    /// The usual name of the filter.
    pub const fn name(&self) -> &'static str {
        match self {
            Filter::Zlib => "deflate",
            Filter::Gzip => "gzip",
            Filter::Zstd => "zstd",
            Filter::Lz4Hdf5 | Filter::Lz4Numcodecs => "lz4",
            Filter::Lzf => "lzf",
            Filter::Blosc => "blosc",
            Filter::Blosc2 => "blosc2",
            Filter::Szip(_) => "szip",
            Filter::Shuffle { .. } => "shuffle",
            Filter::Fletcher32 => "fletcher32",
            Filter::Crc32c => "crc32c",
            Filter::Transpose(_) => "transpose",
            Filter::Column(_) => "column",
        }
    }

    /// Checks the parameters for chunks of an array.
    pub(crate) fn check(&self, array: &Array) -> Result<(), FormatError> {
        let bad = |why: &str| Err(FormatError::table(format!("{} {why}", self.name())));
        match self {
            Filter::Shuffle { size: 0 } => bad("is of elements of no bytes"),
            Filter::Szip(parameters) => FormatError::limit(
                "parameters of a filter",
                parameters.len() as u64,
                MAX_FILTER_PARAMETERS as u64,
            ),
            Filter::Transpose(axes) => {
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                let all = sorted.iter().map(|axis| usize::from(*axis)).eq(0..array.shape.len());
                let first = array.filters.first() == Some(self);
                match (all, first && array.filters.iter().filter(|filter| *filter == self).count() == 1) {
                    (true, true) => Ok(()),
                    (false, _) => bad("does not name every axis once"),
                    (_, false) => bad("is possible as the first filter only"),
                }
            }
            Filter::Column(_) if array.filters.len() != 1 || array.shape.len() != 1 => {
                bad("cannot be combined with anything")
            }
            _ => Ok(()),
        }
    }

    /// Most bytes that the filter makes of `bytes` bytes, including checksums and incompressible data.
    pub(crate) const fn grown(&self, bytes: usize) -> usize {
        match self {
            Filter::Shuffle { .. } | Filter::Transpose(_) => bytes,
            Filter::Fletcher32 | Filter::Crc32c => bytes.saturating_add(4),
            // The largest output of these writers: LZ4 and szip of noise, with their framing.
            _ => bytes.saturating_add(bytes / 8).saturating_add(4096),
        }
    }
}
