//! The value of an attribute that `fetch_add` changes: 8 bytes, a little-endian `i64`.

use crate::{Result, StoreError};

/// Returns the number in an attribute of 8 bytes, a little-endian `i64`, or 0 without an attribute.
///
/// # Errors
/// The error is [`Invalid`](StoreError::Invalid) if the value has another size.
pub fn decode(value: Option<&[u8]>, name: &str) -> Result<i64> {
    let Some(value) = value else { return Ok(0) };
    value.try_into().map(i64::from_le_bytes).map_err(|_| StoreError::Invalid {
        what: format!("attribute {name:?} has {} bytes and is not a counter", value.len()),
        remedy: "count in an attribute of 8 bytes, or remove this one",
    })
}
