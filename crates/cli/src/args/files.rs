//! The arguments of the commands about files.

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
    /// The files or folders to copy, and the destination: grist://HOST:PORT/PATH (for several, a directory with / at
    /// its end), or the layout file to make (*.grist) for a file striped over directories; '-' is standard input
    #[arg(num_args = 2.., value_names = ["SOURCE", "DESTINATION"], required = true)]
    pub paths: Vec<String>,
    /// The targets in the order of the stripes: numbers of the cluster's targets, or directories
    #[arg(long, value_name = "TARGET,TARGET,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// How many targets of the cluster [default: all]
    #[arg(long, value_name = "N", conflicts_with = "on")]
    pub targets: Option<u32>,
    /// Stripe unit: consecutive bytes on one target, such as 4096, 64KiB or 1MiB [default: 1MiB; for netCDF, HDF5 and
    /// .npy files whole chunks, 1MiB or more]
    #[arg(long, value_name = "SIZE")]
    pub stripe: Option<Size>,
    /// Round the stripe unit up to whole records of this size
    #[arg(long, value_name = "SIZE")]
    pub record: Option<Size>,
    /// Permission bits, such as 640 [default: those of the file that is replaced, else 644]
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

/// Options for the connection to a cluster.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReachArgs {
    /// Wait this long for a cluster that does not answer or is still starting [default: 1.4, or GRISTMILL_WAIT]
    #[arg(long, value_name = "SECONDS", value_parser = parse_wait)]
    pub wait: Option<Duration>,
}

/// The option to compare all bytes with the checksums that were made when they were written.
#[derive(Clone, Copy, Debug, Args)]
pub struct CheckArgs {
    /// Compare all bytes with their checksums, also bytes that were compared within the last hour
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
    /// The file, or directory: grist://HOST:PORT/PATH, or the layout file (*.grist) of a striped one; or a file of a bucket
    /// or of a web server: s3://BUCKET/KEY, https://HOST/PATH
    pub path: Location,
    /// The file to write; a directory, for a file of the same name; or '-' for standard output
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
    /// The directory, or file: grist://HOST:PORT/PATH, grist:///PATH with GRISTMILL_CLUSTER set, s3://BUCKET/PREFIX, or
    /// https://HOST/PATH
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
    /// The file: grist://HOST:PORT/PATH, s3://BUCKET/KEY, https://HOST/PATH, a plain file, or the layout file (*.grist) of a
    /// striped one; or a folder with Zarr, or a directory of a cluster. For netCDF, HDF5, Zarr, .npy and .csv, variables and
    /// chunks are shown too
    pub path: Location,
    /// Show this variable only, with its attributes. Write a variable of a group as GROUP/NAME
    #[arg(long, value_name = "NAME")]
    pub var: Option<String>,
    /// List the location of each chunk of the variable; on a cluster, with its targets
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
    /// Remove directories of a cluster with all their files: all of a directory, or nothing
    #[arg(short, long)]
    pub recursive: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct ChmodArgs {
    /// Permission bits, such as 640
    #[arg(value_parser = parse_mode)]
    pub mode: u16,
    /// The file: grist://HOST:PORT/PATH
    pub path: Location,
    /// Change all files in a directory
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

pub(super) fn parse_mode(text: &str) -> Result<u16, String> {
    match u16::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err(format!("'{text}' is not a mode; write permission bits such as 640")),
    }
}
