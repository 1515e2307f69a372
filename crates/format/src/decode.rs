//! From the stored bytes of a chunk to its elements.

use std::borrow::Cow;

use crate::array::{Array, bytes_of};
use crate::codec;
use crate::filter::Filter;
use crate::{FormatError, MAX_CHUNK_BYTES, MAX_STORED_BYTES};

/// Buffers of a decoder at a time; see [`Decoder::memory`].
const BUFFERS: u64 = 3;

/// A decoder of the chunks of one array. The size of a chunk bounds its output for any stored bytes. It uses its
/// buffers again for each chunk.
#[derive(Debug)]
pub struct Decoder {
    array: Array,
    /// Buffers that are not in use.
    spare: Vec<Vec<u8>>,
}

/// Bytes on their way through the filters.
type Bytes<'a> = Cow<'a, [u8]>;

impl Decoder {
    /// Makes a decoder for chunks of an array.
    ///
    /// # Errors
    /// Returns the errors of [`Array::check`].
    pub fn new(array: &Array) -> Result<Decoder, FormatError> {
        array.check()?;
        Ok(Decoder { array: array.clone(), spare: Vec::new() })
    }

    /// Most bytes of memory that a decoder of an array takes, without the stored bytes: the output of a filter, its
    /// input, and the elements of the previous chunk.
    pub fn memory(array: &Array) -> u64 {
        let mut room = array.chunk_bytes().min(MAX_CHUNK_BYTES) as usize;
        let mut most = room;
        for filter in &array.filters {
            room = filter.grown(room);
            most = most.max(room);
        }
        let buffers = if array.filters.is_empty() { 1 } else { BUFFERS };
        (most as u64).saturating_mul(buffers)
    }

    /// Most bytes of a stored chunk of an array, for any writer of its filters.
    pub fn stored(array: &Array) -> u64 {
        let room = array.chunk_bytes().min(MAX_CHUNK_BYTES) as usize;
        array.filters.iter().fold(room, |room, filter| filter.grown(room)) as u64
    }

    /// The array of the chunks.
    pub const fn array(&self) -> &Array {
        &self.array
    }

    /// Decodes chunk `number` from its stored bytes into `out`. The elements are little-endian, in C order, with the
    /// lengths `held` of [`Array::extent`]. A bit in `mask` means that the writer did not apply that filter; bit 0 is
    /// the first filter. Elements that the file does not have get the fill value.
    ///
    /// # Errors
    /// Returns [`FormatError::Chunk`] if the bytes do not decode to the elements of the chunk, [`FormatError::Field`]
    /// if a field of text is not a number, and [`FormatError::Table`] for a number past the last.
    pub fn decode(
        &mut self,
        number: u64,
        stored: &[u8],
        mask: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        FormatError::limit("bytes of a stored chunk", stored.len() as u64, MAX_STORED_BYTES)?;
        let held = self.held(number)?;
        let bytes = self.bytes(&held)?;
        // Most bytes before each filter is undone: the most that the filters before it make of a chunk.
        let mut rooms = Vec::with_capacity(self.array.filters.len());
        let mut room = bytes;
        for (filter, bit) in self.array.filters.iter().zip(0..) {
            let applied = !masked(mask, bit);
            rooms.push((filter.clone(), applied, room));
            if applied {
                room = filter.grown(room);
            }
        }
        let mut current: Bytes = Cow::Borrowed(stored);
        for (filter, applied, room) in rooms.iter().rev() {
            if *applied {
                current = self.undo(filter, current, *room, &held)?;
            }
        }
        if current.len() != bytes {
            let found = current.len();
            return Err(FormatError::chunk(format!("it has {found} bytes and should have {bytes}")));
        }
        match current {
            Cow::Borrowed(same) => {
                out.clear();
                out.extend_from_slice(same);
            }
            Cow::Owned(made) => {
                let used = std::mem::replace(out, made);
                self.spare.push(used);
            }
        }
        // Elements of text are decoded little-endian.
        if !matches!(self.array.filters.first(), Some(Filter::Column(_))) {
            self.array.order.to_little(self.array.dtype.size(), out);
        }
        self.fill_outside(number, &held, out);
        Ok(())
    }

    /// Fills `out` with the elements of a chunk that is not stored: the fill value.
    ///
    /// # Errors
    /// Returns [`FormatError::Table`] for a number past the last.
    pub fn fill(&self, number: u64, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let bytes = self.bytes(&self.held(number)?)?;
        out.clear();
        out.reserve(bytes);
        for _ in 0..bytes / self.array.dtype.size() {
            out.extend_from_slice(&self.array.fill);
        }
        Ok(())
    }

    fn held(&self, number: u64) -> Result<Vec<u64>, FormatError> {
        let extent = self.array.extent(number);
        extent
            .map(|extent| extent.held)
            .ok_or_else(|| FormatError::table(format!("there is no chunk {number}")))
    }

    fn bytes(&self, held: &[u64]) -> Result<usize, FormatError> {
        let bytes = bytes_of(held, self.array.dtype).and_then(|bytes| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| FormatError::table("a chunk is too large"))
    }

    fn undo<'a>(
        &mut self,
        filter: &Filter,
        from: Bytes<'a>,
        room: usize,
        held: &[u64],
    ) -> Result<Bytes<'a>, FormatError> {
        match filter {
            Filter::Fletcher32 => return strip(from, codec::checksum::fletcher32),
            Filter::Crc32c => return strip(from, codec::checksum::crc32c),
            _ => {}
        }
        let mut into = self.spare.pop().unwrap_or_default();
        into.clear();
        match filter {
            Filter::Zlib => codec::deflate::zlib(&from, room, &mut into)?,
            Filter::Gzip => codec::deflate::gzip(&from, room, &mut into)?,
            Filter::Zstd => codec::zstd::frames(&from, room, &mut into)?,
            Filter::Lz4Hdf5 => codec::lz4::hdf5(&from, room, &mut into)?,
            Filter::Lz4Numcodecs => codec::lz4::numcodecs(&from, room, &mut into)?,
            Filter::Lzf => codec::lzf::block(&from, room, &mut into)?,
            Filter::Blosc => codec::blosc::buffer(&from, room, &mut into)?,
            Filter::Blosc2 => codec::blosc2::chunk(&from, room, &mut into)?,
            Filter::Szip(parameters) => codec::szip::stream(&from, parameters, room, &mut into)?,
            Filter::Shuffle { size } => codec::shuffle::bytes(&from, *size as usize, &mut into),
            Filter::Transpose(axes) => {
                codec::transpose::to_c_order(&from, axes, held, self.array.dtype.size(), &mut into)?;
            }
            Filter::Column(column) => {
                codec::column::elements(&from, *column, self.array.dtype, room, &mut into)?
            }
            Filter::Fletcher32 | Filter::Crc32c => {}
        }
        if let Cow::Owned(used) = from {
            self.spare.push(used);
        }
        Ok(Cow::Owned(into))
    }

    /// Writes the fill value to elements that are inside the array but outside its stored part.
    fn fill_outside(&self, number: u64, held: &[u64], out: &mut [u8]) {
        if self.array.stored == self.array.shape {
            return;
        }
        let Some(extent) = self.array.extent(number) else { return };
        let inside: Vec<u64> = extent
            .origin
            .iter()
            .zip(&self.array.stored)
            .zip(held)
            .map(|((start, stored), held)| stored.saturating_sub(*start).min(*held))
            .collect();
        if inside == held {
            return;
        }
        let mut at = vec![0u64; held.len()];
        for element in out.chunks_exact_mut(self.array.dtype.size()) {
            if at.iter().zip(&inside).any(|(at, inside)| at >= inside) {
                element.copy_from_slice(&self.array.fill);
            }
            for (at, length) in at.iter_mut().zip(held).rev() {
                *at += 1;
                if *at < *length {
                    break;
                }
                *at = 0;
            }
        }
    }
}

/// Returns whether the writer did not apply a filter. A mask has a bit for each of the first 32 filters.
const fn masked(mask: u32, bit: u32) -> bool {
    bit < u32::BITS && mask >> bit & 1 == 1
}

/// Checks and removes a checksum.
fn strip(from: Bytes<'_>, check: fn(&[u8]) -> Result<usize, FormatError>) -> Result<Bytes<'_>, FormatError> {
    let bytes = check(&from)?;
    Ok(match from {
        Cow::Borrowed(all) => Cow::Borrowed(all.get(..bytes).unwrap_or(all)),
        Cow::Owned(mut all) => {
            all.truncate(bytes);
            Cow::Owned(all)
        }
    })
}
