//! A cluster of storage nodes as a user sees it: files by path, from any thread, without a runtime of one's own.

use std::sync::Arc;
use std::time::Duration;

use gristmill_layout::Layout;
use gristmill_peers::{AT_CLIENT, Files, Peers, PeersOptions, Received};
use gristmill_runtime::{ErrorKind, FileParts, RunError};
use gristmill_transport::{ClientTls, Dialer, DialerOptions};
use gristmill_wire::action::{Entry, FileInfo, List, Listing, Node, Nodes, Opened, PathOf, SetMode, names};
use gristmill_wire::{ClusterStatus, FileMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::runtime::Runtime;

use crate::entry_patience::EntryPatience;
use crate::own_rates::OwnRates;
use crate::{ClientError, Location, MAX_WAIT, Url};

/// Threads that drive connections; folds have their own.
const NETWORK_THREADS: usize = 2;

/// Values of a switch that are as good as none.
const NO: [&str; 6] = ["0", "n", "no", "off", "f", "false"];

/// How to reach a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Address of the entry node: `HOST:PORT`, or `unix:SOCKET`.
    pub entry: String,
    /// Certificate authority, PEM: connections over TCP are made over TLS.
    pub ca: Option<PathBuf>,
    /// Says who we are. Sent to the entry node only.
    pub token: Option<String>,
    /// How long a node may give no sign of life; 10 seconds where nothing is said.
    pub stall: Option<Duration>,
    /// How long the entry node is asked again while it is away, or its cluster is starting;
    /// [`ENTRY_PATIENCE`](crate::ENTRY_PATIENCE) where that is longer.
    pub wait: Duration,
    /// Has nodes compare all bytes that are read with their checksums, also those that they compared within the last hour.
    pub verify: bool,
}

impl ClusterOptions {
    /// The entry node at this address, and what the environment says: `GRISTMILL_CA`, `GRISTMILL_TOKEN` or
    /// `GRISTMILL_TOKEN_FILE`, `GRISTMILL_WAIT` (seconds), `GRISTMILL_VERIFY` (any value but 0, no, off and false). Without an address, `GRISTMILL_CLUSTER`.
    ///
    /// # Errors
    /// The error is [`ClientError::Usage`] if no cluster is named or `GRISTMILL_WAIT` is no time that somebody may
    /// wait, and [`ClientError::Io`] if the file of the token cannot be read.
    pub fn from_env(entry: Option<&str>) -> Result<ClusterOptions, ClientError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let entry = entry.map(str::to_owned).or_else(|| variable("GRISTMILL_CLUSTER")).ok_or_else(|| {
            ClientError::Usage(
                "the URL names no cluster; write grist://HOST:PORT/PATH or set GRISTMILL_CLUSTER".into(),
            )
        })?;
        // As `gristmill up` prints it is right too.
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

/// Seconds to wait for a cluster, as text.
///
/// # Errors
/// In words: no number from 0 to [`MAX_WAIT`].
pub fn parse_wait(text: &str) -> Result<Duration, String> {
    let most = MAX_WAIT.as_secs_f64();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=most).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        format!("'{text}' is no time to wait for a cluster; give seconds from 0 to {most}, for example 10")
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

/// A runtime that is shut down without waiting for what nobody wants any more.
struct Running(Option<Runtime>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Cluster {
    /// Gets ready to talk to a cluster; nothing is sent yet.
    ///
    /// # Errors
    /// The error is [`ClientError::Transport`] if the address is none or the certificates cannot be used,
    /// [`ClientError::Run`] if the token has characters that no token has, and [`ClientError::Usage`] if no threads can
    /// be started.
    pub fn connect(options: ClusterOptions) -> Result<Cluster, ClientError> {
        let received = Received::default();
        let drove = received.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(NETWORK_THREADS)
            .thread_name("gristmill net")
            .on_thread_park(move || drove.drove())
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
        let peers = peers.owning(Arc::new(Running(Some(runtime))));
        let rates = OwnRates::of_user();
        Ok(Cluster { peers, entry: entry.to_string(), wait: options.wait, tls, rates })
    }

    /// Address of the entry node.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Asks the entry node, again and again while it is away, for as long as [`EntryPatience`] has it.
    pub(crate) async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        name: &str,
        body: &Q,
    ) -> Result<R, RunError> {
        let patience = EntryPatience::of(name, self.wait);
        loop {
            let failure = match self.peers.ask(&self.entry, name, body).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let over = patience.once_more(failure).await;
            over.map_err(|failure| self.entry_failed(failure.error))?;
        }
    }

    /// The error of a question to the entry node.
    fn entry_failed(&self, error: RunError) -> RunError {
        match error {
            RunError::Remote { kind: ErrorKind::Unavailable, message } => {
                RunError::Remote { kind: ErrorKind::Unavailable, message: self.of_entry(&message) }
            }
            other => other,
        }
    }

    /// A failure to reach the entry node, with what is most likely behind it.
    fn of_entry(&self, message: &str) -> String {
        let message = message.replacen("storage node", "the entry node", 1);
        let said = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if self.tls && said(&["corrupt message", "InvalidContentType"]) {
            return format!(
                "the node at {} does not speak TLS; leave GRISTMILL_CA out, or start it with --cert and --tls-key",
                self.entry
            );
        }
        if !self.tls
            && said(&["closed", "reset", "roken pipe", "invalid size", "http2 error", "protocol error"])
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

    /// Asks about the file at `path`. Where that is a directory, the error says so.
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

    /// The shortest request there is.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn ping(&self) -> Result<(), ClientError> {
        self.wait(names::PING, &())
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the asker may not read it, and if the entry node
    /// cannot be reached, does not answer or refuses.
    pub fn open(&self, path: &str) -> Result<Opened, ClientError> {
        self.about(names::OPEN, path, &PathOf { path: path.to_owned() })
    }

    /// What is known about a file.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, and if the entry node cannot be reached, does not
    /// answer or refuses.
    pub fn stat(&self, path: &str) -> Result<FileInfo, ClientError> {
        self.about(names::STAT, path, &PathOf { path: path.to_owned() })
    }

    /// The names of a directory, in ascending order.
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

    /// Whether there is a directory of this name. It takes one question, however much lies in it.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses. No directory is no error.
    pub fn is_directory(&self, path: &str) -> Result<bool, ClientError> {
        let list = List { path: path.to_owned(), after: None };
        match self.peers.wait(self.ask::<_, Listing>(names::LIST, &list)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file. Its space is given back soon after.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the asker may not write it, and if the entry node
    /// cannot be reached, does not answer or refuses.
    pub fn remove(&self, path: &str) -> Result<(), ClientError> {
        self.about(names::REMOVE, path, &PathOf { path: path.to_owned() })
    }

    /// Changes who may read and write a file: permission bits as in `0o640`.
    ///
    /// # Errors
    /// It fails if there is no such file, if it is a directory, if the asker may not change it, if there are no such
    /// bits, and if the entry node cannot be reached, does not answer or refuses.
    pub fn set_mode(&self, path: &str, mode: u16) -> Result<(), ClientError> {
        self.about(names::CHMOD, path, &SetMode { path: path.to_owned(), mode })
    }

    /// The storage nodes.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn nodes(&self) -> Result<Vec<Node>, ClientError> {
        let nodes: Nodes = self.wait(names::NODES, &())?;
        Ok(nodes.nodes)
    }

    /// What all nodes do now, and what they did since they started. Nodes that do not answer within a second or so are
    /// in it without a load.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses.
    pub fn status(&self) -> Result<ClusterStatus, ClientError> {
        let asked = self.peers.wait(self.peers.cluster(&self.entry));
        Ok(asked.map_err(|error| self.entry_failed(error))?)
    }

    /// An opened file, to be read over the network.
    ///
    /// # Errors
    /// It fails as [`parts_of`](Cluster::parts_of) does.
    pub fn parts(&self, opened: &Opened) -> Result<FileParts, ClientError> {
        self.parts_of(&opened.into())
    }

    /// Opened files as one, to be read over the network.
    ///
    /// # Errors
    /// It fails as [`Files::whole`] does.
    pub fn parts_of(&self, files: &Files) -> Result<FileParts, ClientError> {
        Ok(files.whole(&self.peers, AT_CLIENT)?)
    }

    /// Where the bytes of an opened file lie.
    ///
    /// # Errors
    /// It fails as [`Peers::layout`] does.
    pub fn layout(&self, opened: &Opened) -> Result<Layout, ClientError> {
        Ok(self.peers.layout(&opened.info.file, &opened.grant.as_str().into())?)
    }

    /// The error of a request about an opened file: if a node broke off because the file was replaced or removed, it
    /// says so.
    pub fn explain(&self, file: &FileMap, error: RunError) -> RunError {
        if error.kind() != ErrorKind::Unavailable {
            return error;
        }
        let now: Result<FileInfo, _> =
            self.peers.wait(self.ask(names::STAT, &PathOf { path: file.path.clone() }));
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
