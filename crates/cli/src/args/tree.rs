//! The arguments of the commands that move, copy and measure files and directories of a cluster.

use clap::Args;
use gristmill_client::Location;

use super::files::{QuietArgs, ReachArgs};

const MV_EXAMPLES: &str = "Examples:
  gristmill mv grist:///run1.nc grist:///old/run1.nc
  gristmill mv grist:///new.zarr grist:///archive/
  gristmill mv grist:///a.nc grist:///b.nc grist:///runs/

A file replaces a file of its new name. If the destination is a directory, or ends with /, the name stays the same. Each
file or directory is moved in one step: others see it under the old name or under the new one.";

#[derive(Debug, Args)]
#[command(after_help = MV_EXAMPLES, override_usage = "gristmill mv [OPTIONS] <SOURCE>... <DESTINATION>")]
pub struct MvArgs {
    /// The files or directories, grist://HOST:PORT/PATH, and their destination on the same cluster
    #[arg(num_args = 2.., value_names = ["SOURCE", "DESTINATION"], required = true)]
    pub paths: Vec<Location>,
    #[command(flatten)]
    pub reach: ReachArgs,
}

const CP_EXAMPLES: &str = "Examples:
  gristmill cp grist:///run1.nc grist:///run1-copy.nc
  gristmill cp -r grist:///o.zarr grist://storage7:7440/o.zarr

The bytes pass through this machine, a few at a time. To copy from or to this machine use 'get' and 'put'.";

#[derive(Debug, Args)]
#[command(after_help = CP_EXAMPLES, override_usage = "gristmill cp [OPTIONS] <SOURCE>... <DESTINATION>")]
pub struct CpArgs {
    /// The files, grist://HOST:PORT/PATH, and their destination, on the same cluster or on another
    #[arg(num_args = 2.., value_names = ["SOURCE", "DESTINATION"], required = true)]
    pub paths: Vec<Location>,
    /// Copy directories with all their files
    #[arg(short, long)]
    pub recursive: bool,
    #[command(flatten)]
    pub tuning: QuietArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct DuArgs {
    /// The directories, or files: grist://HOST:PORT/PATH, or grist:///PATH with GRISTMILL_CLUSTER set
    #[arg(default_value = "grist:///")]
    pub paths: Vec<Location>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}
