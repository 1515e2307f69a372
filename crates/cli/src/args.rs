//! The command line.

mod array;
mod attach;
mod element;
mod files;
mod fsck;
mod nodes;
mod parameters;
mod run;
mod scrub;
mod tree;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use attach::{AttachArgs, DetachArgs};
pub use element::Element;
pub use files::{ChmodArgs, GetArgs, LsArgs, NodesArgs, PutArgs, ReachArgs, RmArgs, StatArgs};
pub use fsck::FsckArgs;
pub use nodes::{CertArgs, MAX_NODES, NodeArgs, ServeArgs, TopArgs, UpArgs};
pub use run::{RunArgs, SelectionArgs, TuningArgs};
pub use scrub::ScrubArgs;
pub use tree::{CpArgs, DuArgs, MvArgs};

const OVERVIEW: &str = "To begin:
  gristmill up --dir ./store --nodes 4 &
  gristmill put data.f64 grist://127.0.0.1:7440/data.f64 --wait 60
  gristmill run sum grist://127.0.0.1:7440/data.f64 --type f64

A file on storage nodes is named grist://HOST:PORT/PATH, or grist+unix://SOCKET:/PATH, by the entry node's address.
GRISTMILL_CLUSTER=HOST:PORT lets you write grist:///PATH; if the nodes note their addresses in Ceph (serve --ceph), it may be
rados://POOL/CLUSTER. --wait SECONDS, or GRISTMILL_WAIT, waits for a cluster that is still
starting. GRISTMILL_TOKEN, or GRISTMILL_TOKEN_FILE, identifies the user. GRISTMILL_CA names the certificate authority of nodes
that use TLS.";

const COMPLETIONS: &str =
    "The script asks gristmill itself for kernels, types and paths on storage nodes. To install it:
  bash  gristmill completions bash > ~/.local/share/bash-completion/completions/gristmill
  zsh   gristmill completions zsh > a file named _gristmill in a folder of $fpath
  fish  gristmill completions fish > ~/.config/fish/completions/gristmill.fish
For this shell only: source <(gristmill completions bash)";

const MAN: &str = "Write the pages, and read them with 'man gristmill' and 'man gristmill-run':
  gristmill man ~/.local/share/man/man1";

/// Active storage: run the computation where the data is stored, and send back only the answer.
#[derive(Debug, Parser)]
#[command(name = "gristmill", version, propagate_version = true, arg_required_else_help = true, after_help = OVERVIEW)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a kernel over a file and print its answer
    Run(Box<RunArgs>),
    /// List the kernels, or explain one
    Kernels(KernelsArgs),
    /// Copy files to storage nodes, or stripe one file over directories
    Put(PutArgs),
    /// Copy a file or a directory from storage nodes, or a file from the directories it is striped over
    Get(GetArgs),
    /// Rename files and directories of a cluster, or move them into another directory
    Mv(MvArgs),
    /// Copy files and directories of a cluster
    Cp(CpArgs),
    /// Show the total size of files and directories of a cluster
    Du(DuArgs),
    /// List the files of a directory
    Ls(LsArgs),
    /// Show the size, owner and stripes of a file, or the contents of a directory
    Stat(StatArgs),
    /// Remove files and directories of a cluster, or files striped over directories
    Rm(RmArgs),
    /// Change who may read and write a file of a cluster
    Chmod(ChmodArgs),
    /// Show a folder of a mount, of CephFS, of an object store or of a web server under a path of a cluster
    Attach(AttachArgs),
    /// Remove an attached tree from a cluster; its files stay where they are
    Detach(DetachArgs),
    /// Read whole files and compare them with their checksums
    Scrub(ScrubArgs),
    /// Compare the names of a cluster with the objects on its storage nodes
    Fsck(FsckArgs),
    /// List the storage nodes of a cluster and their state
    Nodes(NodesArgs),
    /// Watch a cluster: nodes, load, where requests run, bytes moved and not moved
    Top(TopArgs),
    /// Start a cluster on this machine: several storage nodes, supervised, and one entry port
    Up(Box<UpArgs>),
    /// Run one storage node, for clusters of several machines
    Serve(Box<ServeArgs>),
    /// Make a certificate authority and a server certificate for tests
    Cert(CertArgs),
    /// Read a file and do nothing with it: no kernel can be faster
    Bench(BenchArgs),
    /// Print the completion script for a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(after_help = MAN)]
    Man {
        /// The folder, for example /usr/local/share/man/man1
        folder: PathBuf,
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
