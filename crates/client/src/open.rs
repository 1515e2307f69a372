//! Opening a file for requests.

use std::path::Path;
use std::sync::Arc;

use gristmill_layout::Layout;
use gristmill_runtime::{FileParts, Part, Placement, StorePart};
use gristmill_store::{LocalStore, ObjectId, StoreError};

use crate::{ClientError, Descriptor, EXTENSION};

/// Opens a plain file, or the striped file behind a layout file (`*.grist`).
///
/// # Errors
/// The error is [`ClientError::Run`] if the file cannot be opened, [`ClientError::Descriptor`] if a layout file is
/// invalid, and [`ClientError::Target`] if the store of a target cannot be opened, or if its object does not exist or
/// has another length.
pub fn open(path: &Path) -> Result<FileParts, ClientError> {
    open_with(path, false)
}

/// Opens a file like [`open`]. With `verify` all bytes that are read are compared with their checksums, if there are
/// any, even bytes that were compared recently.
///
/// # Errors
/// It fails as [`open`] does.
pub fn open_with(path: &Path, verify: bool) -> Result<FileParts, ClientError> {
    let plain = FileParts::plain(path)?;
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return Ok(plain);
    }
    let descriptor = Descriptor::read(path)?;
    let layout = Layout::from(descriptor.striped()?);
    let object = ObjectId::new(&descriptor.object).map_err(StoreError::from)?;
    let mut parts: Vec<Arc<dyn Part>> = Vec::new();
    for (target, dir) in (0..).zip(descriptor.target_dirs(path)) {
        let failed = |source| ClientError::Target { target: dir.clone(), source };
        let store = Arc::new(LocalStore::open_read_only(&dir).map_err(failed)?);
        let node = format!("target {target} ({})", dir.display());
        let part = StorePart::open(store, object.clone(), node).map_err(|error| match error {
            gristmill_runtime::RunError::Store(source) => failed(source),
            other => other.into(),
        })?;
        let expected = layout.bytes_on(target, 0..descriptor.length);
        if part.length() != expected {
            let what = format!("object {object} has {} bytes instead of {expected}", part.length());
            let remedy = "put the file again from its source";
            return Err(failed(StoreError::Damaged { what, remedy }));
        }
        parts.push(Arc::new(part.verifying(verify)));
    }
    let place = Placement {
        place: "storage",
        why: "each target's bytes are folded where they lie, in this process",
        remote: false,
    };
    Ok(FileParts { name: path.display().to_string(), length: descriptor.length, layout, parts, place })
}
