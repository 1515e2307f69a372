//! Shards: files with several chunks and an index of them (the codec `sharding_indexed`).

use crate::array::Array;
use crate::codec::checksum;
use crate::source::{self, Source};
use crate::table::ChunkLocation;
use crate::{FormatError, MAX_METADATA_BYTES};

use super::bad;

/// Offset and length in the index of a shard for a chunk that is not stored.
const NOTHING: u64 = u64::MAX;

/// Bytes of an entry of the index: the offset of a chunk and its length.
const ENTRY: u64 = 16;

/// The structure of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Chunks along each axis of a shard.
    pub chunks: Vec<u64>,
    /// Whether the index is at the end of the file instead of its beginning.
    pub at_end: bool,
    /// Whether a CRC32C follows the index.
    pub checked: bool,
}

impl Shards {
    /// Reads the index of the shard at these coordinates of the grid of shards, and appends the locations of its
    /// chunks. Chunks outside the array are ignored.
    pub fn locations(
        &self,
        shard: &dyn Source,
        array: &Array,
        coordinates: &[u64],
        file: u32,
        out: &mut Vec<ChunkLocation>,
    ) -> Result<(), FormatError> {
        let count = self.chunks.iter().try_fold(1u64, |all, chunks| all.checked_mul(*chunks));
        let bytes =
            count.and_then(|count| count.checked_mul(ENTRY)?.checked_add(if self.checked { 4 } else { 0 }));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(bad("a shard has too many chunks"));
        };
        if bytes > shard.len() {
            return Err(bad("a shard is shorter than its index: it is truncated"));
        }
        let at = if self.at_end { shard.len() - bytes } else { 0 };
        let index = source::read(shard, at, bytes, MAX_METADATA_BYTES)?;
        if self.checked {
            checksum::crc32c(&index).map_err(|_| bad("the checksum of a shard's index does not agree"))?;
        }
        let (entries, _) = index.as_chunks::<8>();
        let (entries, _) = entries.as_chunks::<2>();
        for (number, [offset, bytes]) in (0..count).zip(entries) {
            let (offset, bytes) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*bytes));
            if offset == NOTHING && bytes == NOTHING {
                continue;
            }
            let location = self.inside(coordinates, number).and_then(|at| array.number_at(&at));
            if let Some(chunk) = location {
                out.push(ChunkLocation { chunk, file, offset, bytes, mask: 0 });
            }
        }
        Ok(())
    }

    /// Returns the coordinates of chunk `number` of a shard in the grid of chunks.
    fn inside(&self, shard: &[u64], number: u64) -> Option<Vec<u64>> {
        let mut left = number;
        let mut at = vec![0; self.chunks.len()];
        for ((at, chunks), shard) in at.iter_mut().zip(&self.chunks).zip(shard).rev() {
            *at = shard.checked_mul(*chunks)?.checked_add(left.checked_rem(*chunks)?)?;
            left /= chunks;
        }
        Some(at)
    }
}
