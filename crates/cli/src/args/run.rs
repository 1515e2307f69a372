//! The arguments of `run`.

use std::path::PathBuf;

use clap::Args;
use gristmill_client::Location;
use gristmill_runtime::MAX_LANES;
use gristmill_wire::FoldPlace;

use super::array::ArrayArgs;
use super::element::Element;
use super::files::{CheckArgs, ReachArgs};
use super::parameters::ParamArgs;
use crate::size::{ByteRange, Size};

const RUN_EXAMPLES: &str = "Examples:
  gristmill run sum data.f64 --type f64
  gristmill run sum wide.bin --type f32 --big-endian --skip 80 --record 40 --range 1GiB:512MiB
  gristmill run grep corpus.txt --pattern '[A-Z]{12,}K' --count-only
  gristmill run lookup data.f64 --type f64 --where '> 3.5'
  gristmill run quantile data.f64 --type f64 -q 0.1,0.9
  gristmill run mean grist://127.0.0.1:7440/data.f64 --type f64 --explain
  gristmill run sum s3://bucket/data.f64 --type f64
  gristmill run gaussian photo.raw --type u8 --param shape=1080,1920,3 --output blurred.raw
  gristmill run mean tos.nc --axes time --select lat=-30:30 --select time=2001-01:2001-06 --output mean.nc
  gristmill run max tos.nc --var tos --axes lat,lon --expr 'tos - 273.15'
  gristmill run mean tos.nc --var tos --groupby time.season --output seasons.nc
  gristmill run mean tos.nc --var tos --axes lat,lon --weights lat=coslat --resample time=QS --plot tos.png

'gristmill kernels' lists the kernels, 'gristmill kernels NAME' the parameters of one.
Sizes are bytes: 4096, 64KiB, 1MiB, 2GiB.
Exit code: 0 an answer, 1 a failure, 2 a request that makes no sense, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// What to compute, for example sum; 'gristmill kernels' lists them
    pub kernel: String,
    /// The file: on storage nodes (grist://HOST:PORT/PATH), in a bucket (s3://BUCKET/KEY, gs://, az://), on a web server
    /// (https://HOST/PATH), plain, or the layout file (*.grist) of a striped one; with --var, also a folder with Zarr
    pub path: Location,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// A parameter of the kernel, NAME=VALUE; may be given several times
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<(String, String)>,
    #[command(flatten)]
    pub named: ParamArgs,
    /// Destination of a kernel's bytes: a file of this machine, or one on storage nodes (grist://HOST:PORT/PATH), where
    /// each node keeps the bytes that it made [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<Location>,
    /// Print one JSON object; integers beyond 2^53 and non-finite numbers are strings
    #[arg(long)]
    pub json: bool,
    /// Where folds run: on the storage nodes, at the client over plain reads, in the storage daemons of Ceph that keep the objects of the
    /// nodes, or chosen for each request
    #[arg(long, value_name = "storage|client|osd|auto", default_value = "auto", value_parser = parse_place)]
    pub place: FoldPlace,
    /// Print before the answer where it is computed, why, and how much the other place would move
    #[arg(long)]
    pub explain: bool,
    /// Fold what the file has now, in whole records, although programs append to it. Without this, a file that grows meanwhile is
    /// an error. For plain files and files of attached mounts
    #[arg(long, conflicts_with_all = ["checkpoint", "verify"])]
    pub growing: bool,
    /// Save the state here if stopped by Ctrl-C; resume from it if the file exists
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    #[command(flatten)]
    pub check: CheckArgs,
    #[command(flatten)]
    pub tuning: TuningArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
    // Last, because later options would appear under its heading.
    #[command(flatten)]
    pub array: ArrayArgs,
}

/// The type of the records, and which of them are read.
#[derive(Debug, Args)]
pub struct SelectionArgs {
    /// Type of the elements: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64, or NumPy's names: float64, int32, '>f4'. Without it
    /// the file is text, or has the scientific format of its name's ending
    #[arg(long = "type", value_name = "TYPE")]
    pub dtype: Option<Element>,
    /// The elements are big-endian
    #[arg(long, requires = "dtype")]
    pub big_endian: bool,
    /// Bytes before the first record
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub skip: Size,
    /// Bytes per record: of several elements with --type, of text without
    #[arg(long, value_name = "SIZE")]
    pub record: Option<Size>,
    /// Only records (or lines) whose first byte is in the LENGTH bytes from START; START: means to the end
    #[arg(long, value_name = "START:LENGTH")]
    pub range: Option<ByteRange>,
}

#[derive(Debug, Args)]
pub struct TuningArgs {
    /// Number of threads that fold [default: all cores]
    #[arg(long, value_name = "N", env = "GRISTMILL_LANES", value_parser = parse_lanes)]
    pub lanes: Option<usize>,
    /// Longest line with its newline [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "GRISTMILL_MAX_RECORD", value_parser = parse_max_record)]
    pub max_record: Option<Size>,
    /// Show no progress bar, even to a person
    #[arg(long, env = "GRISTMILL_NO_PROGRESS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_progress: bool,
}

pub fn parse_lanes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes) if (1..=MAX_LANES).contains(&lanes) => Ok(lanes),
        _ => Err(format!("give 1 to {MAX_LANES}")),
    }
}

fn parse_max_record(text: &str) -> Result<Size, String> {
    match text.parse()? {
        Size(0) => Err("give at least 1 byte".into()),
        size => Ok(size),
    }
}

fn parse_param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE; write for example --param pattern=abc")),
    }
}

fn parse_place(text: &str) -> Result<FoldPlace, String> {
    match text {
        "storage" => Ok(FoldPlace::Storage),
        "client" => Ok(FoldPlace::Client),
        "osd" => Ok(FoldPlace::Osd),
        "auto" => Ok(FoldPlace::Auto),
        _ => Err(format!("'{text}' is not a place; use storage, client, osd or auto")),
    }
}
