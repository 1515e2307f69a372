//! The command `gristmill`.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which is its name, and answers its exit code. `myself` starts
/// the same command again.
#[pyfunction]
pub fn main(py: Python<'_>, args: Vec<OsString>, myself: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = gristmill_cli::main(args, myself);
        // The interpreter ends without our own clearing up.
        let flushed = std::io::stdout().flush();
        let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1);
        if flushed.is_err() && number == 0 { 1 } else { number }
    })
}
