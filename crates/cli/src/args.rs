//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use gristmill_kernel::DType;

use crate::size::{ByteRange, Size};

/// Active storage: run the computation where the data is stored, and send back only the answer.
#[derive(Debug, Parser)]
#[command(name = "gristmill", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a kernel over a file and print its answer
    Run(RunArgs),
    /// List the kernels, or explain one
    Kernels(KernelsArgs),
    /// Stripe a file over local targets
    Put(PutArgs),
    /// Copy a file, striped or plain, out of its targets
    Get(GetArgs),
    /// Show how a file lies on its targets
    Stat(StatArgs),
    /// Remove a striped file and its objects
    Rm(RmArgs),
    /// Read a file and do nothing with it: the speed no kernel can beat
    Bench(BenchArgs),
    /// Print the completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

const RUN_EXAMPLES: &str = "Examples:
  gristmill run sum data.f64 --type f64
  gristmill run sum wide.bin --type f32 --big-endian --skip 80 --record 40 --range 1GiB:512MiB
  gristmill run grep corpus.txt --param pattern='[A-Z]{12,}K' --param count_only=true
  gristmill run lookup data.f64 --type f64 --param where='> 3.5'

'gristmill kernels' lists the kernels, 'gristmill kernels NAME' the parameters of one.
Exit code: 0 an answer, 1 a failure, 2 a request that makes no sense, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// What to compute, for example sum; 'gristmill kernels' lists them
    pub kernel: String,
    /// The file: a plain one, or the layout file (*.grist) of a striped one
    pub path: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// A parameter of the kernel, NAME=VALUE; may be given several times
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<(String, String)>,
    /// Print one JSON object; integers beyond 2^53 and non-finite numbers are strings
    #[arg(long)]
    pub json: bool,
    /// Save the state here if stopped by Ctrl-C, and go on from it if it is there
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    #[command(flatten)]
    pub tuning: TuningArgs,
}

/// What the records are, and which of them.
#[derive(Debug, Args)]
pub struct SelectionArgs {
    /// Type of the elements: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64; without it the file is text
    #[arg(long = "type", value_name = "TYPE")]
    pub dtype: Option<DType>,
    /// The elements are big-endian
    #[arg(long, requires = "dtype")]
    pub big_endian: bool,
    /// Bytes before the first record
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub skip: Size,
    /// Bytes of a record: of several elements with --type, of text without
    #[arg(long, value_name = "SIZE")]
    pub record: Option<Size>,
    /// Only records (or lines) whose first byte lies in LENGTH bytes from START on; START: is to the end
    #[arg(long, value_name = "START:LENGTH")]
    pub range: Option<ByteRange>,
}

#[derive(Debug, Args)]
pub struct TuningArgs {
    /// Threads that fold [default: all cores]
    #[arg(long, value_name = "N", env = "GRISTMILL_LANES")]
    pub lanes: Option<usize>,
    /// Longest line, its newline counted [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "GRISTMILL_MAX_RECORD")]
    pub max_record: Option<Size>,
    /// Show no progress bar, even to a person
    #[arg(long, env = "GRISTMILL_NO_PROGRESS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_progress: bool,
}

#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// The kernel to explain
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PutArgs {
    /// The file to copy
    pub source: PathBuf,
    /// The layout file to make, *.grist
    pub path: PathBuf,
    /// Directories of the targets, in the order in which stripes are dealt
    #[arg(long, value_name = "DIR,DIR,...", value_delimiter = ',', required = true)]
    pub on: Vec<PathBuf>,
    /// Stripe unit
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub stripe: Size,
    /// Round the stripe unit up to whole records of this size
    #[arg(long, value_name = "SIZE")]
    pub record: Option<Size>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tuning: QuietArgs,
}

#[derive(Debug, Args)]
pub struct QuietArgs {
    /// Show no progress bar, even to a person
    #[arg(long, env = "GRISTMILL_NO_PROGRESS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_progress: bool,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The file to read
    pub path: PathBuf,
    /// Where to write it; '-' is standard output
    pub destination: PathBuf,
    #[command(flatten)]
    pub tuning: QuietArgs,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// The file
    pub path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// The layout file, *.grist
    pub path: PathBuf,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The file to read
    pub path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tuning: TuningArgs,
}

fn parse_param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is no NAME=VALUE; write for example --param pattern=abc")),
    }
}
