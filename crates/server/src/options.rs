//! Options of a node.

use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_rados::RadosLocation;
use gristmill_store::RecoveryProgress;
use gristmill_transport::Address;
use tokio::sync::watch;

use crate::{ActivePriority, NearestEndpoint, Objective};

/// The sources outside the cluster that users may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideSources {
    /// None: files of the cluster and of attached trees only.
    None,
    /// Servers on other machines.
    #[default]
    Others,
    /// Servers at all addresses, also those of this machine and of its link.
    All,
}

impl fmt::Display for OutsideSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutsideSources::None => "none",
            OutsideSources::Others => "others",
            OutsideSources::All => "all",
        })
    }
}

/// The users of mounted file systems whose identity nodes take on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MountUsers {
    /// None: files of mounts are read with the rights of everybody.
    #[default]
    None,
    /// The users of the system of the entry node: a principal `alice` or `uid:1000` is this user of the system.
    System,
    /// Those of a file with `PRINCIPAL UID GID [GID ...]` on each line.
    File(PathBuf),
}

impl fmt::Display for MountUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountUsers::None => f.write_str("none"),
            MountUsers::System => f.write_str("system"),
            MountUsers::File(path) => path.display().fmt(f),
        }
    }
}

/// Where a node keeps its part of the files of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeObjects {
    /// In the directory of the target.
    #[default]
    Directory,
    /// In a pool of Ceph. The directory of the target has the rest of the node: its id, keys, names and statistics.
    Ceph(RadosLocation),
    /// Nowhere: the node folds files of attached trees only.
    None,
}

/// Options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Directory of the target. It is made if it does not exist.
    pub target: PathBuf,
    /// Address to listen on.
    pub listen: Address,
    /// Socket to listen on, if the parent process made it: no other process can take its port while the node restarts.
    pub handed: Option<Arc<TcpListener>>,
    /// A Unix socket to listen on as well.
    pub socket: Option<PathBuf>,
    /// Address of the entry node. `None` on the entry node itself, and if `registry` says where it is.
    pub join: Option<String>,
    /// Where in Ceph the nodes of the cluster note their addresses. The first node becomes the entry node, and others find it there.
    pub registry: Option<RadosLocation>,
    /// File with the key of the cluster. Without it the entry node makes one in its target's directory.
    pub key: Option<PathBuf>,
    /// Certificate and private key, PEM. Needed to listen on addresses other than this machine's.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Certificate authority of other nodes' certificates, PEM.
    pub ca: Option<PathBuf>,
    /// File with `NAME TOKEN` on each line, readable by its owner only.
    pub tokens: Option<PathBuf>,
    /// File with `NAME HASH` on each line, readable by its owner only: SHA-256 of the `ID:SECRET` of storage that identifies a user in
    /// requests for reductions of chunks.
    pub source_users: Option<PathBuf>,
    /// Threads of one fold. All cores by default.
    pub lanes: Option<usize>,
    /// Address at which others reach this node, if it differs from the address it listens on.
    pub advertise: Option<String>,
    /// Refuse requests without an identity: connections over loopback without a token.
    pub require_identity: bool,
    /// Principal with all rights.
    pub admin: Option<String>,
    /// Share of the processors that active work may use, 0 to 1. With 0 all requests are handed back if possible.
    pub active_share: f64,
    /// Scheduling priority of active work.
    pub active_priority: ActivePriority,
    /// Largest speed of the link to clients, in bytes per second. By default it is 10 Gbit/s until a measurement.
    pub link: Option<u64>,
    /// Bytes of memory for chunks that folds decode. By default a share of the machine's memory.
    pub chunk_memory: Option<u64>,
    /// Quantity that the placement of active requests minimises.
    pub objective: Objective,
    /// The sources outside the cluster that users may name in requests for reductions of chunks.
    pub outside_sources: OutsideSources,
    /// Bytes on the disk of the target for a cache of attached buckets and web servers. By default there is none.
    pub outside_cache: Option<u64>,
    /// Servers of object stores that are nearer to this node than those with which trees are attached.
    pub nearest_endpoints: Vec<NearestEndpoint>,
    /// The users of mounts for principals of the cluster. Only the entry node looks them up.
    pub mount_users: MountUsers,
    /// Program that tells on which hosts files of mounts lie. Only the entry node asks it.
    pub locate: Option<PathBuf>,
    /// Where the node keeps its part of the files of the cluster.
    pub objects: NodeObjects,
    /// Whether to store statistics of the chunks of array variables.
    pub statistics: bool,
    /// Callback with the progress of the recovery of the store after a crash.
    pub recovery: Option<watch::Sender<Option<RecoveryProgress>>>,
    /// Number of nodes of the cluster that are being started, with the entry node. Until all have joined, it opens and
    /// creates no files, since their parts would be on wrong nodes.
    pub expect: Option<u32>,
}

impl NodeOptions {
    /// Default options of an entry node.
    pub fn entry(target: &Path, listen: Address) -> NodeOptions {
        NodeOptions {
            target: target.to_owned(),
            listen,
            handed: None,
            socket: None,
            join: None,
            registry: None,
            key: None,
            tls: None,
            ca: None,
            tokens: None,
            source_users: None,
            lanes: None,
            advertise: None,
            require_identity: false,
            admin: None,
            active_share: 1.0,
            active_priority: ActivePriority::Idle,
            link: None,
            chunk_memory: None,
            objective: Objective::Overlap,
            outside_sources: OutsideSources::Others,
            outside_cache: None,
            nearest_endpoints: Vec::new(),
            mount_users: MountUsers::None,
            locate: None,
            objects: NodeObjects::Directory,
            statistics: true,
            recovery: None,
            expect: None,
        }
    }

    /// Whether users of other machines can say who they are.
    pub(crate) fn identifies_users(&self) -> bool {
        self.tokens.is_some() || self.source_users.is_some()
    }

    /// Default options of a storage node that joins the entry node at this address, with the key of its cluster.
    pub fn storage(target: &Path, listen: Address, join: String, key: PathBuf) -> NodeOptions {
        NodeOptions { join: Some(join), key: Some(key), ..NodeOptions::entry(target, listen) }
    }
}
