//! How a node is started.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_store::Recovery;
use gristmill_transport::Address;
use tokio::sync::watch;

use crate::{ActivePriority, Objective};

/// What a node needs to know.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Directory of the target; made where there is none.
    pub target: PathBuf,
    /// Where to listen.
    pub listen: Address,
    /// The socket to listen on, if whoever started the node made it: nobody else can take its port while the node is away.
    pub handed: Option<Arc<TcpListener>>,
    /// A Unix socket to listen on as well.
    pub socket: Option<PathBuf>,
    /// Address of the entry node; `None`: this node is the entry node.
    pub join: Option<String>,
    /// File with the key of the cluster. The entry node makes one in its target's directory where none is named.
    pub key: Option<PathBuf>,
    /// Certificate and private key, PEM. Needed to listen beyond this machine.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Certificate authority that other nodes are checked against, PEM.
    pub ca: Option<PathBuf>,
    /// Names and tokens, `NAME TOKEN` a line, readable by its owner only.
    pub tokens: Option<PathBuf>,
    /// Threads of one fold; all cores where nothing is said.
    pub lanes: Option<usize>,
    /// Address that others reach this node by, if it is not the one it listens on.
    pub advertise: Option<String>,
    /// Refuse whoever cannot be told from others: connections over loopback without a token.
    pub require_identity: bool,
    /// A principal who may do everything.
    pub admin: Option<String>,
    /// Share of the processors that active work may use, 0 to 1. With 0 all that can be is handed back.
    pub active_share: f64,
    /// How urgent active work is beside everything else.
    pub active_priority: ActivePriority,
    /// Bytes a second of the link to clients, at most. Where nothing is said it is 10 Gbit/s until it was measured.
    pub link: Option<u64>,
    /// Bytes of memory for chunks that folds decode; a share of the machine's where nothing is said.
    pub chunk_memory: Option<u64>,
    /// What is minimised when it is decided where active requests run.
    pub objective: Objective,
    /// Keep statistics of the chunks of array variables.
    pub statistics: bool,
    /// Hears how far the node is while it recovers its store after a crash.
    pub recovery: Option<watch::Sender<Option<Recovery>>>,
    /// How many nodes of the cluster are being started, the entry node counted: until all of them are there it opens and
    /// creates no files, of which a part would lie elsewhere than it should.
    pub expect: Option<u32>,
}

impl NodeOptions {
    /// An entry node with nothing special about it.
    pub fn entry(target: &Path, listen: Address) -> NodeOptions {
        NodeOptions {
            target: target.to_owned(),
            listen,
            handed: None,
            socket: None,
            join: None,
            key: None,
            tls: None,
            ca: None,
            tokens: None,
            lanes: None,
            advertise: None,
            require_identity: false,
            admin: None,
            active_share: 1.0,
            active_priority: ActivePriority::Idle,
            link: None,
            chunk_memory: None,
            objective: Objective::Overlap,
            statistics: true,
            recovery: None,
            expect: None,
        }
    }

    /// A storage node that joins the entry node at this address, with the key of its cluster.
    pub fn storage(target: &Path, listen: Address, join: String, key: PathBuf) -> NodeOptions {
        NodeOptions { join: Some(join), key: Some(key), ..NodeOptions::entry(target, listen) }
    }
}
