//! Lines for whoever watches, on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error. Where nobody reads it any more, as in `gristmill run ... 2>&1 | head`, it is dropped:
/// `eprintln` would panic.
pub(crate) fn notice(line: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
