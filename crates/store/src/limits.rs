//! The bounds of the store, and the checks against them that every backend makes.

use std::time::Duration;

use crate::{Extent, Result, StoreError};

/// Longest object name, in bytes.
pub const MAX_ID_BYTES: usize = 200;
/// Longest object, in bytes: the largest signed 64-bit file offset.
pub const MAX_OBJECT_BYTES: u64 = i64::MAX as u64;
/// Largest value of one attribute, in bytes.
pub const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;
/// Longest name of an attribute, in bytes.
pub const MAX_ATTRIBUTE_NAME_BYTES: usize = 255;
/// Most attributes on one object.
pub const MAX_ATTRIBUTES: usize = 1024;
/// Most extents in one call that scatters or gathers.
pub const MAX_EXTENTS: usize = 16_384;
/// Most names that one call of `list` returns.
pub const MAX_LIST_PAGE: usize = 1_000;
/// Most intervals that one call of `written` returns.
pub const MAX_WRITTEN_PAGE: usize = 1_024;
/// Most separate written intervals of one object.
pub const MAX_INTERVALS: usize = 65_536;
/// Longest lease of an object that is still arriving.
pub const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Returns `offset + bytes`, the end of a write.
///
/// # Errors
/// The error is [`TooLarge`](StoreError::TooLarge) if no object can be so long.
pub fn write_end(offset: u64, bytes: usize) -> Result<u64> {
    let end = offset.checked_add(bytes as u64).filter(|&end| end <= MAX_OBJECT_BYTES);
    end.ok_or(StoreError::TooLarge { what: "the end of the write", limit: MAX_OBJECT_BYTES })
}

/// Checks the length of an object.
///
/// # Errors
/// The error is [`TooLarge`](StoreError::TooLarge) above [`MAX_OBJECT_BYTES`].
pub fn check_length(length: u64) -> Result<()> {
    if length > MAX_OBJECT_BYTES {
        return Err(StoreError::TooLarge { what: "the length of the object", limit: MAX_OBJECT_BYTES });
    }
    Ok(())
}

/// Checks the time of a lease.
///
/// # Errors
/// The error is [`TooLarge`](StoreError::TooLarge) above [`MAX_LEASE`].
pub fn check_lease(lease: Duration) -> Result<()> {
    if lease > MAX_LEASE {
        return Err(StoreError::TooLarge { what: "the lease in seconds", limit: MAX_LEASE.as_secs() });
    }
    Ok(())
}

/// Checks the name of an attribute.
///
/// # Errors
/// The error is [`InvalidAttribute`](StoreError::InvalidAttribute) if it breaks a rule.
pub fn check_attribute_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_ATTRIBUTE_NAME_BYTES {
        "it is longer than 255 bytes"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    let shown = name.chars().take(64).collect();
    Err(StoreError::InvalidAttribute { name: shown, why })
}

/// Checks the value of an attribute.
///
/// # Errors
/// The error is [`TooLarge`](StoreError::TooLarge) above [`MAX_ATTRIBUTE_BYTES`].
pub fn check_attribute_value(value: &[u8]) -> Result<()> {
    if value.len() > MAX_ATTRIBUTE_BYTES {
        let limit = MAX_ATTRIBUTE_BYTES as u64;
        return Err(StoreError::TooLarge { what: "the value of an attribute", limit });
    }
    Ok(())
}

/// Checks the number of `extents`, that an object can contain them, and that their total length is `bytes`.
/// Returns the largest end, or 0 if every extent is empty.
///
/// # Errors
/// The error is [`TooLarge`](StoreError::TooLarge) or [`Invalid`](StoreError::Invalid).
pub fn check_extents(extents: &[Extent], bytes: usize) -> Result<u64> {
    if extents.len() > MAX_EXTENTS {
        return Err(StoreError::TooLarge { what: "the number of extents", limit: MAX_EXTENTS as u64 });
    }
    let (mut total, mut last) = (0u64, 0u64);
    for extent in extents.iter().filter(|extent| extent.len > 0) {
        let end = extent.offset.checked_add(extent.len).filter(|&end| end <= MAX_OBJECT_BYTES);
        let end =
            end.ok_or(StoreError::TooLarge { what: "the end of an extent", limit: MAX_OBJECT_BYTES })?;
        last = last.max(end);
        total = total.saturating_add(extent.len);
    }
    if total != bytes as u64 {
        let what = format!("the extents cover {total} bytes, the buffer has {bytes}");
        return Err(StoreError::Invalid { what, remedy: "pass a buffer of the total length of the extents" });
    }
    Ok(last)
}
