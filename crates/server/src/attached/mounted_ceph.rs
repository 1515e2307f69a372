//! Where files of mounts of CephFS lie.
//!
//! A tree may be a folder of a mounted CephFS. The nodes read its files through the mount. If the entry node also has the client library, the
//! configuration and a key of Ceph, the cluster tells it on which hosts the objects of a file lie, as for `cephfs://`. This is only a hint: if
//! it is missing or wrong, results are the same, and bytes come from other hosts.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use gristmill_backend::{Backend, BackendError, HostStripes, Key, Reader};
use gristmill_cephfs::{CephFs, folder_of_mount};

use crate::limits::{LOCATE_AGAIN, MAX_OPEN_TREES};

/// The folders of trees in their clusters, the longest known first. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct MountedCeph(Arc<Mutex<VecDeque<(PathBuf, Folder)>>>);

#[derive(Clone)]
enum Folder {
    /// A thread connects to the cluster. Nobody waits for it.
    Connecting,
    Found(Arc<CephFs>),
    /// It is in no CephFS, or the cluster cannot be asked. It is tried again after this time.
    None {
        until: Instant,
    },
}

impl MountedCeph {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(PathBuf, Folder)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, root: &Path, folder: Folder) {
        let mut known = self.lock();
        known.retain(|(known, _)| known != root);
        if known.len() >= MAX_OPEN_TREES {
            known.pop_front();
        }
        known.push_back((root.to_owned(), folder));
    }

    /// The hosts of the bytes of a file in the tree of a mount, if they are known now. The first question about a tree only begins to connect
    /// to its cluster.
    pub fn locate(&self, root: &Path, key: &Key, length: u64) -> Option<Vec<HostStripes>> {
        let known = self.lock().iter().find(|(known, _)| known == root).map(|(_, folder)| folder.clone());
        match known {
            Some(Folder::Connecting) => None,
            Some(Folder::None { until }) if Instant::now() < until => None,
            Some(Folder::Found(folder)) => {
                let located = folder.locate(key, length);
                if let Err(BackendError::Unavailable { .. }) = located {
                    self.set(root, Folder::None { until: Instant::now() + LOCATE_AGAIN });
                }
                located.ok()
            }
            Some(Folder::None { .. }) | None => {
                self.set(root, Folder::Connecting);
                let (places, root) = (self.clone(), root.to_owned());
                // Without a thread the next question tries again.
                let begun = Builder::new().name("ceph places".into()).spawn({
                    let (places, root) = (places.clone(), root.clone());
                    move || places.set(&root, connect(&root))
                });
                if begun.is_err() {
                    places.set(&root, Folder::None { until: Instant::now() });
                }
                None
            }
        }
    }
}

fn connect(root: &Path) -> Folder {
    let folder = folder_of_mount(root).and_then(|options| CephFs::new(&options, Reader::Process).ok());
    match folder.filter(|folder| folder.list(&Key::ROOT, None, 1).is_ok()) {
        Some(folder) => Folder::Found(Arc::new(folder)),
        None => Folder::None { until: Instant::now() + LOCATE_AGAIN },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_of_another_file_system_has_no_places() {
        let places = MountedCeph::default();
        let root = Path::new("/");
        let known =
            || places.lock().iter().find(|(known, _)| known == root).map(|(_, folder)| folder.clone());
        assert!(places.locate(root, &Key::new("a").unwrap(), 1).is_none());
        while matches!(known(), Some(Folder::Connecting)) {
            std::thread::yield_now();
        }
        assert!(matches!(known(), Some(Folder::None { .. })));
        assert!(places.locate(root, &Key::new("a").unwrap(), 1).is_none());
    }

    #[test]
    fn few_folders_are_kept() {
        let places = MountedCeph::default();
        for number in 0..2 * MAX_OPEN_TREES {
            places.set(Path::new(&number.to_string()), Folder::Connecting);
        }
        assert_eq!(places.lock().len(), MAX_OPEN_TREES);
    }
}
