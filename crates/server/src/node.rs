//! A running node: its start and stop, and the state that its requests share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::middleware::from_fn_with_state;
use gristmill_namespace::{Namespace, NamespaceOptions, Principal};
use gristmill_peers::{Peers, PeersOptions};
use gristmill_runtime::{ErrorKind, Options};
use gristmill_store::LocalStore;
use gristmill_transport::{Address, ClientTls, Dialer, DialerOptions, Listener, ServerTls, TransportError};
use gristmill_wire::{Grant, Key, MAX_DEPTH, Rights};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::active_uploads::ActiveUploads;
use crate::cluster::LastAnswer;
use crate::collect::WRITABLE;
use crate::contention::Contention;
use crate::contention::options::ContentionOptions;
use crate::contention::pace::FoldPace;
use crate::error::{Answer, Refusal};
use crate::group_work::GroupWork;
use crate::identity::Identities;
use crate::limits::{
    ANSWER_MEMORY, COLLECTIVE_MEMORY, EXTENT_MEMORY, MAX_ACTIONS, MAX_CHECKS, MAX_CONNECTIONS_OF_ONE,
    MAX_FILE_READS, MAX_FILE_UPLOADS, MAX_FOLDS, MAX_GROUP_WORK, MAX_RELAYS, MAX_ROW_FOLDS, MAX_RUNS,
    MAX_SCRUBS, MAX_UPLOADS, MAX_WAITING, MAX_WAITING_RUNS, OBJECT_STALL, PUT_LEASE, REQUEST_MEMORY,
    ROW_BYTES, ROWS_AHEAD, SILENCE, STOP_GRACE,
};
use crate::memory::{Memory, chunk_memory};
use crate::permit::{Permit, Permits};
use crate::private::close_to_others;
use crate::removed::Removed;
use crate::reserve::{Reserve, full};
use crate::sent::Sent;
use crate::statistics::StatisticsStore;
use crate::turns::Turns;
use crate::{
    NodeOptions, ServerError, cluster, door, files, flight, fsck, join, load, members, membership, metrics,
    no_route, object_page, objects, page, scrub, status, target,
};

/// Number of a target that has not joined a cluster yet.
const NOT_JOINED: u32 = u32::MAX;

/// State that all requests of a node share.
pub(crate) struct Shared {
    pub store: Arc<LocalStore>,
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
    pub namespace: Option<Namespace>,
    /// Address of the entry node, on other nodes.
    pub entry: Option<String>,
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
    /// Held while a part of an object is compared with its checksums.
    pub scrubbing: tokio::sync::Mutex<()>,
    /// Memory for answers to messages of extents.
    pub extents: Arc<Memory>,
    /// Memory for answers of folds for values.
    pub answers: Arc<Memory>,
    /// Memory for gRPC requests.
    pub requests: Arc<Memory>,
    /// Memory for chunks that are decoded.
    pub chunks: Arc<Memory>,
    /// Turns to check a fold or a request by path.
    pub checks: Arc<Turns>,
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
    started: Instant,
    lanes: Option<usize>,
    number: AtomicU32,
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
    pub fn permits(&self) -> [&Permits; 8] {
        [
            &self.connections,
            &self.value_folds,
            &self.row_folds,
            &self.group_permits,
            &self.waiting_runs,
            &self.uploads,
            &self.file_uploads,
            &self.file_reads,
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
    pub fn memories(&self) -> [&Memory; 5] {
        [&self.requests, &self.chunks, &self.extents, &self.collectives, &self.answers]
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

/// A storage node that runs until it is stopped or dropped.
pub struct Node {
    address: Address,
    shared: Arc<Shared>,
    notice: Option<String>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Result<(), ServerError>>>,
}

impl Node {
    /// Starts a node. Returns once it listens and, with an entry node, has joined it.
    ///
    /// # Errors
    /// Returns an error if the options do not fit together, the address is in use, the store or the namespace cannot be
    /// opened, or the entry node refuses the node.
    pub async fn start(options: NodeOptions) -> Result<Node, ServerError> {
        let tls = match &options.tls {
            Some((cert, key)) => Some(ServerTls::load(cert, key)?),
            None => None,
        };
        if !options.listen.is_local() && (tls.is_none() || options.tokens.is_none()) {
            return Err(ServerError::Usage(format!(
                "{} can be reached from other machines: give --cert and --tls-key (gristmill cert makes some for tests) \
                 and --tokens, or listen on 127.0.0.1",
                options.listen
            )));
        }
        let identities = Identities::load(options.tokens.as_deref(), options.require_identity)?;
        let entry = options.join.is_none();
        let dir = options.target.clone();
        if !entry && options.key.is_none() {
            let text = "a node that joins a cluster needs its key: give --key FILE, made by the entry node";
            return Err(ServerError::Usage(text.into()));
        }
        let (store, statistics, reserve, closed) = blocking({
            let (dir, threads, recovery) = (dir.clone(), Handle::current(), options.recovery.clone());
            move || {
                let closed = close_to_others(&dir)?;
                let reserve = Reserve::open(&dir);
                let tell = &mut |far| {
                    if let Some(recovery) = &recovery {
                        recovery.send_replace(Some(far));
                    }
                };
                let store = target::open(&dir, tell)?;
                if entry {
                    membership::check_entry(&dir, &store)?;
                }
                let books = options
                    .statistics
                    .then(|| StatisticsStore::open(&dir, store.clone(), threads))
                    .transpose()?;
                Ok::<_, ServerError>((store, books, reserve, closed))
            }
        })
        .await?;
        let key_file = options.key.clone().unwrap_or_else(|| dir.join(target::KEY_FILE));
        let key = target::key(&key_file, entry)?;
        if !entry {
            membership::check_joining(&dir, &key)?;
        }
        let admin = options.admin.as_deref().map(str::parse::<Principal>).transpose()?;
        let namespace = if entry {
            Some(Namespace::open_with(&dir, NamespaceOptions { admin, renewed: Some(PUT_LEASE) })?)
        } else {
            None
        };
        let id = target::id(&dir)?;
        let ca = options.ca.as_deref().map(ClientTls::from_ca).transpose()?;
        let mut dial = DialerOptions::default();
        dial.tls = ca;
        let dialer = Dialer::new(dial);
        let peers = Peers::new(dialer, Handle::current(), PeersOptions::default())?;
        let listener = set_up(match (&options.handed, &options.listen) {
            (Some(socket), Address::Tcp { host, .. }) => {
                let address = options.listen.clone();
                let socket =
                    socket.try_clone().map_err(|source| TransportError::Listen { address, source })?;
                Listener::handed(host, socket, tls)?
            }
            _ => Listener::bind(&options.listen, tls).await?,
        });
        let address = listener.address();
        let socket = match &options.socket {
            Some(path) => Some(bind_socket(path).await?),
            None => None,
        };
        let folding = options.lanes.unwrap_or(Options::default().lanes);
        let contention_options = ContentionOptions::new(&options, folding)?;
        let contention =
            Contention::start(contention_options).map_err(|source| ServerError::Thread { source })?;
        let listener = listener.watched(contention.senders.clone());
        // The reserve is made last, so that the store and the namespace find space.
        let reserve = blocking(move || {
            reserve.keep();
            Ok::<_, ServerError>(reserve)
        })
        .await?;
        let shared = Arc::new(Shared {
            store,
            statistics,
            reserve,
            key,
            peers,
            identities,
            address: options.advertise.clone().unwrap_or_else(|| address.to_string()),
            namespace,
            entry: options.join.clone(),
            garbage: Notify::new(),
            folds: Turns::new(MAX_FOLDS, MAX_WAITING + MAX_GROUP_WORK),
            relays: std::array::from_fn(|_| Turns::new(MAX_RELAYS, MAX_WAITING)),
            value_folds: Permits::new(MAX_WAITING, "folds for values"),
            row_folds: Permits::new(MAX_ROW_FOLDS, "folds for rows"),
            group_work: Arc::default(),
            group_permits: Permits::new(MAX_GROUP_WORK, "requests of several passes"),
            collectives: Memory::new(COLLECTIVE_MEMORY, "values of collectives"),
            runs: Turns::new(MAX_RUNS, MAX_WAITING_RUNS),
            waiting_runs: Permits::new(MAX_WAITING_RUNS, "requests by path"),
            active_uploads: Arc::default(),
            removed: Removed::new(WRITABLE),
            uploads: Permits::new(MAX_UPLOADS, "uploads of objects"),
            file_uploads: Permits::new(MAX_FILE_UPLOADS, "uploads of files"),
            file_reads: Permits::new(MAX_FILE_READS, "reads of files by path"),
            connections: Permits::new(MAX_CONNECTIONS_OF_ONE, "connections"),
            scrubs: Permits::new(MAX_SCRUBS, "scrubs"),
            scrubbing: tokio::sync::Mutex::default(),
            extents: Memory::new(EXTENT_MEMORY, "extents"),
            answers: Memory::new(ANSWER_MEMORY, "answers"),
            requests: Memory::new(REQUEST_MEMORY, "requests"),
            chunks: Memory::new(chunk_memory(options.chunk_memory), "chunks"),
            checks: Turns::new(MAX_CHECKS, MAX_WAITING + MAX_GROUP_WORK + MAX_ROW_FOLDS),
            actions: Turns::new(MAX_ACTIONS, MAX_WAITING),
            contention,
            heard: Mutex::default(),
            expected: AtomicU32::new(options.expect.unwrap_or(0)),
            last_cluster: LastAnswer::default(),
            sent: Sent::default(),
            started: Instant::now(),
            lanes: options.lanes,
            number: AtomicU32::new(NOT_JOINED),
        });
        let (stop, stopped) = watch::channel(false);
        let mut node = Node { address, shared: shared.clone(), notice: closed, stop, tasks: Vec::new() };
        join::first(&shared, &id).await?;
        // Clients that connected before wait, and find a node of its cluster.
        for listener in [Some(listener), socket].into_iter().flatten() {
            let router = router(&shared);
            let stopped = stopped.clone();
            node.tasks.push(tokio::spawn(async move { Ok(listener.serve(router, until(stopped)).await?) }));
        }
        if let Some(entry) = shared.entry.clone() {
            let (dir, state) = (dir.clone(), shared.clone());
            blocking(move || membership::remember(&dir, &entry, &state.key)).await?;
        }
        if entry {
            node.tasks.push(tokio::spawn(crate::collect::collect(shared, stopped)));
        } else {
            node.tasks.push(tokio::spawn(join::keep(shared, id, stopped)));
        }
        Ok(node)
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Address on which it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Message about the start for the administrator, if there is one.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Number of its target in the cluster.
    pub fn number(&self) -> Option<u32> {
        self.shared.number().ok()
    }

    /// Stops taking requests, waits a few seconds for running ones, and closes the store.
    ///
    /// # Errors
    /// Returns an error if a task of the node ended with an error, or if the store cannot be closed.
    pub async fn stop(mut self) -> Result<(), ServerError> {
        let _ = self.stop.send(true);
        let mut result = Ok(());
        for task in self.tasks.drain(..) {
            match task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => result = Err(error),
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    result =
                        Err(ServerError::Internal { what: format!("a part of the node panicked: {error}") })
                }
            }
        }
        result
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.contention.stop();
        let _ = self.stop.send(true);
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // An error means that the node was dropped, which is a stop too.
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn bind_socket(path: &Path) -> Result<Listener, ServerError> {
    Ok(set_up(Listener::bind(&Address::Unix(path.to_owned()), None).await?))
}

fn set_up(listener: Listener) -> Listener {
    listener.shutdown_grace(STOP_GRACE).body_silence(|method, path| {
        match method == http::Method::PUT && path.starts_with("/objects/") {
            true => OBJECT_STALL,
            false => gristmill_transport::CLIENT_STALL,
        }
    })
}

fn router(shared: &Arc<Shared>) -> Router {
    objects::routes()
        .merge(scrub::routes())
        .merge(files::routes())
        .merge(members::routes())
        .merge(load::routes())
        .merge(metrics::routes())
        .merge(status::routes())
        .merge(cluster::routes())
        .merge(fsck::routes())
        .merge(object_page::routes())
        .merge(page::routes())
        .fallback(no_route::no_path)
        .method_not_allowed_fallback(no_route::no_method)
        .with_state(shared.clone())
        .route_service(&format!("{}{{*method}}", door::GRPC), flight::service(shared.clone()))
        .layer(from_fn_with_state(shared.clone(), door::enter))
}

/// Runs work that may wait for a disk on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static, E: From<ServerError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ServerError::Internal { what: format!("a request panicked: {error}") }.into()),
    }
}

impl From<ServerError> for Refusal {
    fn from(error: ServerError) -> Refusal {
        Refusal::new(ErrorKind::Failed, error.to_string())
    }
}
