//! LZ4 blocks in two framings: HDF5's and numcodecs'.

use super::{too_much, u32_at};
use crate::FormatError;

/// Decodes HDF5's framing (filter 32004): the big-endian length of the data (8 bytes) and of a block (4 bytes), then
/// for each block its stored length (4 bytes) and its bytes. A block that is not shorter than decoded is not
/// compressed.
pub fn hdf5(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let short = || FormatError::chunk("the lz4 data is cut off");
    let (total, rest) = from.split_first_chunk::<8>().ok_or_else(short)?;
    let (block, mut rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let total = usize::try_from(u64::from_be_bytes(*total)).unwrap_or(usize::MAX);
    let block = u32::from_be_bytes(*block) as usize;
    if total > room {
        return Err(too_much("lz4", room));
    }
    if block == 0 && total > 0 {
        return Err(FormatError::chunk("the lz4 data has blocks of no bytes"));
    }
    while out.len() < total {
        let bytes = block.min(total - out.len());
        let (stored, behind) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let (stored, behind) =
            behind.split_at_checked(u32::from_be_bytes(*stored) as usize).ok_or_else(short)?;
        rest = behind;
        if stored.len() == bytes {
            out.extend_from_slice(stored);
        } else {
            block_of(stored, bytes, out)?;
        }
    }
    Ok(())
}

/// Decodes numcodecs' framing: the little-endian length (4 bytes), then one block.
pub fn numcodecs(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let total = u32_at(from, 0).ok_or_else(|| FormatError::chunk("the lz4 data is cut off"))? as usize;
    if total > room {
        return Err(too_much("lz4", room));
    }
    block_of(from.get(4..).unwrap_or_default(), total, out)
}

/// Decodes and appends one block, which must have exactly `bytes` decoded bytes.
pub fn block_of(stored: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let start = out.len();
    out.resize(start.saturating_add(bytes), 0);
    let into = out.get_mut(start..).unwrap_or_default();
    match lz4_flex::block::decompress_into(stored, into) {
        Ok(made) if made == bytes => Ok(()),
        Ok(made) => Err(FormatError::chunk(format!("an lz4 block has {made} bytes and should have {bytes}"))),
        Err(error) => Err(FormatError::chunk(format!("no lz4 block: {error}"))),
    }
}
