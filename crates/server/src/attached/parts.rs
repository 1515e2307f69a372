//! Files of attached trees as this node folds them.

use std::sync::Arc;

use gristmill_backend::{Backend, Found, Key, Object, Stamp};
use gristmill_peers::ON_STORAGE;
use gristmill_runtime::{ErrorKind, FileParts, ObjectPart, Part, RunError};
use gristmill_wire::{AttachedFile, FileMap, WireError};

use super::open_trees::has_users;
use super::opened_later::OpenedLater;
use crate::shared::Shared;

/// The parts of a file of an attached tree: each target has the whole file. Blocks.
///
/// # Errors
/// It fails if the tree cannot be opened.
pub(crate) fn own_parts(
    shared: &Shared,
    map: &FileMap,
    attached: &AttachedFile,
) -> Result<FileParts, RunError> {
    let reader = format!("{} ({})", shared.number().unwrap_or_default(), shared.address);
    let part: Arc<dyn Part> = Arc::new(ObjectPart::new(open(shared, map, attached)?, reader));
    let layout = map.layout()?;
    let parts = vec![part; map.targets.len()];
    Ok(FileParts { name: map.path.clone(), length: map.length, layout, parts, place: ON_STORAGE })
}

/// Opens a file in the state that its grant names. A file of a mount is opened when the first of its bytes are read, because
/// a request may have thousands of files, of which this node reads a few.
///
/// # Errors
/// It fails if the tree cannot be opened.
pub(crate) fn open(
    shared: &Shared,
    map: &FileMap,
    attached: &AttachedFile,
) -> Result<Arc<dyn Object>, RunError> {
    let tree = open_tree(shared, attached);
    let tree = tree.map_err(|error| not_reached(shared, attached, &error))?;
    let key = Key::new(attached.key.as_str())?;
    let malformed = || WireError::Malformed { what: "version of a file", why: "it is too long".into() };
    let stamp = Stamp::new(attached.stamp.as_str()).ok_or_else(malformed)?;
    let found = Found { length: map.length, stamp };
    if !has_users(&attached.tree) {
        return Ok(tree.open_at(&key, &found)?);
    }
    Ok(Arc::new(OpenedLater::new(tree, key, found, map.path.clone())))
}

/// Opens the tree of a file as its grant says: with the reader, or the credentials, of the user.
fn open_tree(shared: &Shared, attached: &AttachedFile) -> Result<Arc<dyn Backend>, RunError> {
    let access = attached.access.as_ref();
    let access = access.map(|sealed| shared.key.open_access(sealed, &attached.purpose())).transpose()?;
    shared.trees.open_as(&attached.tree, &attached.reader, access.as_ref())
}

/// The error of a node that does not reach a tree any more.
fn not_reached(shared: &Shared, attached: &AttachedFile, error: &RunError) -> RunError {
    let number = shared.number().map_or_else(|_| "?".to_owned(), |number| number.to_string());
    let (address, url) = (&shared.address, &attached.tree.url);
    let message = format!("storage node {number} ({address}) does not reach {url}: {error}");
    let kind = if error.kind() == ErrorKind::Denied { ErrorKind::Denied } else { ErrorKind::Unavailable };
    RunError::Remote { kind, message }
}

/// Whether a file of an attached tree still has the state of its grant. Blocks.
pub(crate) fn is_unchanged(shared: &Shared, map: &FileMap, attached: &AttachedFile) -> bool {
    let found = || {
        let tree = open_tree(shared, attached).ok()?;
        tree.stat(&Key::new(attached.key.as_str()).ok()?).ok()
    };
    found().is_some_and(|found| found.length == map.length && found.stamp.as_str() == attached.stamp)
}
