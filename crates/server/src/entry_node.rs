//! Where the entry node of the cluster is, and which node it is.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_namespace::SqliteNamespace;
use gristmill_rados::{NodeRegistry, RadosLocation, RegistryError};
use gristmill_runtime::{ErrorKind, RunError};

use crate::blocking::blocking;
use crate::error::Refusal;
use crate::{ServerError, membership, target};

/// How a node that joins finds the entry node.
pub(crate) enum EntryNode {
    /// At this address.
    At(String),
    /// At the address that it noted in Ceph.
    Registered(RegisteredEntry),
}

/// An entry node that notes its address in Ceph.
pub(crate) struct RegisteredEntry {
    registry: Arc<NodeRegistry>,
    location: RadosLocation,
    /// The address that was found last.
    found: Mutex<Option<String>>,
}

impl EntryNode {
    /// The address. It is looked up if none is known.
    ///
    /// # Errors
    /// The error is [`Unavailable`](ErrorKind::Unavailable) if the entry node is not running, or Ceph does not answer.
    pub async fn address(&self) -> Result<String, RunError> {
        let entry = match self {
            EntryNode::At(address) => return Ok(address.clone()),
            EntryNode::Registered(entry) => entry,
        };
        if let Some(found) = entry.known() {
            return Ok(found);
        }
        let registry = entry.registry.clone();
        let look_up =
            move || registry.entry_address().map_err(|error| Refusal::new(kind(&error), error.to_string()));
        let address = blocking(look_up).await.map_err(|refusal: Refusal| refusal.0.into_error())?;
        *entry.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.clone());
        Ok(address)
    }

    /// Forgets an address at which the entry node did not answer, so that it is looked up again.
    pub fn forget(&self) {
        if let EntryNode::Registered(entry) = self {
            *entry.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// The text that the administrator gave: an address, or the place in Ceph.
    pub fn given(&self) -> String {
        match self {
            EntryNode::At(address) => address.clone(),
            EntryNode::Registered(entry) => entry.location.to_string(),
        }
    }
}

impl RegisteredEntry {
    fn known(&self) -> Option<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for EntryNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryNode::At(address) => f.write_str(address),
            EntryNode::Registered(entry) => match entry.known() {
                Some(address) => f.write_str(&address),
                None => entry.location.fmt(f),
            },
        }
    }
}

fn kind(error: &RegistryError) -> ErrorKind {
    match error {
        RegistryError::Denied { .. } => ErrorKind::Denied,
        RegistryError::NoCluster(_) | RegistryError::NoEntry(_) => ErrorKind::Unavailable,
        RegistryError::Ceph(error) => match ErrorKind::of_store(error) {
            ErrorKind::Failed => ErrorKind::Unavailable,
            other => other,
        },
        _ => ErrorKind::Failed,
    }
}

/// Decides whether a node whose cluster is noted in Ceph is the entry node. The first node of a cluster is, and it stays. The result has the
/// way to the entry node for another node, and `None` for the entry node itself.
///
/// # Errors
/// It fails if Ceph does not answer or refuses, and if the target belongs to the entry node of another cluster.
pub(crate) fn find(
    dir: &Path,
    registry: Arc<NodeRegistry>,
    location: &RadosLocation,
) -> Result<Option<EntryNode>, ServerError> {
    let id = target::id(dir)?;
    let was_entry = SqliteNamespace::is_in(dir);
    let entry =
        if was_entry || !membership::has_joined(dir) { Some(registry.claim_entry(&id)?) } else { None };
    if entry.as_ref() == Some(&id) {
        return Ok(None);
    }
    if was_entry {
        return Err(ServerError::Usage(format!(
            "{} is the target of an entry node, with the names of its files, but {location} has another entry node: give \
             another --ceph, or another --target",
            dir.display()
        )));
    }
    Ok(Some(EntryNode::Registered(RegisteredEntry {
        registry,
        location: location.clone(),
        found: Mutex::default(),
    })))
}
