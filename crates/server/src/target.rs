//! A node's target: its store, its id, and the removal of objects of interrupted puts.

use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use gristmill_object_fold::ObjectFolder;
use gristmill_rados::{RadosOptions, RadosStore};
use gristmill_store::{
    ArrivalState, EmptyStore, LocalStore, ObjectId, ObjectStore, RecoveryProgress, StoreError, write_atomic,
};
use gristmill_wire::{Key, OBJECT_PREFIX};

use crate::{NodeObjects, ServerError};

/// Folder of a target with the cache of attached buckets and web servers.
pub(crate) const CACHE_FOLDER: &str = "outside-cache";

/// Name of the file with the target's id.
pub(crate) const ID_FILE: &str = "target.id";

/// Name of the key file that an entry node makes.
pub(crate) const KEY_FILE: &str = "cluster.key";

/// Directory of the objects in the directory of a target.
const OBJECTS: &str = "objects";

/// Name of the file that says where the objects are, if they are not in the directory.
const PLACE_FILE: &str = "objects.place";

/// Names of objects that are listed at once.
const LIST_PAGE: usize = 256;

/// The objects of a target.
pub(crate) struct Objects {
    pub store: Arc<dyn ObjectStore>,
    /// The same store, if its storage folds.
    pub folder: Option<Arc<dyn ObjectFolder>>,
}

/// Opens the store, and removes objects that were not complete when the node last stopped: their clients have lost the
/// connection.
///
/// `near`: addresses of the node, near which objects in Ceph shall lie. `tell` is called with the progress if the store
/// must be recovered.
///
/// # Errors
/// Returns an error if the store cannot be opened, and if the node kept its objects elsewhere before: parts of files
/// would be missing.
pub(crate) fn open(
    dir: &Path,
    objects: &NodeObjects,
    near: &[IpAddr],
    tell: &mut dyn FnMut(RecoveryProgress),
) -> Result<Objects, ServerError> {
    let failed = |source| ServerError::Store { target: dir.to_owned(), source };
    check_place(dir, objects)?;
    let mut folder: Option<Arc<dyn ObjectFolder>> = None;
    let store: Arc<dyn ObjectStore> = match objects {
        NodeObjects::Directory => {
            Arc::new(LocalStore::open_with_progress(dir.join(OBJECTS), tell).map_err(failed)?)
        }
        NodeObjects::Ceph(location) => {
            let options = RadosOptions { near: near.to_owned(), ..RadosOptions::of_environment() };
            let store = RadosStore::open(location, &options).map_err(failed)?;
            write_atomic(&dir.join(PLACE_FILE), format!("{location}\n").as_bytes()).map_err(failed)?;
            let store = Arc::new(store);
            folder = Some(store.clone());
            store
        }
        NodeObjects::None => return Ok(Objects { store: Arc::new(EmptyStore), folder }),
    };
    let mut after: Option<ObjectId> = None;
    loop {
        let page = store.list(OBJECT_PREFIX, after.as_ref(), LIST_PAGE).map_err(failed)?;
        for id in &page {
            if store.stat(id).map_err(failed)?.state != ArrivalState::Closed {
                remove(&*store, id).map_err(failed)?;
            }
        }
        match page.last() {
            Some(last) => after = Some(last.clone()),
            None => return Ok(Objects { store, folder }),
        }
    }
}

/// Checks that the node did not keep objects elsewhere before.
fn check_place(dir: &Path, objects: &NodeObjects) -> Result<(), ServerError> {
    let usage = |text: String| Err(ServerError::Usage(format!("{} {text}", dir.display())));
    if *objects != NodeObjects::Directory && dir.join(OBJECTS).exists() {
        let option = if *objects == NodeObjects::None { "--without-store" } else { "--objects" };
        return usage(format!(
            "has a store, maybe with parts of files; start the node without {option}, or give an empty --target"
        ));
    }
    let path = dir.join(PLACE_FILE);
    let known = match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ServerError::File { verb: "read", path, source }),
    };
    match objects {
        NodeObjects::Ceph(location) if location.to_string() == known => Ok(()),
        _ => usage(format!(
            "keeps its objects in {known}, maybe with parts of files; start the node with --objects {known}, or give an \
             empty --target"
        )),
    }
}

/// Removes an object, if there is one.
pub(crate) fn remove(store: &dyn ObjectStore, id: &ObjectId) -> Result<(), StoreError> {
    match store.remove(id) {
        Err(StoreError::NotFound { .. }) => Ok(()),
        other => other,
    }
}

/// The id of a target. It is made on the first start.
pub(crate) fn id(dir: &Path) -> Result<String, ServerError> {
    let path = dir.join(ID_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = format!("{:032x}", fastrand::u128(..));
            write_atomic(&path, format!("{id}\n").as_bytes())
                .map_err(|source| ServerError::Store { target: dir.to_owned(), source })?;
            Ok(id)
        }
        Err(source) => Err(ServerError::File { verb: "read", path, source }),
    }
}

/// Reads the key of the cluster. Makes one if `make` is given and there is none.
pub(crate) fn key(path: &Path, make: bool) -> Result<Key, ServerError> {
    let read = |source| ServerError::File { verb: "read", path: path.to_owned(), source };
    match std::fs::read_to_string(path) {
        Ok(_) if std::fs::metadata(path).map_err(read)?.mode() & 0o077 != 0 => {
            Err(ServerError::Usage(format!(
                "{0}: others may read this key, and with it every file of the cluster; make it readable by its owner only: \
             chmod 600 {0}",
                path.display()
            )))
        }
        Ok(text) => Key::from_hex(&text).ok_or_else(|| {
            ServerError::Usage(format!("{} holds no key of 64 hexadecimal digits", path.display()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && make => {
            let bytes = Key::random_bytes()?;
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let write = |source| ServerError::File { verb: "write", path: path.to_owned(), source };
            // The file is written whole or not at all: with half a key the node could never start.
            let new = path.with_extension("new");
            // An older file may be readable by others.
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(write(error)),
                _ => {}
            }
            let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
            let mut file = made.map_err(write)?;
            writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(write)?;
            std::fs::rename(&new, path).map_err(write)?;
            Ok(Key::from_bytes(&bytes))
        }
        Err(error) => Err(read(error)),
    }
}
