//! Blosc 1 buffers (c-blosc's `README_HEADER.rst`): blocks that are shuffled and then compressed one by one.
//!
//! | bytes | what |
//! |---|---|
//! | 0, 1 | version of the format (1 or 2) and of the codec's |
//! | 2 | flags: 1 shuffled, 2 stored as it is, 4 bit-shuffled, 16 blocks are not split; the upper 3 bits are the codec |
//! | 3 | bytes of an element |
//! | 4..16 | bytes of the data, of a block, and of the whole buffer |
//! | 16.. | the offset of each block; a block has one stream, or one for each byte of an element, each after its length |

use super::{bitshuffle, blosclz, deflate, lz4, shuffle, too_much, u32_at, zstd};
use crate::FormatError;

const HEADER: usize = 16;
const SHUFFLED: u8 = 1;
const PLAIN: u8 = 2;
const BIT_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;
/// A block is split into streams if an element has at most this number of bytes,
const MAX_SPLITS: usize = 16;
/// and each stream has at least this number of bytes.
const MIN_STREAM: usize = 128;

/// Decodes one buffer.
pub fn buffer(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let bad = |why: &str| FormatError::chunk(format!("no blosc buffer: {why}"));
    let (Some([version, _, flags, size, ..]), Some(bytes), Some(block), Some(all)) =
        (from.first_chunk::<HEADER>(), u32_at(from, 4), u32_at(from, 8), u32_at(from, 12))
    else {
        return Err(bad("it is cut off"));
    };
    let (flags, size) = (*flags, usize::from(*size).max(1));
    let (bytes, block, all) = (bytes as usize, block as usize, all as usize);
    if !matches!(version, 1 | 2) {
        return Err(bad(&format!("version {version} is not known, only Blosc 1 is")));
    }
    if bytes > room {
        return Err(too_much("blosc", room));
    }
    let from = from.get(..all).ok_or_else(|| bad("it is cut off"))?;
    if bytes == 0 {
        return Ok(());
    }
    if flags & PLAIN != 0 {
        let plain = from.get(HEADER..HEADER + bytes).ok_or_else(|| bad("it is cut off"))?;
        out.extend_from_slice(plain);
        return Ok(());
    }
    if block == 0 {
        return Err(bad("its blocks have no bytes"));
    }
    let (mut made, mut stream) = (Vec::new(), Vec::new());
    for number in 0..bytes.div_ceil(block) {
        let length = block.min(bytes - number * block);
        let at = u32_at(from, HEADER + 4 * number).ok_or_else(|| bad("it is cut off"))? as usize;
        let split = flags & NOT_SPLIT == 0
            && size <= MAX_SPLITS
            && block / size >= MIN_STREAM
            && length == block
            && length.is_multiple_of(size);
        let streams = if split { size } else { 1 };
        made.clear();
        let mut at = at;
        for _ in 0..streams {
            at = one_stream(from, at, flags >> 5, length / streams, &mut stream, &mut made)?;
        }
        if flags & SHUFFLED != 0 && size > 1 {
            shuffle::bytes(&made, size, out);
        } else if flags & BIT_SHUFFLED != 0 && length >= size {
            bitshuffle::bits(&made, size, out);
        } else {
            out.extend_from_slice(&made);
        }
    }
    Ok(())
}

/// Appends the stream at an offset, which decodes to `bytes` bytes. Returns the offset after it.
pub fn one_stream(
    from: &[u8],
    at: usize,
    codec: u8,
    bytes: usize,
    spare: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<usize, FormatError> {
    let cut = || FormatError::chunk("no blosc buffer: a stream is cut off");
    let stored = u32_at(from, at).ok_or_else(cut)? as usize;
    let (start, end) = (at + 4, (at + 4).checked_add(stored).ok_or_else(cut)?);
    let stored = from.get(start..end).ok_or_else(cut)?;
    if stored.len() == bytes {
        out.extend_from_slice(stored);
        return Ok(end);
    }
    let before = out.len();
    spare.clear();
    match codec {
        0 => blosclz::block(stored, bytes, out)?,
        1 => lz4::block_of(stored, bytes, out)?,
        3 => deflate::zlib(stored, bytes, spare)?,
        4 => zstd::frames(stored, bytes, spare)?,
        2 => {
            return Err(FormatError::chunk(
                "the blosc buffer is compressed with snappy, which is not supported",
            ));
        }
        other => return Err(FormatError::chunk(format!("no blosc buffer: codec {other} is not known"))),
    }
    out.extend_from_slice(spare);
    if out.len() - before != bytes {
        return Err(FormatError::chunk("no blosc buffer: a stream has another length than its block"));
    }
    Ok(end)
}
