//! The arguments of `scrub`.

use clap::Args;
use gristmill_client::Location;

use super::files::{QuietArgs, ReachArgs};
use crate::size::Size;

const EXAMPLES: &str = "Examples:
  gristmill scrub grist:///
  gristmill scrub grist:///runs/ --rate 50MiB
  gristmill scrub data.grist
  gristmill scrub /disk0

Each block of a file got a checksum when it was written. A scrub reads the files from their
disks, compares all blocks, and lists the blocks that differ; its exit code is then 1. It may run
while the files are used.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScrubArgs {
    /// Files or directories of a cluster, grist://HOST:PORT/PATH; layout files (*.grist); or directories of targets
    #[arg(required = true)]
    pub paths: Vec<Location>,
    /// Upper bound of the bytes read per second, such as 50MiB [default: as fast as the disks are]
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<Size>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tuning: QuietArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
}
