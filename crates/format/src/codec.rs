//! One module for each way of storing bytes. Each takes stored bytes and gives what they were made of, never more than
//! `room` bytes, whatever the stored ones say.

pub mod bitshuffle;
pub mod blosc;
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

/// What all codecs say that would give too much.
fn too_much(codec: &str, room: usize) -> FormatError {
    FormatError::chunk(format!("{codec} data holds more than the {room} bytes that it should"))
}

/// The little-endian number at a place.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// Appends `length` bytes that lie `distance` back, which may overlap what is appended: LZ77's copy. False for what
/// cannot be.
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
        // What was appended doubles what can be copied at once.
        let have = out.len() - start;
        let step = have.min(left);
        out.extend_from_within(start..start + step);
        left -= step;
    }
    true
}
