//! A cluster of storage nodes as a client sees it: files by path, from any thread, without an asynchronous runtime.

use std::sync::Arc;
use std::time::Duration;

use gristmill_layout::Layout;
use gristmill_peers::{AT_CLIENT, Files, Peers, PeersOptions, ReceiveCounter};
use gristmill_runtime::{ErrorKind, FileParts, RunError};
use gristmill_transport::{ClientTls, Dialer, DialerOptions};
use gristmill_wire::action::{
    Entry, FileInfo, Growing, List, Listing, Node, Nodes, Open, Opened, PathRequest, SetMode, names,
};
use gristmill_wire::{ClusterStatus, FileMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use crate::entry_retries::EntryRetries;
use crate::entry_unreachable::explain_unreachable;
use crate::own_rates::OwnRates;
use crate::{ClientError, ClusterOptions, registered_entry};

/// Threads that drive connections. Folds have other threads.
const NETWORK_THREADS: usize = 2;

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
    /// Prepares a connection to a cluster. Nothing is sent to it yet. If its nodes are noted in Ceph, Ceph is asked for the entry node.
    ///
    /// # Errors
    /// The error is [`ClientError::Registry`] if Ceph does not answer or refuses, or has no entry node.
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
        let mut how = PeersOptions {
            token: options.token,
            source: options.source,
            received,
            verify,
            ..PeersOptions::default()
        };
        if let Some(stall) = options.stall {
            (dial.stall, how.stall) = (stall, stall);
        }
        let tls = options.ca.is_some();
        let entry = registered_entry::find(&options.entry, options.wait)?;
        let entry: gristmill_transport::Address = entry.parse()?;
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
                let message = explain_unreachable(&message, &self.entry, self.tls);
                RunError::Remote { kind: ErrorKind::Unavailable, message }
            }
            other => other,
        }
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
            let list = List { path: path.to_owned(), ..List::default() };
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

    /// Opens the whole records that a file has now, although programs append to it. Only files of attached mounts grow; of others it opens
    /// all.
    ///
    /// # Errors
    /// It fails as [`open`](Cluster::open) does, and for a file of an attached web server.
    pub fn open_growing(&self, path: &str, growing: Growing) -> Result<Opened, ClientError> {
        self.about(names::OPEN, path, &Open { path: path.to_owned(), growing: Some(growing) })
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
        self.pages(names::LIST, path, &mut |page| {
            entries.extend(page.entries);
            Ok(())
        })?;
        // An attached tree has the order of its storage.
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Gives the pages of a list to `each`. The list is that of one level of a directory or of all, as the name of the action says.
    pub(crate) fn pages(
        &self,
        action: &str,
        path: &str,
        each: &mut dyn FnMut(Listing) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let mut list = List { path: path.to_owned(), ..List::default() };
        loop {
            let mut page: Listing = self.wait(action, &list)?;
            match page.next.take() {
                Some(next) => (list.after, list.from) = (None, Some(next)),
                None => (list.after, list.from) = (page.entries.last().map(|entry| entry.name.clone()), None),
            }
            let is_last = !page.more || page.entries.is_empty() && list.from.is_none();
            each(page)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns whether there is a directory of this name. It takes one request for a directory of any size.
    ///
    /// # Errors
    /// It fails if the entry node cannot be reached, does not answer or refuses. A missing directory is not an error.
    pub fn is_directory(&self, path: &str) -> Result<bool, ClientError> {
        let list = List { path: path.to_owned(), ..List::default() };
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
        // A file that grows has another id now.
        let grows = file.attached.as_ref().is_some_and(|attached| attached.growing);
        if error.kind() != ErrorKind::Unavailable || grows {
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
