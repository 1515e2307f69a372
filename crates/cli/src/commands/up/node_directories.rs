//! The directories of nodes, which may exist from an earlier start.

use std::path::{Path, PathBuf};

use crate::args::MAX_NODES;
use crate::error::CliError;

/// The file that every node makes in its target on its first start.
const ID_FILE: &str = "target.id";

/// Directory of a node's target.
pub fn target(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("node{number}"))
}

/// Refuses to start fewer nodes than the directory has. A file with a stripe on a missing node could not be read.
///
/// # Errors
/// Returns an error if the directory has more than `nodes` nodes.
pub fn check(dir: &Path, nodes: u32) -> Result<(), CliError> {
    let last = (0..MAX_NODES).rev().find(|number| target(dir, *number).join(ID_FILE).exists());
    match last.map(|number| number + 1) {
        Some(present) if present > nodes => Err(CliError::Usage(format!(
            "{} has {present} nodes, and files may be on each of them, so {nodes} are too few: give --nodes {present}, \
             or another --dir",
            dir.display()
        ))),
        _ => Ok(()),
    }
}
