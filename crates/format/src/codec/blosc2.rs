//! Blosc 2 chunks (c-blosc2's `README_CHUNK_FORMAT.rst`). They begin like Blosc 1 buffers:
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | as in Blosc 1, with version 3 to 5, and with both flags of the shuffles set |
//! | 16..22 | the filters, in the order in which they were applied |
//! | 24..30 | a parameter for each filter: bytes of an element, or 0 for those of the header |
//! | 31 | flags: 1 a dictionary, 2 a longer header, 8 without its data, 128 for tests; bits 4 to 6 tell that all elements are alike |
//! | 32.. | the offset of each block, and the blocks; a stream of length 0 has zeros, and one of a negative length one byte again and again |
//!
//! Buffers of Blosc 1 are chunks of Blosc 2 too. Dictionaries, codecs and filters of users are not supported.

use super::{bitshuffle, blosc, shuffle, too_much, u32_at};
use crate::FormatError;

const HEADER: usize = 32;
/// Newest version of the format that is known, and the newest of Blosc 1.
const NEWEST: u8 = 5;
const NEWEST_OF_BLOSC_1: u8 = 2;
/// Flags that together tell that the header is that of Blosc 2.
const EXTENDED: u8 = 5;
const PLAIN: u8 = 2;
const NOT_SPLIT: u8 = 16;
/// Flags of chunks that cannot be decoded here.
const UNSUPPORTED: u8 = 1 | 2 | 8 | 128;
/// The flag of a stream that has one byte again and again.
const REPEATED: u8 = 1;

const SHUFFLE: u8 = 1;
const BIT_SHUFFLE: u8 = 2;
const DELTA: u8 = 3;
/// Some bits of each element were set to zero. Nothing is undone.
const TRUNCATED: u8 = 4;

fn bad(why: &str) -> FormatError {
    FormatError::chunk(format!("no blosc2 chunk: {why}"))
}

fn cut() -> FormatError {
    bad("it is cut off")
}

/// The fields of the header of a chunk.
struct Header {
    /// The codec and the flags.
    flags: u8,
    /// Bytes of an element.
    size: usize,
    bytes: usize,
    block: usize,
    /// The code and the parameter of each filter, in the order in which they were applied.
    filters: Vec<(u8, usize)>,
}

/// Decodes one chunk.
pub fn chunk(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let (Some([version, _, flags, size, ..]), Some(bytes), Some(block), Some(all)) =
        (from.first_chunk::<16>(), u32_at(from, 4), u32_at(from, 8), u32_at(from, 12))
    else {
        return Err(cut());
    };
    if (1..=NEWEST_OF_BLOSC_1).contains(version) {
        return blosc::buffer(from, room, out);
    }
    if *version > NEWEST || *version == 0 || flags & EXTENDED != EXTENDED {
        return Err(bad(&format!("version {version} is not known")));
    }
    let bytes = bytes as usize;
    if bytes > room {
        return Err(too_much("blosc2", room));
    }
    let from = from.get(..all as usize).ok_or_else(cut)?;
    let (Some(codes), Some(parameters), Some(more)) = (from.get(16..22), from.get(24..30), from.get(31))
    else {
        return Err(cut());
    };
    if more & UNSUPPORTED != 0 {
        return Err(bad("it has a dictionary, or a header of another kind, which are not supported"));
    }
    let parameters = parameters.iter().map(|parameter| usize::from(*parameter));
    let filters = codes.iter().copied().zip(parameters).filter(|(code, _)| *code != 0);
    let size = usize::from(*size).max(1);
    let header = Header { flags: *flags, size, bytes, block: block as usize, filters: filters.collect() };
    match more >> 4 & 7 {
        0 if bytes == 0 => Ok(()),
        0 if flags & PLAIN != 0 => {
            out.extend_from_slice(from.get(HEADER..HEADER + bytes).ok_or_else(cut)?);
            Ok(())
        }
        0 => blocks(from, &header, out),
        1 => {
            out.resize(out.len() + bytes, 0);
            Ok(())
        }
        2 => match size {
            4 => repeated(&f32::NAN.to_le_bytes(), bytes, out),
            8 => repeated(&f64::NAN.to_le_bytes(), bytes, out),
            _ => Err(bad("only elements of 4 or 8 bytes can be NaN")),
        },
        3 => repeated(from.get(HEADER..HEADER + size).ok_or_else(cut)?, bytes, out),
        _ => Err(bad("its elements were never written")),
    }
}

/// Appends one element again and again.
fn repeated(element: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    if !bytes.is_multiple_of(element.len()) {
        return Err(bad("its length is not that of whole elements"));
    }
    out.extend(element.iter().copied().cycle().take(bytes));
    Ok(())
}

fn blocks(from: &[u8], header: &Header, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let Header { flags, size, bytes, block, .. } = *header;
    if block == 0 {
        return Err(bad("its blocks have no bytes"));
    }
    let (mut made, mut other, begin) = (Vec::new(), Vec::new(), out.len());
    for number in 0..bytes.div_ceil(block) {
        let length = block.min(bytes - number * block);
        let mut at = u32_at(from, HEADER + 4 * number).ok_or_else(cut)? as usize;
        let split = flags & NOT_SPLIT == 0 && length == block;
        let streams = if split { size } else { 1 };
        if !length.is_multiple_of(streams) {
            return Err(bad("its blocks cannot be split into streams"));
        }
        made.clear();
        for _ in 0..streams {
            at = stream(from, at, flags >> 5, length / streams, &mut other, &mut made)?;
        }
        for (place, (code, parameter)) in header.filters.iter().enumerate().rev() {
            other.clear();
            let size = if *parameter == 0 { size } else { *parameter };
            match *code {
                SHUFFLE => shuffle::bytes(&made, size, &mut other),
                BIT_SHUFFLE => {
                    // Elements after the last eight stay at the end.
                    let whole = made.len() - made.len() % (8 * size);
                    let (planes, rest) = made.split_at(whole);
                    bitshuffle::bits(planes, size, &mut other);
                    other.extend_from_slice(rest);
                }
                DELTA if place == 0 => {
                    undo_delta(out.get(begin..).unwrap_or_default(), header.size, &mut made);
                    continue;
                }
                TRUNCATED => continue,
                code => return Err(bad(&format!("filter {code} is not supported there"))),
            }
            std::mem::swap(&mut made, &mut other);
        }
        out.extend_from_slice(&made);
    }
    Ok(())
}

/// Undoes the differences of a block, by XOR. `decoded` has the blocks before it. The first block has the difference of each element to the
/// one before, and others have those to the first block. Bytes after the last whole element stay.
fn undo_delta(decoded: &[u8], size: usize, block: &mut [u8]) {
    let size = match size {
        1 | 2 | 4 => size,
        size if size.is_multiple_of(8) => 8,
        _ => 1,
    };
    let whole = block.len() - block.len() % size;
    let (block, _) = block.split_at_mut(whole);
    if !decoded.is_empty() {
        block.iter_mut().zip(decoded).for_each(|(byte, same)| *byte ^= same);
        return;
    }
    for at in size..block.len() {
        let (before, from_here) = block.split_at_mut(at);
        if let (Some(byte), Some(same)) = (from_here.first_mut(), before.get(at - size)) {
            *byte ^= same;
        }
    }
}

/// Appends the stream at an offset, which decodes to `bytes` bytes. Returns the offset after it.
fn stream(
    from: &[u8],
    at: usize,
    codec: u8,
    bytes: usize,
    spare: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<usize, FormatError> {
    let stored = u32_at(from, at).ok_or_else(cut)?.cast_signed();
    if stored > 0 {
        return blosc::one_stream(from, at, codec, bytes, spare, out);
    }
    if stored == 0 {
        out.resize(out.len() + bytes, 0);
        return Ok(at + 4);
    }
    let token = from.get(at + 4).ok_or_else(cut)?;
    let byte = u8::try_from(stored.unsigned_abs()).ok().filter(|_| token & REPEATED != 0);
    out.resize(out.len() + bytes, byte.ok_or_else(|| bad("a stream has an unknown form"))?);
    Ok(at + 5)
}
