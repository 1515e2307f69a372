//! The checksum behind a head and behind a page.

use super::number::bad;
use crate::FormatError;

/// Bytes with their CRC-32C behind them, as [`Head::decode`](super::Head::decode) and [`Page::decode`](super::Page::decode)
/// expect them.
pub fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The bytes before a sum that agrees with them.
pub fn without_sum(bytes: &[u8]) -> Result<&[u8], FormatError> {
    match bytes.split_last_chunk::<4>() {
        Some((before, sum)) if crc32c::crc32c(before) == u32::from_le_bytes(*sum) => Ok(before),
        _ => Err(bad("its checksum does not agree; it was changed on the way")),
    }
}
