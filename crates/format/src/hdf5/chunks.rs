//! The chunk table of a dataset: from its layout to locations in the file.

use gristmill_kernel::DType;
use hdf5_reader::Hdf5File;
use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::chunk_index::{
    ChunkEntry, collect_implicit_chunk_entries, collect_v2_chunk_entries_storage, single_chunk_entry,
};
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::layout::ChunkIndexing;

use super::bad;
use super::datasets::{Layout, Object, StorageInfo};
use super::filters::filters;
use crate::array::{Array, Edges, bytes_of};
use crate::dataset::Variable;
use crate::rows::Rows;
use crate::source::{self, Source};
use crate::table::{ChunkLocation, ChunkLocations, MAX_CHUNKS};
use crate::{FormatError, MAX_INLINE_BYTES};

/// Bytes of an object header in which compact data is searched.
const NEAR_HEADER: u64 = 128 << 10;

/// Returns the array of a dataset and the locations of its chunks.
pub fn table(
    file: &Hdf5File,
    source: &dyn Source,
    object: &Object,
    storage_info: &StorageInfo,
    variable: &Variable,
) -> Result<(Array, ChunkLocations), FormatError> {
    let dtype = variable.dtype()?;
    let base = file.superblock().base_address;
    let size = dtype.size() as u64;
    let mut array = Array {
        dtype,
        order: variable.order,
        shape: variable.shape.clone(),
        stored: object.shape.clone(),
        chunk: variable.shape.iter().map(|length| (*length).max(1)).collect(),
        edges: Edges::Clipped,
        filters: Vec::new(),
        fill: variable.fill.clone().unwrap_or_else(|| vec![0; dtype.size()]),
    };
    let bytes = bytes_of(&array.shape, dtype).ok_or_else(|| bad("a dataset is longer than any file"))?;
    match &storage_info.layout {
        Layout::Compact(data) => {
            let data = usize::try_from(bytes).ok().and_then(|bytes| data.get(..bytes));
            let data = data.ok_or_else(|| bad("compact data is shorter than its dataset"))?;
            let locations = compact(source, object.address.saturating_add(base), data)?;
            Ok((array, locations))
        }
        Layout::Contiguous { address, size: stored_size } => {
            array.chunk = Rows::chunk_shape(&array.shape, size, None, None);
            if Cursor::is_undefined_offset(*address, file.superblock().offset_size) {
                return Ok((array, ChunkLocations::Listed(Vec::new())));
            }
            // Old files do not have the number of bytes.
            if *stored_size != 0 && *stored_size < bytes {
                return Err(bad("contiguous data is shorter than its dataset"));
            }
            let row = bytes_of(array.shape.get(1..).unwrap_or_default(), dtype);
            let stride = row.ok_or_else(|| bad("a dataset is longer than any file"))?;
            Ok((array, ChunkLocations::Rows(Rows { begin: address.saturating_add(base), stride })))
        }
        Layout::Chunked { address, chunk, index } => {
            if chunk.len() != array.shape.len() || chunk.is_empty() || chunk.contains(&0) {
                return Err(bad("the chunks of a dataset have no shape"));
            }
            array.chunk = chunk.iter().map(|length| u64::from(*length)).collect();
            array.edges = Edges::Whole;
            array.filters = filters(&variable.path, &storage_info.filters)?;
            array.check()?;
            if Cursor::is_undefined_offset(*address, file.superblock().offset_size) {
                return Ok((array, ChunkLocations::Listed(Vec::new())));
            }
            let entries = entries(file, object, *address, chunk, index.as_ref(), dtype)?;
            let locations = locations(&array, &entries, base, file.superblock().offset_size)?;
            Ok((array, ChunkLocations::Listed(locations)))
        }
    }
}

/// Returns the location of compact data if its bytes are found in its header, else the bytes.
fn compact(source: &dyn Source, header: u64, data: &[u8]) -> Result<ChunkLocations, FormatError> {
    FormatError::limit("bytes of compact data", data.len() as u64, MAX_INLINE_BYTES as u64)?;
    let near = source.len().saturating_sub(header).min(NEAR_HEADER);
    let bytes = source::read(source, header.min(source.len()), near, NEAR_HEADER)?;
    // The same bytes at any other location are the same elements.
    Ok(match memchr::memmem::find(&bytes, data) {
        Some(at) if !data.is_empty() => ChunkLocations::Listed(vec![ChunkLocation {
            chunk: 0,
            file: 0,
            offset: header + at as u64,
            bytes: data.len() as u64,
            mask: 0,
        }]),
        _ => ChunkLocations::Inline(data.to_vec()),
    })
}

/// Returns the entries of a dataset's index.
fn entries(
    file: &Hdf5File,
    object: &Object,
    address: u64,
    chunk: &[u32],
    index: Option<&ChunkIndexing>,
    dtype: DType,
) -> Result<Vec<ChunkEntry>, FormatError> {
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    let storage = file.storage();
    let axes = chunk.len() as u32;
    let entries = match index {
        None => {
            let leaves =
                collect_btree_v1_leaves_storage(storage, address, offsets, lengths, Some(axes), chunk, None);
            return Ok(leaves.map_err(bad)?.into_iter().filter_map(leaf).collect());
        }
        Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => {
            Ok(vec![single_chunk_entry(address, *filtered_size, *filters, chunk.len())])
        }
        // These two indexes number chunks in the grid of the dataset's largest shape.
        Some(ChunkIndexing::Implicit) => {
            collect_implicit_chunk_entries(address, &object.limits, chunk, dtype.size(), None, storage.len())
        }
        Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
            storage,
            address,
            offsets,
            lengths,
            &object.limits,
            chunk,
            None,
        ),
        Some(ChunkIndexing::ExtensibleArray { .. }) => collect_extensible_array_chunk_entries_storage(
            storage,
            address,
            offsets,
            lengths,
            &object.shape,
            Some(&object.limits),
            chunk,
            None,
        ),
        Some(ChunkIndexing::BTreeV2) => {
            collect_v2_chunk_entries_storage(storage, address, offsets, lengths, axes, chunk, None)
        }
    };
    entries.map_err(bad)
}

/// Converts an entry of an old B-tree's leaf.
fn leaf((key, address): (BTreeV1Key, u64)) -> Option<ChunkEntry> {
    match key {
        BTreeV1Key::RawData { chunk_size, filter_mask, offsets } => {
            Some(ChunkEntry { address, size: u64::from(chunk_size), filter_mask, offsets })
        }
        BTreeV1Key::Group { .. } => None,
    }
}

fn locations(
    array: &Array,
    entries: &[ChunkEntry],
    base: u64,
    offsets: u8,
) -> Result<Vec<ChunkLocation>, FormatError> {
    FormatError::limit("chunks", entries.len() as u64, MAX_CHUNKS as u64)?;
    let mut locations = Vec::with_capacity(entries.len());
    for entry in entries {
        let axes = entry.offsets.iter().zip(&array.chunk).zip(&array.stored);
        // A chunk outside the grid was left when the dataset was shortened.
        if Cursor::is_undefined_offset(entry.address, offsets) || axes.clone().any(|((at, _), end)| at >= end)
        {
            continue;
        }
        let coordinates: Vec<u64> = axes.map(|((at, chunk), _)| at / chunk).collect();
        let aligned = entry.offsets.iter().zip(&array.chunk).all(|(at, chunk)| at.is_multiple_of(*chunk));
        let number = array.number_at(&coordinates).filter(|_| aligned);
        let number = number.ok_or_else(|| bad("an index has a chunk that does not lie in the grid"))?;
        let bytes = if array.filters.is_empty() { array.chunk_bytes() } else { entry.size };
        let offset = entry
            .address
            .checked_add(base)
            .ok_or_else(|| bad("a chunk is past the end of the longest possible file"))?;
        locations.push(ChunkLocation { chunk: number, file: 0, offset, bytes, mask: entry.filter_mask });
    }
    locations.sort_unstable_by_key(|location| location.chunk);
    if locations.iter().zip(locations.iter().skip(1)).any(|(a, b)| a.chunk == b.chunk) {
        return Err(bad("an index has a chunk twice"));
    }
    Ok(locations)
}
