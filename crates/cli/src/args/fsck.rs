//! The arguments of `fsck`.

use clap::Args;
use gristmill_client::Location;

use super::files::ReachArgs;

const EXAMPLES: &str = "Examples:
  gristmill fsck grist:///
  gristmill fsck grist://10.0.0.1:7440/ --remove-unnamed

The entry node has the names of files; storage nodes have their objects. 'fsck' compares names and
objects, node by node. It may run while the cluster is used. It does not read files: 'scrub' does.
It lists
- files whose object on a node is missing, incomplete, or not the one that was acknowledged:
  put these again from their source, or remove them;
- objects that no file has. They only take space. --remove-unnamed removes them; it is for
  administrators. Do not use it after you restored the entry node from an older copy: files that
  are newer than the copy have no name then, and this would remove them for good.

The exit code is 1 if something was found, or if a node could not be asked.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FsckArgs {
    /// The cluster, grist://HOST:PORT/
    pub cluster: Location,
    /// Remove the objects that no file has; for administrators
    #[arg(long)]
    pub remove_unnamed: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}
