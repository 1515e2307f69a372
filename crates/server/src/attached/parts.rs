//! Files of attached trees as this node folds them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gristmill_backend::{Backend, BackendError, Found, Key, Object, Stamp};
use gristmill_peers::ON_STORAGE;
use gristmill_runtime::{ErrorKind, FileParts, ObjectPart, Part, RunError};
use gristmill_wire::{AttachedFile, FileMap, WireError};

use super::open_trees::has_users;
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
    Ok(Arc::new(OpenedLater { tree, key, found, name: map.path.clone(), object: OnceLock::new() }))
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

/// A file that is opened when it is read for the first time.
struct OpenedLater {
    tree: Arc<dyn Backend>,
    key: Key,
    found: Found,
    /// The path in the cluster.
    name: String,
    object: OnceLock<Arc<dyn Object>>,
}

impl OpenedLater {
    fn object(&self) -> Result<&Arc<dyn Object>, BackendError> {
        if let Some(object) = self.object.get() {
            return Ok(object);
        }
        let opened = self.tree.open_at(&self.key, &self.found).map_err(|error| match error {
            // It was there when the entry node looked.
            BackendError::NotFound { name } | BackendError::WrongKind { name, .. } => {
                BackendError::Changed { name }
            }
            error => error,
        })?;
        // Another lane may have opened it meanwhile.
        Ok(self.object.get_or_init(|| opened))
    }
}

impl Object for OpenedLater {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), BackendError> {
        self.object()?.read(ranges, out)
    }

    fn unchanged(&self) -> Result<(), BackendError> {
        self.object.get().map_or(Ok(()), |object| object.unchanged())
    }
}
