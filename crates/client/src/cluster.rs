//! A cluster of storage nodes as a client sees it: files by path, from any thread, without an asynchronous runtime.

use std::sync::Arc;
use std::time::Duration;

use gristmill_layout::Layout;
use gristmill_peers::{AT_CLIENT, Files, Peers, PeersOptions, ReceiveCounter};
use gristmill_runtime::{ErrorKind, FileParts, RunError};
use gristmill_transport::{ClientTls, Dialer, DialerOptions};
use gristmill_wire::action::{
    Entry, FileInfo, List, Listing, Node, Nodes, Opened, PathRequest, SetMode, names,
};
use gristmill_wire::{ClusterStatus, FileMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::runtime::Runtime;

use crate::entry_retries::EntryRetries;
use crate::own_rates::OwnRates;
use crate::{ClientError, Location, MAX_WAIT, Url};

/// Threads that drive connections. Folds have other threads.
const NETWORK_THREADS: usize = 2;

/// Values that turn a switch off.
const NO: [&str; 6] = ["0", "n", "no", "off", "f", "false"];

/// Options of a connection to a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Address of the entry node: `HOST:PORT`, or `unix:SOCKET`.
    pub entry: String,
    /// Certificate authority, PEM. With it, connections over TCP use TLS.
    pub ca: Option<PathBuf>,
    /// Token that names the principal. It is sent to the entry node only.
    pub token: Option<String>,
    /// Longest time without a sign of life from a node; 10 seconds by default.
    pub stall: Option<Duration>,
    /// Time for which requests to the entry node are repeated while it is away or its cluster is starting; at least
    /// [`ENTRY_PATIENCE`](crate::ENTRY_PATIENCE).
    pub wait: Duration,
    /// Whether nodes compare all bytes that are read with their checksums, even bytes that they compared within the
    /// last hour.
    pub verify: bool,
}

impl ClusterOptions {
    /// Options from the environment: `GRISTMILL_CA`, `GRISTMILL_TOKEN` or `GRISTMILL_TOKEN_FILE`, `GRISTMILL_WAIT`
    /// (seconds) and `GRISTMILL_VERIFY` (any value except 0, n, no, off, f and false). Without `entry` the address is
    /// that of `GRISTMILL_CLUSTER`.
    ///
    /// # Errors
    /// The error is [`ClientError::Usage`] if no cluster is named or `GRISTMILL_WAIT` is not a number of seconds from 0
    /// to [`MAX_WAIT`], and [`ClientError::Io`] if the file of the token cannot be read.
    pub fn from_env(entry: Option<&str>) -> Result<ClusterOptions, ClientError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let entry = entry.map(str::to_owned).or_else(|| variable("GRISTMILL_CLUSTER")).ok_or_else(|| {
            ClientError::Usage(
                "the URL names no cluster; write grist://HOST:PORT/PATH or set GRISTMILL_CLUSTER".into(),
            )
        })?;
        // The URL that `gristmill up` prints is accepted too.
        let entry = match Location::parse(&entry) {
            Ok(Location::Remote(Url { entry: Some(named), .. })) => named,
            _ => entry.strip_prefix("grist://").map_or(entry.clone(), str::to_owned),
        };
        let token = match (variable("GRISTMILL_TOKEN"), variable("GRISTMILL_TOKEN_FILE")) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path).map_err(|source| ClientError::Io {
                    verb: "read",
                    path: PathBuf::from(&path),
                    source,
                })?;
                Some(text.trim().to_owned())
            }
            (None, None) => None,
        };
        let wait = variable("GRISTMILL_WAIT").map(|text| parse_wait(&text).map_err(ClientError::Usage));
        let wait = wait.transpose()?.unwrap_or_default();
        let ca = variable("GRISTMILL_CA").map(PathBuf::from);
        let verify =
            variable("GRISTMILL_VERIFY").is_some_and(|text| !NO.contains(&text.to_lowercase().as_str()));
        Ok(ClusterOptions { entry, ca, token, stall: None, wait, verify })
    }
}

/// Reads a number of seconds to wait for a cluster.
///
/// # Errors
/// Returns a message if the text is not a number from 0 to [`MAX_WAIT`].
pub fn parse_wait(text: &str) -> Result<Duration, String> {
    let most = MAX_WAIT.as_secs_f64();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=most).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        format!("'{text}' is not a time to wait for a cluster; give seconds from 0 to {most}, for example 10")
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A connection to a cluster. Cheap to clone; all calls block.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) peers: Peers,
    pub(crate) entry: String,
    wait: Duration,
    tls: bool,
    pub(crate) rates: OwnRates,
}

/// A runtime that is shut down without waiting for its tasks.
struct RuntimeGuard(Option<Runtime>);

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Cluster {
    /// Prepares a connection to a cluster. Nothing is sent yet.
    ///
    /// # Errors
    /// The error is [`ClientError::Transport`] if the address is invalid or the certificates cannot be used,
    /// [`ClientError::Run`] if the token has characters that no token has, and [`ClientError::Usage`] if no threads can
    /// be started.
    pub fn connect(options: ClusterOptions) -> Result<Cluster, ClientError> {
        let received = ReceiveCounter::default();
        let drove = received.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(NETWORK_THREADS)
            .thread_name("gristmill net")
            .on_thread_park(move || drove.count_driving())
            .enable_all()
            .build()
            .map_err(|e| {
                ClientError::Usage(format!("cannot start threads: {e}; raise the limit on threads"))
            })?;
        let mut dial = DialerOptions::default();
        dial.tls = options.ca.as_deref().map(ClientTls::from_ca).transpose()?;
        let verify = options.verify;
        let mut how = PeersOptions { token: options.token, received, verify, ..PeersOptions::default() };
        if let Some(stall) = options.stall {
            (dial.stall, how.stall) = (stall, stall);
        }
        let tls = options.ca.is_some();
        let entry: gristmill_transport::Address = options.entry.parse()?;
        let peers = {
            let _inside = runtime.enter();
            Peers::new(Dialer::new(dial), runtime.handle().clone(), how)?
        };
        let peers = peers.with_owner(Arc::new(RuntimeGuard(Some(runtime))));
        let rates = OwnRates::of_user();
        Ok(Cluster { peers, entry: entry.to_string(), wait: options.wait, tls, rates })
    }

    /// Address of the entry node.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Sends a request to the entry node, and repeats it while the node is away and [`EntryRetries`] allows it.
    pub(crate) async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        name: &str,
        body: &Q,
    ) -> Result<R, RunError> {
        let retries = EntryRetries::for_action(name, self.wait);
        loop {
            let failure = match self.peers.try_action(&self.entry, name, body).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let over = retries.once_more(failure).await;
            over.map_err(|failure| self.entry_failed(failure.error))?;
        }
    }

    /// Returns the error of a request to the entry node.
    fn entry_failed(&self, error: RunError) -> RunError {
        match error {
            RunError::Remote { kind: ErrorKind::Unavailable, message } => {
                RunError::Remote { kind: ErrorKind::Unavailable, message: self.explain_unreachable(&message) }
            }
            other => other,
        }
    }

    /// Adds the most likely cause to the message of a failure to reach the entry node.
    fn explain_unreachable(&self, message: &str) -> String {
        let message = message.replacen("storage node", "the entry node", 1);
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if self.tls && has(&["corrupt message", "InvalidContentType"]) {
            return format!(
                "the node at {} does not speak TLS; leave GRISTMILL_CA out, or start it with --cert and --tls-key",
                self.entry
            );
        }
        if !self.tls
            && has(&["closed", "reset", "roken pipe", "invalid size", "http2 error", "protocol error"])
        {
            return format!("{message}; if it speaks TLS only, set GRISTMILL_CA");
        }
        message
    }

    pub(crate) fn wait<Q: Serialize, R: DeserializeOwned>(
        &self,
        name: &str,
        body: &Q,
    ) -> Result<R, ClientError> {
        Ok(self.peers.wait(self.ask(name, body))?)
    }

    /// Sends a request about the file at `path`. If `path` is a directory, the error says so.
    fn about<Q: Serialize, R: DeserializeOwned>(
        &self,
        name: &str,
        path: &str,
        body: &Q,
    ) -> Result<R, ClientError> {
        self.peers.wait(async {
            let error = match self.ask(name, body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let perhaps = error.kind() == ErrorKind::NotFound || path.ends_with('/');
            let list = List { path: path.to_owned(), after: None };
            if perhaps && self.ask::<_, Listing>(names::LIST, &list).await.is_ok() {
                let (kind, what) = match name {
                    names::REMOVE => (ErrorKind::Usage, "remove all that 'ls' lists in it with -r"),
                    names::CHMOD => (ErrorKind::Usage, "change all that 'ls' lists in it with -R"),
                    _ => (ErrorKind::NotFound, "name a file in it, as 'ls' lists it"),
                };
                let message = format!("{path} is a directory; {what}");
                return Err(RunError::Remote { kind, message }.into());
            }
            Err(error.into())
        })
    }

    /// Sends the shortest request to the entry node, to see whether it answers.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn ping(&self) -> Result<(), ClientError> {
        self.wait(names::PING, &())
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the client may not read it, and if the entry node
    /// cannot be reached, does not answer or refuses.
    pub fn open(&self, path: &str) -> Result<Opened, ClientError> {
        self.about(names::OPEN, path, &PathRequest { path: path.to_owned() })
    }

    /// Returns the metadata of a file.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, and if the entry node cannot be reached, does not
    /// answer or refuses.
    pub fn stat(&self, path: &str) -> Result<FileInfo, ClientError> {
        self.about(names::STAT, path, &PathRequest { path: path.to_owned() })
    }

    /// Returns the entries of a directory, in ascending order of their names.
    ///
    /// # Errors
    /// It fails if there is no such directory, and if the entry node cannot be reached, does not answer or refuses.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, ClientError> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let after = entries.last().map(|entry| entry.name.clone());
            let page: Listing = self.wait(names::LIST, &List { path: path.to_owned(), after })?;
            let empty = page.entries.is_empty();
            entries.extend(page.entries);
            if !page.more || empty {
                return Ok(entries);
            }
        }
    }

    /// Returns whether there is a directory of this name. It takes one request for a directory of any size.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses. A missing directory is not an error.
    pub fn is_directory(&self, path: &str) -> Result<bool, ClientError> {
        let list = List { path: path.to_owned(), after: None };
        match self.peers.wait(self.ask::<_, Listing>(names::LIST, &list)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file. Its space is freed soon after.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the client may not write it, and if the entry node
    /// cannot be reached, does not answer or refuses.
    pub fn remove(&self, path: &str) -> Result<(), ClientError> {
        self.about(names::REMOVE, path, &PathRequest { path: path.to_owned() })
    }

    /// Changes the permission bits of a file, as in `0o640`.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the client may not change it, if there are no such
    /// bits, and if the entry node cannot be reached, does not answer or refuses.
    pub fn set_mode(&self, path: &str, mode: u16) -> Result<(), ClientError> {
        self.about(names::CHMOD, path, &SetMode { path: path.to_owned(), mode })
    }

    /// Returns the storage nodes.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn nodes(&self) -> Result<Vec<Node>, ClientError> {
        let nodes: Nodes = self.wait(names::NODES, &())?;
        Ok(nodes.nodes)
    }

    /// Returns the load of all nodes, and their totals since they started. A node that does not answer within about a
    /// second has no load.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn status(&self) -> Result<ClusterStatus, ClientError> {
        let asked = self.peers.wait(self.peers.cluster(&self.entry));
        Ok(asked.map_err(|error| self.entry_failed(error))?)
    }

    /// Returns an opened file as a source of bytes over the network.
    ///
    /// # Errors
    /// It fails as [`parts_of`](Cluster::parts_of) does.
    pub fn parts(&self, opened: &Opened) -> Result<FileParts, ClientError> {
        self.parts_of(&opened.into())
    }

    /// Returns opened files as one source of bytes over the network.
    ///
    /// # Errors
    /// It fails as [`Files::whole`] does.
    pub fn parts_of(&self, files: &Files) -> Result<FileParts, ClientError> {
        Ok(files.whole(&self.peers, AT_CLIENT)?)
    }

    /// Returns the layout of an opened file.
    ///
    /// # Errors
    /// It fails as [`Peers::layout`] does.
    pub fn layout(&self, opened: &Opened) -> Result<Layout, ClientError> {
        Ok(self.peers.layout(&opened.info.file, &opened.grant.as_str().into())?)
    }

    /// Explains the error of a request about an opened file: if a node stopped because the file was replaced or
    /// removed, the new error says so.
    pub fn explain(&self, file: &FileMap, error: RunError) -> RunError {
        if error.kind() != ErrorKind::Unavailable {
            return error;
        }
        let now: Result<FileInfo, _> =
            self.peers.wait(self.ask(names::STAT, &PathRequest { path: file.path.clone() }));
        let gone = match now {
            Ok(info) => info.file.id != file.id,
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if !gone {
            return error;
        }
        let message = format!("{} was replaced or removed while it was read; start over", file.path);
        RunError::Remote { kind: ErrorKind::Stale, message }
    }
}
