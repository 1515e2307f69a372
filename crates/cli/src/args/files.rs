//! What the commands about files take.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gristmill_client::{Location, parse_wait};

use crate::size::Size;

const PUT_EXAMPLES: &str = "Examples:
  gristmill put data.f64 grist://127.0.0.1:7440/data.f64
  gristmill put rows.bin grist:///rows.bin --record 80 --stripe 64KiB
  gristmill put run1.nc run2.nc grist:///runs/
  gristmill put data.f64 data.grist --on /disk0,/disk1,/disk2";

#[derive(Debug, Args)]
#[command(after_help = PUT_EXAMPLES, override_usage = "gristmill put [OPTIONS] <SOURCE>... <DESTINATION>")]
pub struct PutArgs {
    /// The files or folders to copy, and where to: grist://HOST:PORT/PATH (a directory, with / at its end, for several),
    /// or the layout file to make (*.grist) for a file striped over directories; '-' is standard input
    #[arg(num_args = 2.., value_names = ["SOURCE", "DESTINATION"], required = true)]
    pub paths: Vec<String>,
    /// Which targets, in the order in which stripes are dealt: numbers of the cluster's targets, or directories
    #[arg(long, value_name = "TARGET,TARGET,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// How many targets of the cluster [default: all]
    #[arg(long, value_name = "N", conflicts_with = "on")]
    pub targets: Option<u32>,
    /// Stripe unit: bytes that lie together on one target, as 4096, 64KiB or 1MiB [default: 1MiB; of netCDF, HDF5 and
    /// .npy files whole chunks, 1MiB or more]
    #[arg(long, value_name = "SIZE")]
    pub stripe: Option<Size>,
    /// Round the stripe unit up to whole records of this size
    #[arg(long, value_name = "SIZE")]
    pub record: Option<Size>,
    /// Permission bits, as 640 [default: those of the file that is replaced, else 644]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tuning: QuietArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// How a cluster is reached.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReachArgs {
    /// Wait so long for a cluster that is away or still starting [default: 1.4, or GRISTMILL_WAIT]
    #[arg(long, value_name = "SECONDS", value_parser = parse_wait)]
    pub wait: Option<Duration>,
}

/// How bytes are compared with the checksums that they got when they were written.
#[derive(Clone, Copy, Debug, Args)]
pub struct CheckArgs {
    /// Compare all bytes with their checksums, also those that were compared within the last hour
    #[arg(long, env = "GRISTMILL_VERIFY", value_parser = clap::builder::FalseyValueParser::new())]
    pub verify: bool,
}

#[derive(Debug, Args)]
pub struct QuietArgs {
    /// Show no progress bar, even to a person
    #[arg(long, env = "GRISTMILL_NO_PROGRESS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_progress: bool,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The file, or directory: grist://HOST:PORT/PATH, or the layout file (*.grist) of a striped one
    pub path: Location,
    /// Where to write it: a file, a directory for one of the same name, or '-' for standard output
    pub destination: PathBuf,
    /// Write one variable of a netCDF, HDF5, Zarr, .npy or .csv file, as .npy
    #[arg(long, value_name = "NAME")]
    pub var: Option<String>,
    #[command(flatten)]
    pub check: CheckArgs,
    #[command(flatten)]
    pub tuning: QuietArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// The directory, or file: grist://HOST:PORT/PATH, or grist:///PATH with GRISTMILL_CLUSTER set
    #[arg(default_value = "grist:///")]
    pub path: Location,
    /// Show permission bits, owner, size, number of targets and time
    #[arg(short, long)]
    pub long: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// The file: grist://HOST:PORT/PATH, plain, or the layout file (*.grist) of a striped one,
    /// or a folder with Zarr, or a directory of a cluster. Of netCDF, HDF5, Zarr, .npy and .csv, variables and chunks are shown too
    pub path: Location,
    /// Show this variable only, with its attributes: its name, with the groups it is in as group/name
    #[arg(long, value_name = "NAME")]
    pub var: Option<String>,
    /// List where each chunk of the variable lies; on a cluster, on which targets
    #[arg(long, requires = "var")]
    pub chunks: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// The files: grist://HOST:PORT/PATH, or layout files (*.grist)
    #[arg(required = true)]
    pub paths: Vec<Location>,
    /// Remove directories of a cluster with all that lies in them: all of a directory, or nothing
    #[arg(short, long)]
    pub recursive: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct ChmodArgs {
    /// Permission bits, as 640
    #[arg(value_parser = parse_mode)]
    pub mode: u16,
    /// The file: grist://HOST:PORT/PATH
    pub path: Location,
    /// Change all files that lie in a directory
    #[arg(short = 'R', long)]
    pub recursive: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct NodesArgs {
    /// The cluster: grist://HOST:PORT/, or grist:/// with GRISTMILL_CLUSTER set
    #[arg(default_value = "grist:///")]
    pub cluster: Location,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

fn parse_mode(text: &str) -> Result<u16, String> {
    match u16::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err(format!("'{text}' is no mode; write permission bits as 640")),
    }
}
