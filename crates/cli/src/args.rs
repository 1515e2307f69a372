//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use gristmill_client::Location;
use gristmill_kernel::DType;
use gristmill_wire::Place;

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
    /// Copy files to storage nodes, or stripe one over local targets
    Put(PutArgs),
    /// Copy a file out of its targets
    Get(GetArgs),
    /// List files of a cluster
    Ls(LsArgs),
    /// Show how a file lies on its targets
    Stat(StatArgs),
    /// Remove a striped file and its objects
    Rm(RmArgs),
    /// Change who may read and write a file of a cluster
    Chmod(ChmodArgs),
    /// List the storage nodes of a cluster
    Nodes(NodesArgs),
    /// Start a cluster on this machine: several storage nodes, supervised, and one entry port
    Up(UpArgs),
    /// Run one storage node
    Serve(Box<ServeArgs>),
    /// Make a certificate authority and a server certificate for tests
    Cert(CertArgs),
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
  gristmill run mean grist://127.0.0.1:7440/data.f64 --type f64 --explain

'gristmill kernels' lists the kernels, 'gristmill kernels NAME' the parameters of one.
Exit code: 0 an answer, 1 a failure, 2 a request that makes no sense, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// What to compute, for example sum; 'gristmill kernels' lists them
    pub kernel: String,
    /// The file: on storage nodes (grist://HOST:PORT/PATH), plain, or the layout file (*.grist) of a striped one
    pub path: Location,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// A parameter of the kernel, NAME=VALUE; may be given several times
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<(String, String)>,
    /// Print one JSON object; integers beyond 2^53 and non-finite numbers are strings
    #[arg(long)]
    pub json: bool,
    /// Where folds run: on the storage nodes, at the client over plain reads, or where less is moved
    #[arg(long, value_name = "storage|client|auto", default_value = "auto", value_parser = parse_place)]
    pub place: Place,
    /// Say before the answer where it is computed, why, and what the other place would move
    #[arg(long)]
    pub explain: bool,
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

const PUT_EXAMPLES: &str = "Examples:
  gristmill put data.f64 grist://127.0.0.1:7440/data.f64
  gristmill put rows.bin grist:///rows.bin --record 80 --stripe 64KiB
  gristmill put run1.nc run2.nc grist:///runs/
  gristmill put data.f64 data.grist --on /disk0,/disk1,/disk2";

#[derive(Debug, Args)]
#[command(after_help = PUT_EXAMPLES)]
pub struct PutArgs {
    /// The files to copy, and where to: grist://HOST:PORT/PATH (a directory, with / at its end, for several files),
    /// or the layout file to make (*.grist) for a file striped over directories; '-' is standard input
    #[arg(num_args = 2.., value_names = ["SOURCE", "DESTINATION"], required = true)]
    pub paths: Vec<String>,
    /// Which targets, in the order in which stripes are dealt: numbers of the cluster's targets, or directories
    #[arg(long, value_name = "TARGET,TARGET,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// How many targets of the cluster [default: all]
    #[arg(long, value_name = "N", conflicts_with = "on")]
    pub targets: Option<u32>,
    /// Stripe unit
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub stripe: Size,
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
    pub path: Location,
    /// Where to write it; '-' is standard output
    pub destination: PathBuf,
    #[command(flatten)]
    pub tuning: QuietArgs,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// The directory, or file: grist://HOST:PORT/PATH
    #[arg(default_value = "grist:///")]
    pub path: Location,
    /// Show owner, permission bits, size, stripe unit, targets and time
    #[arg(short, long)]
    pub long: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// The file
    pub path: Location,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// The files: grist://HOST:PORT/PATH, or layout files (*.grist)
    #[arg(required = true)]
    pub paths: Vec<Location>,
}

#[derive(Debug, Args)]
pub struct ChmodArgs {
    /// Permission bits, as 640
    #[arg(value_parser = parse_mode)]
    pub mode: u16,
    /// The file: grist://HOST:PORT/PATH
    pub path: Location,
}

#[derive(Debug, Args)]
pub struct NodesArgs {
    /// The cluster: grist://HOST:PORT/
    #[arg(default_value = "grist:///")]
    pub cluster: Location,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const UP_EXAMPLES: &str = "Examples:
  gristmill up --dir ./store --nodes 4 --listen 127.0.0.1:7440
  gristmill up --dir ./store --nodes 2 --socket /run/user/1000/gristmill.sock

Stop it with Ctrl-C. Files stay in --dir; the same command goes on with them. A node that dies is started again.";

#[derive(Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    /// Where the nodes keep their files: node0, node1, ... in this directory
    #[arg(long)]
    pub dir: PathBuf,
    /// How many storage nodes
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub nodes: u32,
    /// Where the entry node listens; the others take free ports of the same host
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7440")]
    pub listen: String,
    #[command(flatten)]
    pub shared: NodeArgs,
}

const SERVE_EXAMPLES: &str = "Examples:
  gristmill serve --target /data/t0 --listen 127.0.0.1:7440                       the entry node
  gristmill serve --target /data/t1 --listen 127.0.0.1:0 --join 127.0.0.1:7440 \\
      --key /data/t0/cluster.key                                                  a storage node

The entry node makes the key of the cluster; every node that joins needs a copy of that file.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Directory of the node's target; made where there is none
    #[arg(long, value_name = "DIR")]
    pub target: PathBuf,
    /// Where to listen: HOST:PORT (port 0: a free one) or unix:SOCKET
    #[arg(long, value_name = "ADDR")]
    pub listen: String,
    /// Address of the entry node; without it this node is one
    #[arg(long, value_name = "ADDR")]
    pub join: Option<String>,
    /// File with the key of the cluster
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Address that others reach this node by, if it is not the one it listens on
    #[arg(long, value_name = "ADDR")]
    pub advertise: Option<String>,
    /// Stop when standard input ends: for supervisors
    #[arg(long, hide = true)]
    pub supervised: bool,
    #[command(flatten)]
    pub shared: NodeArgs,
}

/// What `up` passes on to every node.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// A Unix socket for the entry node to listen on as well: users are told apart by their uid
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Certificate, PEM: connections over TCP are made over TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub tls_key: Option<PathBuf>,
    /// Certificate authority that other nodes are checked against, PEM
    #[arg(long, value_name = "FILE", env = "GRISTMILL_CA")]
    pub ca: Option<PathBuf>,
    /// File of names and tokens, 'NAME TOKEN' a line, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Refuse connections that do not say who asks
    #[arg(long)]
    pub require_identity: bool,
    /// A principal who may do everything, for example uid:1000
    #[arg(long, value_name = "PRINCIPAL")]
    pub admin: Option<String>,
    /// Threads of one fold [default: all cores, divided among the nodes of 'up']
    #[arg(long, value_name = "N")]
    pub lanes: Option<usize>,
}

#[derive(Debug, Args)]
pub struct CertArgs {
    /// Where to write ca.pem, cert.pem and key.pem
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Names and addresses that the certificate is for, besides those of this machine
    pub names: Vec<String>,
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

fn parse_place(text: &str) -> Result<Place, String> {
    match text {
        "storage" => Ok(Place::Storage),
        "client" => Ok(Place::Client),
        "auto" => Ok(Place::Auto),
        _ => Err(format!("'{text}' is no place; use storage, client or auto")),
    }
}

fn parse_mode(text: &str) -> Result<u16, String> {
    match u16::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err(format!("'{text}' is no mode; write permission bits as 640")),
    }
}
