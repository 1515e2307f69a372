//! The state that all requests of a node share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gristmill_namespace::Namespace;
use gristmill_object_fold::ObjectFolder;
use gristmill_peers::Peers;
use gristmill_runtime::{ErrorKind, Options};
use gristmill_store::ObjectStore;
use gristmill_wire::{Grant, Key, MAX_DEPTH, Rights};
use tokio::sync::Notify;

use crate::active_uploads::ActiveUploads;
use crate::attached::{Locator, MountedCeph, OpenTrees, Sight};
use crate::checks::Checks;
use crate::cluster::LastAnswer;
use crate::contention::Contention;
use crate::contention::pace::FoldPace;
use crate::entry_node::EntryNode;
use crate::error::{Answer, Refusal};
use crate::group_work::GroupWork;
use crate::identity::Identities;
use crate::limits::{ROW_BYTES, ROWS_AHEAD, SILENCE};
use crate::memory::Memory;
use crate::options::OutsideSources;
use crate::outside_connections::OutsideConnections;
use crate::permit::{Permit, Permits};
use crate::removed::Removed;
use crate::reserve::{Reserve, full};
use crate::sent::Sent;
use crate::statistics::StatisticsStore;
use crate::turns::Turns;
use crate::users::Users;

/// Number of a target that has not joined a cluster yet.
pub(crate) const NOT_JOINED: u32 = u32::MAX;

/// State that all requests of a node share.
pub(crate) struct Shared {
    /// The objects of files of the cluster.
    pub store: Arc<dyn ObjectStore>,
    /// Folds inside the storage of the store, if it can.
    pub folder: Option<Arc<dyn ObjectFolder>>,
    /// Whether the node holds files of the cluster. If not, the store is empty.
    pub holds_files: bool,
    /// Statistics of chunks, unless the option disables them.
    pub statistics: Option<Arc<StatisticsStore>>,
    /// Space on the target's disk for removals.
    pub reserve: Reserve,
    pub key: Key,
    pub peers: Peers,
    pub identities: Identities,
    /// Address at which others reach this node.
    pub address: String,
    /// The namespace, on the entry node.
    pub namespace: Option<Box<dyn Namespace>>,
    /// Attached trees that this node has open.
    pub trees: OpenTrees,
    /// The users of mounts for principals.
    pub users: Users,
    /// The nodes that reach attached trees, on the entry node.
    pub sight: Sight,
    /// Tells where files of mounts lie, on the entry node.
    pub locator: Option<Locator>,
    /// Tells where files of mounts of CephFS lie.
    pub mounted_ceph: MountedCeph,
    /// Where the entry node is, on other nodes.
    pub entry: Option<EntryNode>,
    /// Notified when there may be objects to remove.
    pub garbage: Notify,
    /// Turns of folds for values.
    pub folds: Arc<Turns>,
    /// Turns to ask other nodes for folds, by the number of nodes that have passed the request on.
    pub relays: [Arc<Turns>; MAX_DEPTH as usize + 1],
    pub value_folds: Permits,
    pub row_folds: Permits,
    /// Jobs that this node does together with other nodes.
    pub group_work: Arc<GroupWork>,
    pub group_permits: Permits,
    /// Memory for larger values from other members.
    pub collectives: Arc<Memory>,
    /// Turns of requests by path.
    pub runs: Arc<Turns>,
    pub waiting_runs: Permits,
    /// Permits of uploads of objects.
    pub uploads: Permits,
    pub active_uploads: Arc<ActiveUploads>,
    pub removed: Removed,
    /// Permits of uploads of whole files.
    pub file_uploads: Permits,
    /// Permits of reads of whole files over HTTP.
    pub file_reads: Permits,
    /// Permits of connections with a known principal.
    pub connections: Permits,
    pub scrubs: Permits,
    /// Permits of reductions of single chunks.
    pub reductions: Permits,
    /// Turns of reductions of single chunks. They do not wait for folds, and folds not for them.
    pub reducing: Arc<Turns>,
    /// Memory for reductions of single chunks.
    pub reduced: Arc<Memory>,
    /// The sources that users may name in requests for reductions.
    pub outside_sources: OutsideSources,
    /// Connections to these sources. They are not those of attached trees.
    pub user_sources: OutsideConnections,
    /// Held while a part of an object is compared with its checksums.
    pub scrubbing: tokio::sync::Mutex<()>,
    pub fscks: Permits,
    /// Held while a page of objects is compared with the namespace.
    pub comparing: tokio::sync::Mutex<()>,
    /// Memory for answers to messages of extents.
    pub extents: Arc<Memory>,
    /// Memory for answers of folds for values.
    pub answers: Arc<Memory>,
    /// Memory for gRPC requests.
    pub requests: Arc<Memory>,
    /// Memory for chunks that are decoded.
    pub chunks: Arc<Memory>,
    /// Checks of folds and of requests by path.
    pub checks: Checks,
    /// Turns of actions.
    pub actions: Arc<Turns>,
    pub contention: Arc<Contention>,
    /// Time of the last heartbeat of each storage node, on the entry node.
    pub heard: Mutex<HashMap<u32, Instant>>,
    /// Number of nodes that must join before files can be opened; 0 after all have joined.
    pub expected: AtomicU32,
    /// The last answer about all nodes, on the entry node.
    pub last_cluster: LastAnswer,
    /// Counter of the bytes that were sent.
    pub sent: Sent,
    pub started: Instant,
    pub lanes: Option<usize>,
    pub number: AtomicU32,
}

impl Shared {
    /// Number of this node's target.
    pub fn number(&self) -> Answer<u32> {
        match self.number.load(Ordering::Relaxed) {
            NOT_JOINED => Err(Refusal::new(
                ErrorKind::Unavailable,
                format!(
                    "storage node {} has not joined its cluster yet; wait for its entry node",
                    self.address
                ),
            )),
            number => Ok(number),
        }
    }

    /// Whether a target's node has sent a heartbeat lately. Just after the start all nodes count as alive.
    pub fn alive(&self, number: u32) -> bool {
        self.started.elapsed() < SILENCE || self.silent(number).is_some_and(|silent| silent < SILENCE)
    }

    /// Time since the last heartbeat of a target's node. `None` if there was none since this node started.
    pub fn silent(&self, number: u32) -> Option<Duration> {
        if self.number().is_ok_and(|own| own == number) {
            return Some(Duration::ZERO);
        }
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(&number).map(Instant::elapsed)
    }

    /// Checks that all nodes that are being started have joined, on the entry node.
    ///
    /// # Errors
    /// Returns an error if some have not joined yet.
    pub fn ready(&self) -> Answer<()> {
        let expected = self.expected.load(Ordering::Relaxed);
        if expected == 0 {
            return Ok(());
        }
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).len();
        let joined = u32::try_from(heard).unwrap_or(u32::MAX).saturating_add(1);
        if joined >= expected {
            // The check is done once: nodes that are lost later do not matter here.
            self.expected.store(0, Ordering::Relaxed);
            return Ok(());
        }
        let text = format!(
            "the cluster is starting: {joined} of its {expected} nodes are there; wait, with --wait 60"
        );
        Err(Refusal::new(ErrorKind::Unavailable, text))
    }

    pub fn set_number(&self, number: u32) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Opens a sealed grant, and checks that it has these rights.
    pub fn grant(&self, sealed: &str, rights: Rights) -> Answer<Grant> {
        let grant = self.key.open(sealed, now())?;
        if grant.rights != rights {
            return Err(Refusal::new(
                ErrorKind::Denied,
                "the grant is for something else; open the file again",
            ));
        }
        Ok(grant)
    }

    /// Takes a permit for a principal. Without one, returns an error that the node is busy, with the time to try again.
    pub fn permit(&self, permits: &Permits, principal: &Arc<str>) -> Answer<Permit> {
        let again = |full| {
            Refusal::busy(&format!("storage node {} {full}", self.address), self.contention.retry_after())
        };
        permits.take(principal).map_err(again)
    }

    /// The permits for requests of every kind.
    pub fn permits(&self) -> [&Permits; 11] {
        [
            &self.connections,
            &self.value_folds,
            &self.row_folds,
            &self.group_permits,
            &self.waiting_runs,
            &self.uploads,
            &self.file_uploads,
            &self.file_reads,
            &self.scrubs,
            &self.reductions,
            &self.fscks,
        ]
    }

    /// Refuses new objects if the disk has space only for removals.
    pub fn has_room(&self) -> Answer<()> {
        if self.reserve.is_whole() { Ok(()) } else { Err(full(self.number().ok(), &self.address)) }
    }

    /// The pace of a fold for a principal.
    pub fn pace(&self, principal: &Arc<str>) -> FoldPace {
        FoldPace::new(self.contention.cap.clone(), self.chunks.clone(), principal.clone())
    }

    /// The memory for requests of every kind.
    pub fn memories(&self) -> [&Memory; 6] {
        [&self.requests, &self.chunks, &self.extents, &self.collectives, &self.answers, &self.reduced]
    }

    /// Options of folds with this kernel on this node.
    pub fn options(&self, max_record: u64, kernel: &str) -> Options {
        let options = Options::default();
        Options {
            lanes: self.lanes.unwrap_or(options.lanes),
            block_bytes: self.contention.block_bytes(kernel, options.block_bytes),
            row_bytes: ROW_BYTES,
            rows_ahead: ROWS_AHEAD,
            max_record,
            ..options
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
