//! Messages on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error. The line is dropped if the reader has closed it, as in
/// `gristmill run ... 2>&1 | head`; `eprintln` would panic.
pub(crate) fn notice(line: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
