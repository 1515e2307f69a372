//! From a dataset's layout to places in the file.

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
use super::datasets::{Inside, Layout, Object};
use super::filters::filters;
use crate::array::{Array, Edges, bytes_of};
use crate::dataset::Variable;
use crate::rows::Rows;
use crate::source::{self, Source};
use crate::table::{MAX_CHUNKS, Place, Places};
use crate::{FormatError, MAX_INLINE_BYTES};

/// Bytes behind the beginning of an object header in which compact data is looked for.
const NEAR_HEADER: u64 = 128 << 10;

/// The array and the places of a dataset.
pub fn table(
    file: &Hdf5File,
    source: &dyn Source,
    object: &Object,
    inside: &Inside,
    variable: &Variable,
) -> Result<(Array, Places), FormatError> {
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
    match &inside.layout {
        Layout::Compact(data) => {
            let data = usize::try_from(bytes).ok().and_then(|bytes| data.get(..bytes));
            let data = data.ok_or_else(|| bad("compact data is shorter than its dataset"))?;
            let places = compact(source, object.address.saturating_add(base), data)?;
            Ok((array, places))
        }
        Layout::Contiguous { address, size: told } => {
            array.chunk = Rows::chunk_shape(&array.shape, size, None, None);
            if Cursor::is_undefined_offset(*address, file.superblock().offset_size) {
                return Ok((array, Places::Listed(Vec::new())));
            }
            // Old files do not say how many bytes there are.
            if *told != 0 && *told < bytes {
                return Err(bad("contiguous data is shorter than its dataset"));
            }
            let row = bytes_of(array.shape.get(1..).unwrap_or_default(), dtype);
            let stride = row.ok_or_else(|| bad("a dataset is longer than any file"))?;
            Ok((array, Places::Rows(Rows { begin: address.saturating_add(base), stride })))
        }
        Layout::Chunked { address, chunk, index } => {
            if chunk.len() != array.shape.len() || chunk.is_empty() || chunk.contains(&0) {
                return Err(bad("the chunks of a dataset have no shape"));
            }
            array.chunk = chunk.iter().map(|length| u64::from(*length)).collect();
            array.edges = Edges::Whole;
            array.filters = filters(&variable.path, &inside.filters)?;
            array.check()?;
            if Cursor::is_undefined_offset(*address, file.superblock().offset_size) {
                return Ok((array, Places::Listed(Vec::new())));
            }
            let entries = entries(file, object, *address, chunk, index.as_ref(), dtype)?;
            let places = places(&array, &entries, base, file.superblock().offset_size)?;
            Ok((array, Places::Listed(places)))
        }
    }
}

/// Where compact data lies, if its bytes are found behind the beginning of its header; else the bytes.
fn compact(source: &dyn Source, header: u64, data: &[u8]) -> Result<Places, FormatError> {
    FormatError::limit("bytes of compact data", data.len() as u64, MAX_INLINE_BYTES as u64)?;
    let near = source.len().saturating_sub(header).min(NEAR_HEADER);
    let bytes = source::read(source, header.min(source.len()), near, NEAR_HEADER)?;
    // Wherever the same bytes are, they are the same elements.
    Ok(match memchr::memmem::find(&bytes, data) {
        Some(at) if !data.is_empty() => Places::Listed(vec![Place {
            chunk: 0,
            file: 0,
            offset: header + at as u64,
            bytes: data.len() as u64,
            mask: 0,
        }]),
        _ => Places::Inline(data.to_vec()),
    })
}

/// What the index of a dataset lists.
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
        // These two number chunks in the grid of the longest shape that the dataset may have.
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

/// A chunk in the leaf of an old B-tree.
fn leaf((key, address): (BTreeV1Key, u64)) -> Option<ChunkEntry> {
    match key {
        BTreeV1Key::RawData { chunk_size, filter_mask, offsets } => {
            Some(ChunkEntry { address, size: u64::from(chunk_size), filter_mask, offsets })
        }
        BTreeV1Key::Group { .. } => None,
    }
}

fn places(array: &Array, entries: &[ChunkEntry], base: u64, offsets: u8) -> Result<Vec<Place>, FormatError> {
    FormatError::limit("chunks", entries.len() as u64, MAX_CHUNKS as u64)?;
    let mut places = Vec::with_capacity(entries.len());
    for entry in entries {
        let axes = entry.offsets.iter().zip(&array.chunk).zip(&array.stored);
        // What was left behind when the dataset became shorter is not part of it.
        if Cursor::is_undefined_offset(entry.address, offsets) || axes.clone().any(|((at, _), end)| at >= end)
        {
            continue;
        }
        let coordinates: Vec<u64> = axes.map(|((at, chunk), _)| at / chunk).collect();
        let aligned = entry.offsets.iter().zip(&array.chunk).all(|(at, chunk)| at.is_multiple_of(*chunk));
        let number = array.number_at(&coordinates).filter(|_| aligned);
        let number = number.ok_or_else(|| bad("an index has a chunk that does not lie in the grid"))?;
        let bytes = if array.filters.is_empty() { array.chunk_bytes() } else { entry.size };
        let offset =
            entry.address.checked_add(base).ok_or_else(|| bad("a chunk lies past the longest file"))?;
        places.push(Place { chunk: number, file: 0, offset, bytes, mask: entry.filter_mask });
    }
    places.sort_unstable_by_key(|place| place.chunk);
    if places.iter().zip(places.iter().skip(1)).any(|(a, b)| a.chunk == b.chunk) {
        return Err(bad("an index has a chunk twice"));
    }
    Ok(places)
}
