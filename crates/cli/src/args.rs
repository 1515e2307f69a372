//! The command line.

mod files;
mod nodes;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use files::{ChmodArgs, GetArgs, LsArgs, NodesArgs, PutArgs, RmArgs, StatArgs};
pub use nodes::{CertArgs, NodeArgs, ServeArgs, UpArgs};
pub use run::{RunArgs, SelectionArgs, TuningArgs};

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

#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// The kernel to explain
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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
