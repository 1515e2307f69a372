//! BloscLZ, Blosc's own codec, a relative of FastLZ.
//!
//! It differs from LZF in three ways. The upper 3 bits of a first byte are a length less 2 counted from 1; after 7
//! further bytes are added as long as they are 255. A distance whose 5 and 8 bits are all ones is followed by 16 more
//! bits, big-endian. In the very first byte only the lower 5 bits count.

use super::copy_back;
use crate::FormatError;

/// Largest distance that fits 13 bits.
const NEAR: usize = 8191;

/// Decodes a block to at most `bytes` bytes and appends them.
pub fn block(from: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let cut = || FormatError::chunk("the blosclz data is cut off");
    let start = out.len();
    let room = start.saturating_add(bytes);
    let mut rest = from;
    let mut mask = 31;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let first = usize::from(*first) & mask;
        mask = 255;
        if first < 32 {
            let (run, behind) = rest.split_at_checked(first + 1).ok_or_else(cut)?;
            if run.len() > room.saturating_sub(out.len()) {
                return Err(super::too_much("blosclz", bytes));
            }
            out.extend_from_slice(run);
            rest = behind;
            continue;
        }
        let mut length = (first >> 5) - 1;
        if length == 6 {
            loop {
                let (more, behind) = rest.split_first().ok_or_else(cut)?;
                rest = behind;
                length += usize::from(*more);
                if *more != 255 {
                    break;
                }
            }
        }
        let (low, behind) = rest.split_first().ok_or_else(cut)?;
        rest = behind;
        let mut distance = ((first & 31) << 8) + usize::from(*low);
        if distance == NEAR {
            let (far, behind) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            rest = behind;
            distance = usize::from(u16::from_be_bytes(*far)) + NEAR;
        }
        if distance >= out.len() - start || !copy_back(out, distance + 1, length + 3, room) {
            return Err(FormatError::chunk("the blosclz data copies bytes that are not there, or too many"));
        }
    }
    Ok(())
}
