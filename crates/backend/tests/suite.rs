//! The suite over the backends of this crate.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gristmill_backend::suite::Fixture;
use gristmill_backend::{Backend, Key, MemoryBackend, Mount, MountOptions, Reader, UnixUser, backend_suite};
use tempfile::TempDir;

impl Fixture for Memory {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.0.clone())
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        self.0.put(key, bytes.to_vec());
    }

    fn remove(&self, key: &Key) {
        self.0.remove(key);
    }
}

#[derive(Default)]
struct Memory(MemoryBackend);

/// How files of a mount are replaced.
enum Replaces {
    /// By another file that gets the name.
    ByName,
    /// In place, as some programs do.
    InPlace,
}

struct Mounted {
    folder: TempDir,
    backend: Arc<dyn Backend>,
    replaces: Replaces,
    /// Files get times that differ, whatever the clock of the file system.
    written: std::cell::Cell<u64>,
}

impl Mounted {
    fn new(replaces: Replaces, options: MountOptions) -> Mounted {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let backend = Arc::new(Mount::open_with(folder.path(), options).unwrap());
        Mounted { folder, backend, replaces, written: std::cell::Cell::new(0) }
    }
}

impl Fixture for Mounted {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        let path = self.folder.path().join(key.as_str());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let written = match self.replaces {
            Replaces::InPlace => path.clone(),
            Replaces::ByName => path.with_file_name("new"),
        };
        fs::write(&written, bytes).unwrap();
        self.written.set(self.written.get() + 1);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + self.written.get());
        fs::File::options().write(true).open(&written).unwrap().set_modified(time).unwrap();
        if written != path {
            fs::rename(written, path).unwrap();
        }
    }

    fn remove(&self, key: &Key) {
        fs::remove_file(self.folder.path().join(key.as_str())).unwrap();
    }
}

backend_suite!(memory, Memory::default());
const BY_MODIFICATION: MountOptions =
    MountOptions { without_change_time: true, follows_links_out: false, reader: Reader::Process };
const OF_THE_USER: MountOptions =
    MountOptions { without_change_time: true, follows_links_out: true, reader: Reader::Process };
const ONLY_PUBLIC: MountOptions =
    MountOptions { without_change_time: false, follows_links_out: false, reader: Reader::Everybody };

backend_suite!(mount, Mounted::new(Replaces::ByName, MountOptions::default()));
backend_suite!(mount_in_place, Mounted::new(Replaces::InPlace, MountOptions::default()));
backend_suite!(mount_by_modification, Mounted::new(Replaces::ByName, BY_MODIFICATION));
backend_suite!(mount_of_public_files, Mounted::new(Replaces::ByName, ONLY_PUBLIC));
/// The suite with the rights of another user, or with those of everybody if this process cannot take on an identity.
fn of_another_user() -> MountOptions {
    let user = UnixUser::new(54_321, 54_321, vec![]).unwrap();
    MountOptions { reader: Reader::User(Arc::new(user)), ..MountOptions::default() }
}

backend_suite!(mount_of_another_user, Mounted::new(Replaces::ByName, of_another_user()));
backend_suite!(folder_of_the_user, Mounted::new(Replaces::InPlace, OF_THE_USER));
