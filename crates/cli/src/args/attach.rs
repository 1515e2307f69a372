//! The arguments of `attach` and `detach`.

use clap::Args;
use gristmill_client::Location;

use crate::args::ReachArgs;
use crate::args::files::parse_mode;

const EXAMPLES: &str = "Examples:
  gristmill attach /lustre/era5 grist://127.0.0.1:7440/era5
  gristmill attach s3://bucket/cmip6 grist:///cmip6 --region us-east-1 --anonymous
  gristmill attach https://host/data grist:///open
  gristmill attach cephfs:///projects grist:///projects
  gristmill attach --list

The files stay where they are, and are only read. Every node that reaches the tree folds a part of
each file. Credentials come from the environment of the nodes (AWS_ACCESS_KEY_ID and others), not
from arguments. With --user-credentials each user needs credentials of his own.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "gristmill attach [OPTIONS] <TREE> <PATH>\n       gristmill attach --list [CLUSTER]")]
pub struct AttachArgs {
    /// The tree: a folder that the nodes have mounted, or s3://, gs://, az://, http://, https:// or cephfs://; and its path in
    /// the cluster: grist://HOST:PORT/PATH, or /PATH with GRISTMILL_CLUSTER set
    #[arg(num_args = 0..=2, value_names = ["TREE", "PATH"], required_unless_present = "list")]
    pub paths: Vec<String>,
    /// List the attached trees
    #[arg(long, conflicts_with_all = ["endpoint", "region", "user_credentials", "anonymous", "allow_local", "without_change_time", "mode"])]
    pub list: bool,
    /// A server with the protocol of S3 [default: AWS_ENDPOINT_URL of the nodes, else Amazon]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// The region of the bucket [default: AWS_REGION of the nodes]
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Read with the credentials of whoever asks, which he gives in GRISTMILL_SOURCE_ID and GRISTMILL_SOURCE_SECRET; for s3:// and
    /// https:// [default: with those of the nodes]
    #[arg(long, conflicts_with = "anonymous")]
    pub user_credentials: bool,
    /// Ask a public bucket without credentials
    #[arg(long)]
    pub anonymous: bool,
    /// Allow a server at an address of the nodes themselves, or of their link (127.0.0.1, 169.254.0.0/16)
    #[arg(long)]
    pub allow_local: bool,
    /// Leave the time of change out of the versions of files, for mounts that show it differently to each node
    #[arg(long)]
    pub without_change_time: bool,
    /// Permission bits of all files, such as 400 for the owner of the tree only [default: 444]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    /// The path of the tree: grist://HOST:PORT/PATH, or /PATH with GRISTMILL_CLUSTER set
    pub path: Location,
    #[command(flatten)]
    pub reach: ReachArgs,
}
