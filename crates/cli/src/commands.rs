//! One module for each command or group of commands, and their common functions.

pub mod attach;
pub mod bench;
pub mod cert;
mod file_location;
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

/// The path that means standard input or standard output.
const DASH: &str = "-";

/// Makes a connection to the cluster of a URL. Nothing is sent yet.
fn connect(url: &Url, reach: ReachArgs) -> Result<Cluster, CliError> {
    connect_to_read(url, reach, false)
}

/// Makes a connection for reading files. With `verify`, all bytes that are read are compared with their checksums.
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
