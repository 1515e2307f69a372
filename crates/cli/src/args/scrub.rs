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

Each block of a file was given a checksum when it was written. A scrub reads the files from
their disks, compares all blocks, and names those that differ; its exit code is 1 then. It may
run while the files are used.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScrubArgs {
    /// Files or directories of a cluster, grist://HOST:PORT/PATH; layout files (*.grist); or directories of targets
    #[arg(required = true)]
    pub paths: Vec<Location>,
    /// Read at most so many bytes a second, as 50MiB [default: as many as the disks give]
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
