//! One module for each group of commands.

pub mod bench;
pub mod cert;
pub mod files;
pub mod kernels;
pub mod names;
pub mod run;
pub mod serve;
pub mod up;

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::error::CliError;

/// Prints the script that completes our commands in a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gristmill", &mut script);
    std::io::stdout().write_all(&script).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
