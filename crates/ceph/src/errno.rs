//! Error numbers.

use rustix::io::Errno;

/// The result of a function that returns a negative error number.
///
/// # Errors
/// The error is the number.
pub fn checked(returned: i32) -> Result<u32, Errno> {
    u32::try_from(returned).map_err(|_| Errno::from_raw_os_error(returned.saturating_neg()))
}
