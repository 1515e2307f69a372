//! The arguments of `fsck`.

use clap::Args;
use gristmill_client::Location;

use super::files::ReachArgs;

const EXAMPLES: &str = "Examples:
  gristmill fsck grist:///
  gristmill fsck grist://10.0.0.1:7440/ --remove-unnamed

The entry node knows which files there are; storage nodes have their objects. 'fsck' compares the
two, node by node, and may run while the cluster is used. It reads no bytes of files: 'scrub' does.
It names
- files whose object on a node is not there, not complete, or not the one that was acknowledged:
  put these again from their source, or remove them;
- objects that no file has. They only take space. --remove-unnamed removes them, and is for
  administrators. Do not use it after you restored the entry node from an older copy: files that
  are newer than the copy have no name then, and this would remove them for good.

The exit code is 1 where something was found, and where a node could not be asked.";

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
