//! The storage nodes of a cluster, noted in Ceph.
//!
//! Nodes and clients that know the cluster of Ceph find each other without a list. Each node has a *lease*: a lock of Ceph on one object, whose
//! text names the node and its address. The storage daemon ends it by its own clock if the node does not renew it. An attribute of the object
//! names the entry node for good, because only this node has the names of the files.

use std::ffi::CString;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gristmill_ceph::ClusterUser;
use gristmill_store::StoreError;
use rustix::io::Errno;

use crate::RadosLocation;
use crate::client::{Action, Pool, SHARED};
use crate::error::{explain, explain_connection};
use crate::piece::c_name;

/// Time after which the lease of a node that does not renew it ends.
pub const LEASE_TIME: Duration = Duration::from_secs(30);

/// Pause between two renewals of a lease.
const RENEWED: Duration = Duration::from_secs(8);

/// The object with the leases.
const NODES: &str = "nodes";

/// The attribute of this object with the id of the entry node.
const ENTRY: &str = "entry";

/// Bytes of the longest id of a node.
const MAX_ID: usize = 64;

/// Bytes of the longest address of a node.
const MAX_ADDRESS: usize = 512;

/// A node that has a lease: its id, a blank, its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredNode {
    /// The id of its target.
    pub id: String,
    /// The address by which others reach it.
    pub address: String,
}

/// Why the nodes of a cluster are not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Ceph does not answer, or refuses.
    #[error(transparent)]
    Ceph(#[from] StoreError),
    /// The key lacks a right.
    #[error(
        "{location}: the key may not do that; a client needs \"osd: allow r class-read pool={} namespace={}\", a node \"osd: allow rwx pool={}\" (ceph auth caps)",
        location.pool, location.name, location.pool
    )]
    Denied {
        /// Where the nodes are noted.
        location: RadosLocation,
    },
    /// No node ever registered.
    #[error("{0}: no storage node has registered there; start one with --ceph {0}, or check the name")]
    NoCluster(RadosLocation),
    /// The entry node has no lease now.
    #[error("{0}: the entry node is not running, or does not reach Ceph; start it with --ceph {0}")]
    NoEntry(RadosLocation),
    /// A node has an id or an address that cannot be noted.
    #[error("the node {id:?} at {address:?} cannot be registered: a name is empty, too long or has blanks")]
    Unusable {
        /// The id of the node.
        id: String,
        /// Its address.
        address: String,
    },
}

impl FromStr for RegisteredNode {
    type Err = ();

    fn from_str(text: &str) -> Result<RegisteredNode, ()> {
        let (id, address) = text.split_once(' ').ok_or(())?;
        let usable = |text: &str, most| {
            (1..=most).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if !usable(id, MAX_ID) || !usable(address, MAX_ADDRESS) {
            return Err(());
        }
        Ok(RegisteredNode { id: id.to_owned(), address: address.to_owned() })
    }
}

impl fmt::Display for RegisteredNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.address)
    }
}

/// The nodes of a cluster of Gristmill, noted in a namespace of a pool of Ceph.
///
/// ```
/// use gristmill_ceph::ClusterUser;
/// use gristmill_rados::{NodeRegistry, RadosLocation, RegisteredNode};
///
/// let location: RadosLocation = "rados://gristmill/cluster".parse()?;
/// if std::env::var_os("CEPH_CONF").is_some() {
///     let registry = NodeRegistry::open(&location, &ClusterUser::of_environment())?;
///     println!("the entry node is at {}", registry.entry_address()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NodeRegistry {
    pool: Arc<Pool>,
    location: RadosLocation,
}

impl NodeRegistry {
    /// Connects to Ceph. Nothing is written.
    ///
    /// # Errors
    /// It fails if the library is missing, the cluster does not answer or refuses the key, or there is no such pool.
    pub fn open(location: &RadosLocation, user: &ClusterUser) -> Result<NodeRegistry, RegistryError> {
        let pool = Pool::connect(user, &location.pool, &location.name);
        let pool = pool.map_err(|failure| explain_connection(&user.id, location, failure))?;
        Ok(NodeRegistry { pool: Arc::new(pool), location: location.clone() })
    }

    /// The id of the entry node. `None` if no node has registered yet.
    ///
    /// # Errors
    /// It fails if Ceph does not answer or refuses.
    pub fn entry(&self) -> Result<Option<String>, RegistryError> {
        let id = self.pool.attribute(&c_name(NODES.to_owned()), &c_name(ENTRY.to_owned()));
        let id = id.map_err(self.failed("read"))?.unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(&id).into_owned()).filter(|id| !id.is_empty()))
    }

    /// Notes a node as the entry node if there is none yet. The result is the id of the entry node, which may be another one.
    ///
    /// # Errors
    /// It fails if Ceph does not answer or refuses.
    pub fn claim_entry(&self, id: &str) -> Result<String, RegistryError> {
        let name = c_name(ENTRY.to_owned());
        let actions = vec![
            Action::MustHave { name: &name, value: b"" },
            Action::SetAttribute { name: &name, value: id.as_bytes() },
        ];
        let object = c_name(NODES.to_owned());
        // Attributes are compared only of an object that exists.
        match self.pool.change(&object, vec![Action::MakeNew]) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed("make")(errno)),
        }
        match self.pool.change(&object, actions) {
            // Somebody else was first.
            Ok(()) | Err(Errno::CANCELED) => {}
            Err(errno) => return Err(self.failed("write")(errno)),
        }
        self.entry()?.ok_or_else(|| RegistryError::NoCluster(self.location.clone()))
    }

    /// The nodes that have leases now.
    ///
    /// # Errors
    /// It fails if Ceph does not answer or refuses.
    pub fn nodes(&self) -> Result<Vec<RegisteredNode>, RegistryError> {
        let lockers = self
            .pool
            .lockers(&c_name(NODES.to_owned()), SHARED)
            .map_err(self.failed("read the leases of"))?;
        Ok(lockers.iter().filter_map(|locker| locker.cookie.to_str().ok()?.parse().ok()).collect())
    }

    /// The address of the entry node.
    ///
    /// # Errors
    /// The error is [`NoCluster`](RegistryError::NoCluster) if no node ever registered, and [`NoEntry`](RegistryError::NoEntry) if the entry
    /// node has no lease. It also fails if Ceph does not answer or refuses.
    pub fn entry_address(&self) -> Result<String, RegistryError> {
        let id = self.entry()?.ok_or_else(|| RegistryError::NoCluster(self.location.clone()))?;
        let found = self.nodes()?.into_iter().find(|node| node.id == id);
        Ok(found.ok_or_else(|| RegistryError::NoEntry(self.location.clone()))?.address)
    }

    /// Takes a lease for a node and renews it until the result is dropped. Leases that a former process of the node has end.
    ///
    /// # Errors
    /// It fails if Ceph does not answer or refuses, if the node's id or address cannot be noted, and if no thread can be started.
    pub fn register(&self, node: &RegisteredNode) -> Result<Lease, RegistryError> {
        if node.to_string().parse().as_ref() != Ok(node) {
            return Err(RegistryError::Unusable { id: node.id.clone(), address: node.address.clone() });
        }
        let (name, cookie) = (c_name(NODES.to_owned()), c_name(node.to_string()));
        let before = self.pool.lockers(&name, SHARED).map_err(self.failed("read the leases of"))?;
        for locker in before {
            let held: Option<RegisteredNode> = locker.cookie.to_str().ok().and_then(|text| text.parse().ok());
            if held.is_some_and(|held| held.id == node.id) {
                match self.pool.break_lock(&name, SHARED, &locker) {
                    // It may just have ended.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(self.failed("end a lease of")(errno)),
                }
            }
        }
        self.pool.share(&name, &cookie, LEASE_TIME).map_err(self.failed("take a lease of"))?;
        let (stop, stopped) = channel();
        let (pool, held) = (self.pool.clone(), cookie.clone());
        let keep = move || {
            let name = c_name(NODES.to_owned());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(RENEWED) {
                // If it fails, the next renewal tries again. A lease that ended meanwhile is taken anew.
                let _ = pool.share(&name, &held, LEASE_TIME);
            }
        };
        // From here on dropping ends the lease.
        let mut lease = Lease { pool: self.pool.clone(), cookie, keeper: None };
        let thread = Builder::new().name("rados lease".into()).spawn(keep).map_err(|source| {
            StoreError::Io { op: "start a thread for", path: self.location.to_string().into(), source }
        })?;
        lease.keeper = Some((stop, thread));
        Ok(lease)
    }

    fn failed(&self, op: &'static str) -> impl Fn(Errno) -> RegistryError {
        move |errno| match errno {
            Errno::PERM | Errno::ACCESS => RegistryError::Denied { location: self.location.clone() },
            errno => RegistryError::Ceph(explain(op, self.location.to_string(), errno)),
        }
    }
}

/// The lease of a node. It ends when this is dropped.
pub struct Lease {
    pool: Arc<Pool>,
    cookie: CString,
    /// The thread that renews it, and what stops it.
    keeper: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((stop, keeper)) = self.keeper.take() {
            drop(stop);
            // A panic of the thread has nothing to say here.
            let _ = keeper.join();
        }
        // If this fails, the lease ends by itself.
        let _ = self.pool.unlock(&c_name(NODES.to_owned()), SHARED, &self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_names_a_node() {
        let node = RegisteredNode { id: "0af3".into(), address: "10.0.0.1:7440".into() };
        assert_eq!(node.to_string(), "0af3 10.0.0.1:7440");
        assert_eq!(node.to_string().parse(), Ok(node));
        let long = format!("a {}", "b".repeat(MAX_ADDRESS + 1));
        for wrong in ["", "a", "a ", " b", "a b c", "a b\nc", &long] {
            assert_eq!(wrong.parse::<RegisteredNode>(), Err(()), "{wrong}");
        }
    }
}
