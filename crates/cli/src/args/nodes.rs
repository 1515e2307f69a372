//! The arguments of the commands about nodes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gristmill_client::Location;
use gristmill_server::{
    ActivePriority, MountUsers, NearestEndpoint, Objective, OutsideSources, RadosLocation,
};
use gristmill_transport::Address;

use crate::args::files::ReachArgs;
use crate::args::run::parse_lanes;
use crate::size::Size;

/// Most nodes that `up` starts.
pub const MAX_NODES: u32 = 64;

const UP_EXAMPLES: &str = "Examples:
  gristmill up --dir ./store --nodes 4 --listen 127.0.0.1:7440
  gristmill up --dir ./store --nodes 2 --socket /run/user/1000/gristmill.sock
  gristmill up --dir ./store --wait && gristmill put data.f64 grist://127.0.0.1:7440/

Stop it with Ctrl-C, or, if it was started with --wait, with the 'kill' command that it prints. Files stay in --dir; the
same command serves them again. A node that dies is started again.";

#[derive(Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    /// Where the nodes keep their files: node0, node1, ... in this directory
    #[arg(long)]
    pub dir: PathBuf,
    /// Number of storage nodes, 1 to 64, and not fewer than --dir has
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_NODES)))]
    pub nodes: u32,
    /// Where the entry node listens; the others take free ports of the same host
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7440")]
    pub listen: Address,
    /// Start the nodes in the background, and return when they are ready; their messages go to up.log in --dir
    #[arg(long)]
    pub wait: bool,
    /// Keep objects in a pool of Ceph: rados://POOL/NAME. Node number K has the name NAME.nodeK there
    #[arg(long, value_name = "PLACE")]
    pub objects: Option<RadosLocation>,
    #[command(flatten)]
    pub shared: NodeArgs,
}

const SERVE_EXAMPLES: &str = "Examples:
  gristmill serve --target /data/t0 --listen 127.0.0.1:7440                       the entry node
  gristmill serve --target /data/t1 --listen 127.0.0.1:0 --join 127.0.0.1:7440 \\
      --key /data/t0/cluster.key                                                  a storage node
  gristmill serve --target /data/t0 --listen 10.0.0.1:7440 --ceph rados://gristmill/cluster \\
      --objects rados://gristmill/node0 ...                                       a node whose cluster is noted in Ceph

The entry node makes the key of the cluster; every node that joins needs a copy of that file.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Directory of the node's target; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub target: PathBuf,
    /// Where to listen: HOST:PORT (port 0: a free one) or unix:SOCKET
    #[arg(long, value_name = "ADDR")]
    pub listen: Address,
    /// Address of the entry node; without it and --ceph, this node is the entry node
    #[arg(long, value_name = "ADDR")]
    pub join: Option<Address>,
    /// Where in Ceph the nodes of the cluster note their addresses: rados://POOL/CLUSTER. The first node that starts there becomes the
    /// entry node. Others, and clients with GRISTMILL_CLUSTER=rados://POOL/CLUSTER, find it
    #[arg(long, value_name = "PLACE", conflicts_with = "join")]
    pub ceph: Option<RadosLocation>,
    /// File with the key of the cluster
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Address by which others reach this node, if it differs from --listen
    #[arg(long, value_name = "ADDR")]
    pub advertise: Option<Address>,
    /// Hold no files of the cluster: fold files of attached trees only. The directory of --target then has no objects
    #[arg(long)]
    pub without_store: bool,
    /// Keep objects in a pool of Ceph instead of the directory of --target: rados://POOL/NAME. Each node needs a NAME of its own
    #[arg(long, value_name = "PLACE", conflicts_with = "without_store")]
    pub objects: Option<RadosLocation>,
    /// Stop when standard input ends: for supervisors
    #[arg(long, hide = true)]
    pub supervised: bool,
    /// Number of nodes that are being started, including this one: for supervisors
    #[arg(long, hide = true)]
    pub expect: Option<u32>,
    #[command(flatten)]
    pub shared: NodeArgs,
}

/// Options that `up` passes on to every node, with [`NodeArgs::arguments`].
#[derive(Clone, Debug, PartialEq, Args)]
pub struct NodeArgs {
    /// A Unix socket on which the entry node listens, too; it identifies users by their uid
    #[arg(long, value_name = "PATH", value_parser = parse_socket)]
    pub socket: Option<PathBuf>,
    /// Certificate, PEM; TCP connections then use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub tls_key: Option<PathBuf>,
    /// Certificate authority that signed the certificates of the other nodes, PEM
    #[arg(long, value_name = "FILE", env = "GRISTMILL_CA")]
    pub ca: Option<PathBuf>,
    /// File of names and tokens, one 'NAME TOKEN' per line, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// File of users whom credentials of storage identify in requests to /v2/, one 'NAME HASH' per line: the SHA-256 of ID:SECRET.
    /// Readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub source_users: Option<PathBuf>,
    /// Refuse clients that do not identify themselves
    #[arg(long)]
    pub require_identity: bool,
    /// A principal with all permissions, for example uid:1000
    #[arg(long, value_name = "PRINCIPAL")]
    pub admin: Option<String>,
    /// Number of threads of one fold [default: all cores, divided among the nodes of 'up']
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    pub lanes: Option<usize>,
    /// Share of the processors that active requests may use, 0 to 1; with 0 they are handed back to their clients
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value_t = 1.0)]
    pub active_share: f64,
    /// Priority of active requests after their first 50 ms: 'idle' uses cores that are otherwise idle, and a tenth of the
    /// processors if none is; 'low' uses a tenth of a busy core; 'auto' is low while nobody reads or writes
    #[arg(long, value_name = "HOW", default_value_t = ActivePriority::Idle)]
    pub active_priority: ActivePriority,
    /// Upper bound of the link to clients in bytes per second, for example 125MB for 1 Gbit/s [default: as measured; 10
    /// Gbit/s at first]
    #[arg(long, value_name = "SIZE")]
    pub link: Option<Size>,
    /// Memory for decoding chunks, for example 4GiB [default: an eighth of the machine's, at least 256 MiB]
    #[arg(long, value_name = "SIZE")]
    pub chunk_memory: Option<Size>,
    /// Time that a node minimises when it decides where requests run. 'overlap': that of the busiest of processors, links and
    /// clients. 'paper': the sum of all, as in DOSAS
    #[arg(long, value_name = "WHICH", default_value = "overlap", value_parser = parse_objective)]
    pub objective: Objective,
    /// Servers whose files users may name in requests to /v2/: 'none', those of 'others' (other machines), or 'all', also at
    /// addresses of the nodes themselves
    #[arg(long, value_name = "WHICH", default_value_t = OutsideSources::Others, value_parser = parse_outside_sources)]
    pub outside_sources: OutsideSources,
    /// Bytes on the disk of each node for a cache of attached buckets and web servers, for example 200GiB [default: no cache]
    #[arg(long, value_name = "SIZE")]
    pub outside_cache: Option<Size>,
    /// A server of an object store that is nearer to this node than the endpoint of attached trees, of the same store, for example the
    /// gateway of Ceph on this host: https://s3.site=http://127.0.0.1:7480. May be repeated
    #[arg(long, value_name = "ENDPOINT=NEAREST")]
    pub nearest_endpoint: Vec<NearestEndpoint>,
    /// Users whose identity nodes take on to read files of attached mounts: 'none', 'system' (principals are users of the entry
    /// node's system), or a file with 'PRINCIPAL UID GID [GID ...]' per line. Nodes need CAP_SETUID and CAP_SETGID for it
    #[arg(long, value_name = "USERS", default_value_t = MountUsers::None, value_parser = parse_mount_users)]
    pub mount_users: MountUsers,
    /// Program that tells the entry node on which hosts files of attached mounts lie. Nodes of these hosts fold them
    #[arg(long, value_name = "PROGRAM", value_parser = parse_program)]
    pub locate: Option<PathBuf>,
    /// Keep no statistics of the chunks of variables, and use none
    #[arg(long)]
    pub no_statistics: bool,
}

impl NodeArgs {
    /// The arguments from which `serve` parses equal options. Only the entry node listens on the socket.
    pub fn arguments(&self, is_entry: bool) -> Vec<OsString> {
        let NodeArgs { socket, cert, tls_key, ca, tokens, require_identity, admin, lanes, .. } = self;
        let NodeArgs {
            active_share,
            active_priority,
            link,
            chunk_memory,
            objective,
            no_statistics,
            outside_sources,
            outside_cache,
            nearest_endpoint,
            mount_users,
            source_users,
            locate,
            ..
        } = self;
        let path = |path: &Option<PathBuf>| path.as_deref().map(|path| Path::as_os_str(path).to_owned());
        let values = [
            ("--socket", path(socket).filter(|_| is_entry)),
            ("--cert", path(cert)),
            ("--tls-key", path(tls_key)),
            ("--ca", path(ca)),
            ("--tokens", path(tokens)),
            ("--source-users", path(source_users)),
            ("--admin", admin.as_ref().map(OsString::from)),
            ("--lanes", lanes.map(|lanes| lanes.to_string().into())),
            ("--active-share", Some(active_share.to_string().into())),
            ("--active-priority", Some(active_priority.to_string().into())),
            ("--link", link.as_ref().map(|link| link.to_string().into())),
            ("--chunk-memory", chunk_memory.as_ref().map(|memory| memory.to_string().into())),
            ("--objective", Some(objective.to_string().into())),
            ("--outside-sources", Some(outside_sources.to_string().into())),
            ("--outside-cache", outside_cache.as_ref().map(|cache| cache.to_string().into())),
            ("--locate", path(locate).filter(|_| is_entry)),
            ("--mount-users", mount_users_argument(mount_users).filter(|_| is_entry)),
        ];
        let nearest = nearest_endpoint.iter().map(|one| ("--nearest-endpoint", Some(one.to_string().into())));
        let flags = [("--require-identity", *require_identity), ("--no-statistics", *no_statistics)];
        let named = values
            .into_iter()
            .chain(nearest)
            .filter_map(|(name, value)| Some([name.into(), value?]))
            .flatten();
        named.chain(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.into())).collect()
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share; give a number from 0 to 1, for example 0.5"))
}

fn parse_objective(text: &str) -> Result<Objective, String> {
    match text {
        "overlap" => Ok(Objective::Overlap),
        "paper" => Ok(Objective::Paper),
        other => Err(format!("there is no objective '{other}'; there are overlap and paper")),
    }
}

fn parse_outside_sources(text: &str) -> Result<OutsideSources, String> {
    match text {
        "none" => Ok(OutsideSources::None),
        "others" => Ok(OutsideSources::Others),
        "all" => Ok(OutsideSources::All),
        other => Err(format!("there is no '{other}'; there are none, others and all")),
    }
}

fn parse_mount_users(text: &str) -> Result<MountUsers, String> {
    match text {
        "none" => Ok(MountUsers::None),
        "system" => Ok(MountUsers::System),
        // A node may start in another directory than 'up'.
        path => std::path::absolute(path).map(MountUsers::File).map_err(|error| error.to_string()),
    }
}

/// Reads the path of a program, and makes it absolute, because a node may start in another directory than 'up'.
fn parse_program(text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text).map_err(|error| error.to_string())
}

fn mount_users_argument(users: &MountUsers) -> Option<OsString> {
    match users {
        MountUsers::None => None,
        MountUsers::System => Some("system".into()),
        MountUsers::File(path) => Some(path.into()),
    }
}

/// Reads the path of a Unix socket, and makes it absolute, because the address of a node must be absolute.
fn parse_socket(text: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    match format!("unix:{}", path.display()).parse() {
        Ok(Address::Unix(path)) => Ok(path),
        Ok(other) => Err(format!("{other} is not a Unix socket")),
        Err(error) => Err(error.to_string()),
    }
}

const TOP_EXAMPLES: &str = "Examples:
  gristmill top grist://127.0.0.1:7440/
  gristmill top --once | less
  gristmill top --json

In a terminal it runs until you press q; h lists the keys. The entry node shows the same in a browser: open
http://HOST:PORT/.";

#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// The cluster: grist://HOST:PORT/, or grist:/// with GRISTMILL_CLUSTER set
    #[arg(default_value = "grist:///")]
    pub cluster: Location,
    /// Seconds between two questions to the nodes, 0.5 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub interval: Duration,
    /// Print one picture of one interval and end; the default if standard output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Print the reports of the nodes once, as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.5..=3600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("'{text}' is not a time; give seconds from 0.5 to 3600"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
pub struct CertArgs {
    /// Where to write ca.pem, cert.pem and key.pem
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Further names and addresses for the certificate, besides those of this machine
    pub names: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::{Command, FromArgMatches};

    use super::*;

    fn parse(arguments: &[OsString]) -> NodeArgs {
        let command = NodeArgs::augment_args(Command::new("serve").no_binary_name(true));
        NodeArgs::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap()
    }

    #[test]
    fn a_node_gets_every_option_that_up_was_given() {
        let given = [
            "--socket=/run/g.sock",
            "--cert=c.pem",
            "--tls-key=k.pem",
            "--ca=ca.pem",
            "--tokens=t",
            "--source-users=s",
            "--admin=uid:7",
            "--lanes=3",
            "--active-share=0.25",
            "--active-priority=low",
            "--link=125MB",
            "--chunk-memory=3GiB",
            "--objective=paper",
            "--require-identity",
            "--no-statistics",
            "--outside-sources=all",
            "--outside-cache=200GiB",
            "--nearest-endpoint=https://s3.site=http://127.0.0.1:7480",
            "--mount-users=/etc/gristmill/users",
            "--locate=/usr/bin/locate",
        ];
        let all = NodeArgs::augment_args(Command::new("serve"));
        assert_eq!(all.get_arguments().count(), given.len(), "every option is tried");
        let options = parse(&given.map(OsString::from));
        assert_eq!(parse(&options.arguments(true)), options);
        let of_others =
            NodeArgs { socket: None, mount_users: MountUsers::None, locate: None, ..options.clone() };
        assert_eq!(parse(&options.arguments(false)), of_others);
        let defaults = parse(&[]);
        assert_eq!(parse(&defaults.arguments(true)), defaults);
    }

    #[test]
    fn the_path_of_a_socket_is_made_absolute() {
        let path = std::env::current_dir().map(|dir| dir.join("g.sock"));
        assert_eq!(parse_socket("g.sock").ok(), path.ok());
        assert_eq!(parse_socket("/run/g.sock"), Ok(PathBuf::from("/run/g.sock")));
        for wrong in ["", "/", "/run/"] {
            assert!(parse_socket(wrong).is_err(), "{wrong}");
        }
    }
}
