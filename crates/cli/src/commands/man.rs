//! `gristmill man`.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::commands::line;
use crate::error::CliError;

/// Writes a manual page for the program and one for each command into a folder. The folder is made if it does not
/// exist.
pub fn man(folder: &Path) -> Result<ExitCode, CliError> {
    let fail = |source| CliError::File { verb: "write", path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(fail)?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder).map_err(fail)?;
    line(&format!("the manual pages are in {}", folder.display()))
}
