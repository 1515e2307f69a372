//! LZF (M. Lehmann's LibLZF), which h5py provides as HDF5 filter 32000.
//!
//! A block is a sequence of runs. A first byte `n` below 32 is followed by `n + 1` literal bytes. Otherwise the upper 3
//! bits are a length less 2 (after 7 the next byte is added), and the lower 5 bits and the next byte are a distance
//! less 1, back to the bytes that are copied.

use super::{copy_back, too_much};
use crate::FormatError;

/// Decodes one block.
pub fn block(from: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let cut = || FormatError::chunk("the lzf data is cut off");
    let mut rest = from;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let first = usize::from(*first);
        if first < 32 {
            let (run, behind) = rest.split_at_checked(first + 1).ok_or_else(cut)?;
            if run.len() > room.saturating_sub(out.len()) {
                return Err(too_much("lzf", room));
            }
            out.extend_from_slice(run);
            rest = behind;
            continue;
        }
        let mut length = first >> 5;
        if length == 7 {
            let (more, behind) = rest.split_first().ok_or_else(cut)?;
            length += usize::from(*more);
            rest = behind;
        }
        let (low, behind) = rest.split_first().ok_or_else(cut)?;
        rest = behind;
        let distance = ((first & 31) << 8) + usize::from(*low) + 1;
        if !copy_back(out, distance, length + 2, room) {
            return Err(FormatError::chunk("the lzf data copies bytes that are not there, or too many"));
        }
    }
    Ok(())
}
