//! One module for each codec. Each takes stored bytes and returns the decoded ones. It never makes more than `room`
//! bytes, for any stored bytes.

pub mod bitshuffle;
pub mod blosc;
pub mod blosc2;
pub mod blosclz;
pub mod checksum;
pub mod column;
pub mod deflate;
pub mod lz4;
pub mod lzf;
pub mod shuffle;
pub mod szip;
pub mod transpose;
pub mod zstd;

use crate::FormatError;

/// The error of all codecs for too many decoded bytes.
fn too_much(codec: &str, room: usize) -> FormatError {
    FormatError::chunk(format!("{codec} data holds more than the {room} bytes that it should"))
}

/// Reads the little-endian number at an offset.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// Appends `length` bytes from `distance` bytes back, which may overlap the appended ones: LZ77's copy. Returns false
/// if that is impossible.
fn copy_back(out: &mut Vec<u8>, distance: usize, length: usize, room: usize) -> bool {
    if distance == 0 || distance > out.len() || length > room.saturating_sub(out.len()) {
        return false;
    }
    let start = out.len() - distance;
    if distance >= length {
        out.extend_from_within(start..start + length);
        return true;
    }
    let mut left = length;
    while left > 0 {
        // Each copy doubles the bytes that the next one can copy at once.
        let have = out.len() - start;
        let step = have.min(left);
        out.extend_from_within(start..start + step);
        left -= step;
    }
    true
}
