//! The nodes that a directory has from before.

use std::path::{Path, PathBuf};

use crate::args::MAX_NODES;
use crate::error::CliError;

/// What every node makes in its target on its first start.
const ID_FILE: &str = "target.id";

/// Directory of a node's target.
pub fn target(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("node{number}"))
}

/// Refuses to start fewer nodes than there are: every file with a stripe on one that is left out could not be read.
pub fn check(dir: &Path, nodes: u32) -> Result<(), CliError> {
    let last = (0..MAX_NODES).rev().find(|number| target(dir, *number).join(ID_FILE).exists());
    match last.map(|number| number + 1) {
        Some(present) if present > nodes => Err(CliError::Usage(format!(
            "{} has {present} nodes, and files may lie on each of them, so {nodes} are too few: give --nodes {present}, \
             or another --dir",
            dir.display()
        ))),
        _ => Ok(()),
    }
}
