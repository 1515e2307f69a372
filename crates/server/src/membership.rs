//! Record of a target's cluster in the target. Without it, a node that is started with other options could make a new
//! cluster from a part of the old one, or hide an entry node's files.

use std::path::Path;

use gristmill_namespace::SqliteNamespace;
use gristmill_store::{ObjectStore, write_atomic};
use gristmill_wire::{Key, OBJECT_PREFIX};

use crate::ServerError;

/// Name of the file. It contains the address of the entry node or the place in Ceph that has it, and a signature that identifies the key of the cluster.
const FILE: &str = "cluster.joined";

/// Text that is signed with the key.
const SIGNED: &[u8] = b"the cluster that a target joined";

/// Checks that a target of an entry node did not join another cluster.
///
/// # Errors
/// Returns [`ServerError::Usage`] with the right options if it did.
pub(crate) fn check_entry(dir: &Path, store: &dyn ObjectStore) -> Result<(), ServerError> {
    let known = std::fs::read_to_string(dir.join(FILE)).ok();
    // A target from before this file existed has parts of files, and no names.
    let parts = || store.list(OBJECT_PREFIX, None, 1).map(|objects| !objects.is_empty());
    let failed = |source| ServerError::Store { target: dir.to_owned(), source };
    let nameless = !SqliteNamespace::is_in(dir) && parts().map_err(failed)?;
    if known.is_none() && !nameless {
        return Ok(());
    }
    let entry = known.as_deref().and_then(|text| text.lines().next()).unwrap_or("HOST:PORT");
    let option = if entry.starts_with("rados://") { "--ceph" } else { "--join" };
    Err(ServerError::Usage(format!(
        "{} belongs to a cluster and holds parts of its files: start the node with {option} {entry} --key FILE, \
         or give an empty --target for a new cluster",
        dir.display()
    )))
}

/// Checks that a target that joins does not belong to an entry node or to a cluster with another key.
///
/// # Errors
/// Returns [`ServerError::Usage`] with the right options if it did.
pub(crate) fn check_joining(dir: &Path, key: &Key) -> Result<(), ServerError> {
    let usage = |why: &str| Err(ServerError::Usage(format!("{} {why}", dir.display())));
    if SqliteNamespace::is_in(dir) {
        return usage(
            "is the target of an entry node, with the names of its files: leave --join out, or give another --target",
        );
    }
    let known = std::fs::read_to_string(dir.join(FILE)).unwrap_or_default();
    match known.lines().nth(1) {
        Some(signature) if !key.verify(SIGNED, signature) => usage(
            "belongs to another cluster, whose key is not this one: give that cluster's --key and --join, or another --target",
        ),
        _ => Ok(()),
    }
}

/// Whether the target has joined a cluster.
pub(crate) fn has_joined(dir: &Path) -> bool {
    dir.join(FILE).exists()
}

/// Writes the record of the cluster that was joined.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(crate) fn remember(dir: &Path, entry: &str, key: &Key) -> Result<(), ServerError> {
    let (path, text) = (dir.join(FILE), format!("{entry}\n{}\n", key.sign(SIGNED)));
    if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    write_atomic(&path, text.as_bytes())
        .map_err(|source| ServerError::Store { target: dir.to_owned(), source })
}
