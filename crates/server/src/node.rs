//! A running node: its start and stop.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gristmill_namespace::{Namespace, NamespaceOptions, Principal, SqliteNamespace};
use gristmill_peers::{Peers, PeersOptions};
use gristmill_rados::{Lease, NodeRegistry, RadosOptions, RegisteredNode};
use gristmill_runtime::Options;
use gristmill_sources::RangeCache;
use gristmill_transport::{Address, ClientTls, Dialer, DialerOptions, Listener, ServerTls, TransportError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::attached::{Locator, MountedCeph, OpenTrees, Sight};
use crate::blocking::blocking;
use crate::checks::Checks;
use crate::cluster::LastAnswer;
use crate::collect::WRITABLE;
use crate::contention::Contention;
use crate::contention::options::ContentionOptions;
use crate::entry_node::EntryNode;
use crate::identity::Identities;
use crate::limits::{
    ANSWER_MEMORY, COLLECTIVE_MEMORY, EXTENT_MEMORY, MAX_ACTIONS, MAX_CONNECTIONS_OF_ONE, MAX_FILE_READS,
    MAX_FILE_UPLOADS, MAX_FOLDS, MAX_FSCKS, MAX_GROUP_WORK, MAX_REDUCING, MAX_REDUCTIONS, MAX_RELAYS,
    MAX_ROW_FOLDS, MAX_RUNS, MAX_SCRUBS, MAX_UPLOADS, MAX_WAITING, MAX_WAITING_RUNS, OBJECT_STALL, PUT_LEASE,
    REDUCTION_MEMORY, REQUEST_MEMORY, STOP_GRACE,
};
use crate::memory::{Memory, chunk_memory};
use crate::outside_connections::OutsideConnections;
use crate::permit::Permits;
use crate::private::close_to_others;
use crate::removed::Removed;
use crate::reserve::Reserve;
use crate::routes::router;
use crate::sent::Sent;
use crate::shared::{NOT_JOINED, Shared};
use crate::statistics::StatisticsStore;
use crate::turns::Turns;
use crate::users::Users;
use crate::{NodeObjects, NodeOptions, ServerError, entry_node, join, membership, target};

/// A storage node that runs until it is stopped or dropped.
pub struct Node {
    address: Address,
    shared: Arc<Shared>,
    notice: Option<String>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Result<(), ServerError>>>,
    /// Its entry in Ceph.
    lease: Option<Lease>,
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
        if !options.listen.is_local() && (tls.is_none() || !options.identifies_users()) {
            return Err(ServerError::Usage(format!(
                "{} can be reached from other machines: give --cert and --tls-key (gristmill cert makes some for tests) \
                 and --tokens or --source-users, or listen on 127.0.0.1",
                options.listen
            )));
        }
        let (tokens, source_users) = (options.tokens.as_deref(), options.source_users.as_deref());
        let identities = Identities::load(tokens, source_users, options.require_identity)?;
        let users = Users::load(&options.mount_users)?;
        let lacks_key = |joins: bool| joins && options.key.is_none();
        let needs_key = || {
            let text = "a node that joins a cluster needs its key: give --key FILE, made by the entry node";
            ServerError::Usage(text.into())
        };
        // Nothing is made in the directory before.
        if lacks_key(options.join.is_some()) {
            return Err(needs_key());
        }
        let (closed, registry, joins) = find_entry(&options).await?;
        let entry = joins.is_none();
        let locator = options.locate.as_deref().filter(|_| entry).map(Locator::start).transpose()?;
        let (dir, objects) = (options.target.clone(), options.objects.clone());
        let holds_files = objects != NodeObjects::None;
        let reached_by = options.advertise.as_deref().and_then(|text| text.parse().ok());
        let reached_by: Address = reached_by.unwrap_or_else(|| options.listen.clone());
        if lacks_key(!entry) {
            return Err(needs_key());
        }
        let (objects, statistics, cache, reserve) = blocking({
            let (dir, threads, recovery) = (dir.clone(), Handle::current(), options.recovery.clone());
            move || {
                let reserve = Reserve::open(&dir);
                let tell = &mut |far| {
                    if let Some(recovery) = &recovery {
                        recovery.send_replace(Some(far));
                    }
                };
                let opened = target::open(&dir, &objects, &addresses_of(&reached_by), tell)?;
                if entry {
                    membership::check_entry(&dir, &*opened.store)?;
                }
                let books = options
                    .statistics
                    .then(|| StatisticsStore::open(&dir, opened.store.clone(), threads))
                    .transpose()?;
                let cache_dir = dir.join(target::CACHE_FOLDER);
                let cache =
                    options.outside_cache.map(|bytes| RangeCache::open(&cache_dir, bytes)).transpose();
                let cache = cache.map_err(|error| ServerError::Usage(error.to_string()))?;
                Ok::<_, ServerError>((opened, books, cache, reserve))
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
            let options = NamespaceOptions { admin, renew_leases: Some(PUT_LEASE) };
            Some(Box::new(SqliteNamespace::open_with(&dir, options)?) as Box<dyn Namespace>)
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
                Listener::from_socket(host, socket, tls)?
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
        let listener = listener.senders(contention.senders.clone());
        // The reserve is made last, so that the store and the namespace find space.
        let reserve = blocking(move || {
            reserve.keep();
            Ok::<_, ServerError>(reserve)
        })
        .await?;
        let shared = Arc::new(Shared {
            store: objects.store,
            folder: objects.folder,
            holds_files,
            statistics,
            reserve,
            key,
            peers,
            identities,
            address: options.advertise.clone().unwrap_or_else(|| address.to_string()),
            namespace,
            trees: OpenTrees::new(Handle::current(), cache, options.nearest_endpoints),
            users,
            sight: Sight::default(),
            locator,
            mounted_ceph: MountedCeph::default(),
            entry: joins,
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
            reductions: Permits::new(MAX_REDUCTIONS, "reductions of chunks"),
            reducing: Turns::new(MAX_REDUCING, MAX_REDUCTIONS),
            reduced: Memory::new(REDUCTION_MEMORY, "reductions of chunks"),
            outside_sources: options.outside_sources,
            user_sources: OutsideConnections::new(Handle::current()),
            scrubbing: tokio::sync::Mutex::default(),
            fscks: Permits::new(MAX_FSCKS, "comparisons with the namespace"),
            comparing: tokio::sync::Mutex::default(),
            extents: Memory::new(EXTENT_MEMORY, "extents"),
            answers: Memory::new(ANSWER_MEMORY, "answers"),
            requests: Memory::new(REQUEST_MEMORY, "requests"),
            chunks: Memory::new(chunk_memory(options.chunk_memory), "chunks"),
            checks: Checks::new(MAX_WAITING + MAX_GROUP_WORK + MAX_ROW_FOLDS, contention.clone()),
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
        let mut node =
            Node { address, shared: shared.clone(), notice: closed, stop, tasks: Vec::new(), lease: None };
        join::first(&shared, &id).await?;
        // Clients that connected before wait, and find a node of its cluster.
        for listener in [Some(listener), socket].into_iter().flatten() {
            let router = router(&shared);
            let stopped = stopped.clone();
            node.tasks.push(tokio::spawn(async move { Ok(listener.serve(router, until(stopped)).await?) }));
        }
        if let Some(entry) = shared.entry.as_ref().map(EntryNode::given) {
            let (dir, state) = (dir.clone(), shared.clone());
            blocking(move || membership::remember(&dir, &entry, &state.key)).await?;
        }
        if let Some(registry) = registry {
            let own = RegisteredNode { id: id.clone(), address: shared.address.clone() };
            node.lease = Some(blocking(move || Ok::<_, ServerError>(registry.register(&own)?)).await?);
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
        // Who looks for the node does not find it any more. Without an answer of Ceph the lease ends by itself.
        if let Some(lease) = self.lease.take() {
            let ended = blocking(move || {
                drop(lease);
                Ok::<_, ServerError>(())
            });
            let _ = tokio::time::timeout(STOP_GRACE, ended).await;
        }
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

/// Closes the directory of the target to others, and finds out where the entry node is. The results are a message about the directory, the place in
/// Ceph where nodes are noted, and the way to the entry node, unless this node is the entry node.
async fn find_entry(
    options: &NodeOptions,
) -> Result<(Option<String>, Option<Arc<NodeRegistry>>, Option<EntryNode>), ServerError> {
    let (dir, join, location) = (options.target.clone(), options.join.clone(), options.registry.clone());
    blocking(move || {
        let closed = close_to_others(&dir)?;
        let Some(location) = location else { return Ok((closed, None, join.map(EntryNode::At))) };
        let registry = Arc::new(NodeRegistry::open(&location, &RadosOptions::of_environment().user)?);
        let joins = entry_node::find(&dir, registry.clone(), &location)?;
        Ok((closed, Some(registry), joins))
    })
    .await
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

/// The addresses of a host. A name that is not known has none.
fn addresses_of(address: &Address) -> Vec<IpAddr> {
    match address {
        Address::Tcp { host, .. } => {
            (host.as_str(), 0).to_socket_addrs().into_iter().flatten().map(|socket| socket.ip()).collect()
        }
        Address::Unix(_) => Vec::new(),
    }
}
