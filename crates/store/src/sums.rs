//! Checksums of the blocks of an object.
//!
//! An object consists of *blocks* of [`BLOCK_BYTES`]; the last one may be shorter. Each block has a CRC-32C
//! (Castagnoli, RFC 3720 appendix B.4) of its bytes up to the end of the object. Sums are kept in *segments* of
//! [`SEGMENT_BLOCKS`] blocks. Segments are read and written as a whole.
//!
//! A sum is computed from the bytes of the writer, and not from bytes that were read back. [`Pieces`] keeps the sums of
//! the written parts of a block and joins them. The parts may come in any order. There is one exception: if a write
//! covers a part of a block that has a sum, the sum of the other bytes is lost. That block is read when the object is
//! flushed.

mod pieces;
mod segment;

pub(crate) use pieces::{Gaps, Pieces};
pub(crate) use segment::{BlockSum, Segment};

/// Bytes of a block. Blocks are small in the tests of this crate, so that short objects have many.
pub(crate) const BLOCK_BYTES: u64 = if cfg!(test) { 32 } else { 64 * 1024 };
/// Blocks of a segment: 32 MiB of an object.
pub(crate) const SEGMENT_BLOCKS: u64 = if cfg!(test) { 4 } else { 512 };

static ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// The CRC-32C of `bytes`.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The sum of some bytes followed by `more`; `crc` is the sum of the first bytes.
pub(crate) fn extend(crc: u32, more: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, more)
}

/// The sum of some bytes followed by `len` zeros; `crc` is the sum of the first bytes.
pub(crate) fn extend_with_zeros(crc: u32, len: u64) -> u32 {
    let (mut crc, mut left) = (crc, len);
    while left > 0 {
        let piece = left.min(BLOCK_BYTES);
        crc = extend(crc, ZEROS.get(..piece as usize).unwrap_or(&ZEROS));
        left -= piece;
    }
    crc
}

/// The sum of two consecutive runs of bytes, from their sums and the length of the second.
pub(crate) fn join(first: u32, second: u32, second_len: u64) -> u32 {
    crc32c::crc32c_combine(first, second, usize::try_from(second_len).unwrap_or(usize::MAX))
}

/// Whether all `bytes` are zeros.
pub(crate) fn are_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| ZEROS.get(..chunk.len()) == Some(chunk))
}
