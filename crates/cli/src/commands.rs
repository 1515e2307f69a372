//! One module for each command or group of commands, and what they share.

pub mod bench;
pub mod cert;
mod chunk_places;
pub mod fsck;
pub mod get;
mod get_variable;
mod handed_socket;
pub mod kernels;
pub mod man;
pub mod names;
pub mod nodes;
mod operations;
pub mod put;
pub mod run;
mod run_array;
mod run_output;
mod run_variable;
pub mod scrub;
pub mod serve;
pub mod stat;
mod stat_folder;
pub mod top;
pub mod tree;
pub mod up;
mod variables;

use std::io::Write;
use std::process::ExitCode;

use gristmill_client::{Cluster, ClusterOptions, Url};

use crate::args::ReachArgs;
use crate::error::CliError;

/// Where standard input, or output, is meant.
const DASH: &str = "-";

/// A connection to the cluster of a URL. Nothing is sent yet.
fn connect(url: &Url, reach: ReachArgs) -> Result<Cluster, CliError> {
    connect_to_read(url, reach, false)
}

/// The same for reading files: with `verify` all that is read is compared with its checksums.
fn connect_to_read(url: &Url, reach: ReachArgs, verify: bool) -> Result<Cluster, CliError> {
    let mut options = ClusterOptions::from_env(url.entry.as_deref())?;
    options.wait = reach.wait.unwrap_or(options.wait);
    options.verify |= verify;
    Ok(Cluster::connect(options)?)
}

/// Prints a line of an answer.
fn line(text: &str) -> Result<ExitCode, CliError> {
    writeln!(std::io::stdout(), "{text}").map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
