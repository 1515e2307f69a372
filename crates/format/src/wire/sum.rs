//! The checksum at the end of a head and of a page.

use super::number::bad;
use crate::FormatError;

/// Appends the CRC-32C of the bytes, as [`Head::decode`](super::Head::decode) and [`Page::decode`](super::Page::decode)
/// expect it.
pub fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Checks the sum and returns the bytes before it.
pub fn without_sum(bytes: &[u8]) -> Result<&[u8], FormatError> {
    match bytes.split_last_chunk::<4>() {
        Some((before, sum)) if crc32c::crc32c(before) == u32::from_le_bytes(*sum) => Ok(before),
        _ => Err(bad("its checksum does not agree; it was changed on the way")),
    }
}
