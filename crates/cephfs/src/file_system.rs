//! A file system, and the connection to it.

use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use gristmill_backend::{BackendError, Result};
use rustix::io::Errno;

use crate::CephOptions;
use crate::client::{MountFailure, Mounted, at_exit};

/// Longest wait of each step of a mount for the servers, in seconds.
pub const MOUNT_PATIENCE: u32 = 30;

/// The number with which the library says that it finds no monitor (`CEPHFS_ERROR_MON_MAP_BUILD`).
const NO_MONITOR: i32 = 1_000;

/// Options of the client. The library checks modes and access control lists of files for each user, and writes no files of its own. It
/// keeps no bytes of files: folds read them once, and copying them through its cache took a quarter of the time of a sum.
const OPTIONS: [(&str, &str); 7] = [
    ("client_oc", "false"),
    ("fuse_default_permissions", "false"),
    ("client_acl_type", "posix_acl"),
    ("admin_socket", ""),
    ("log_file", ""),
    ("log_to_stderr", "false"),
    ("err_to_stderr", "false"),
];

/// Most folders that a process keeps mounted while nobody uses them.
pub const MAX_MOUNTED: usize = 8;

/// Time for which a failure to mount is remembered. Those who waited for it meanwhile fail with it, and do not try one after the other.
pub const FAILED_TIME: Duration = Duration::from_secs(5);

/// Longest wait for the end of the sessions when the process ends.
pub const END_PATIENCE: Duration = Duration::from_secs(5);

/// A folder of a file system that is mounted when it is needed. All users of a process share the connection.
pub(crate) struct FileSystem {
    options: CephOptions,
    connection: Mutex<Connection>,
}

/// The connection of a folder.
#[derive(Default)]
enum Connection {
    /// There is none.
    #[default]
    None,
    Mounted(Arc<Mounted>),
    /// It could not be made.
    Failed(Instant, MountFailure),
}

/// The folders that this process has mounted, the longest unused first.
static KNOWN: Mutex<VecDeque<Arc<FileSystem>>> = Mutex::new(VecDeque::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All sessions of this process.
static SESSIONS: Mutex<Vec<Weak<Mounted>>> = Mutex::new(Vec::new());

/// Whether the process ends, so that no session begins.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the sessions of this process. Without that, programs that write to files that were read here wait for a minute.
fn end_sessions() {
    ENDING.store(true, Ordering::SeqCst);
    // In a process that was forked somebody may hold the lock for ever.
    let Ok(mut sessions) = SESSIONS.try_lock() else { return };
    let mounted: Vec<_> = std::mem::take(&mut *sessions).iter().filter_map(Weak::upgrade).collect();
    drop(sessions);
    let (done, ended) = sync_channel(mounted.len());
    for mounted in mounted.iter().filter(|mounted| mounted.is_of_this_process()) {
        let (mounted, done) = (mounted.clone(), done.clone());
        let end = move || {
            mounted.unmount(END_PATIENCE);
            // Nobody may wait any more.
            let _ = done.send(());
        };
        let _ = Builder::new().name("ceph end".into()).spawn(end);
    }
    drop(done);
    let last = Instant::now() + END_PATIENCE;
    while ended.recv_timeout(last.saturating_duration_since(Instant::now())).is_ok() {}
    // Other threads may still use them.
    std::mem::forget(mounted);
}

impl FileSystem {
    /// The file system of these options. Nothing is connected.
    pub fn of(options: CephOptions) -> Arc<FileSystem> {
        let mut known = lock(&KNOWN);
        let at = known.iter().position(|file_system| file_system.options == options);
        let new = || Arc::new(FileSystem { options, connection: Mutex::default() });
        let file_system = at.and_then(|at| known.remove(at)).unwrap_or_else(new);
        known.push_back(file_system.clone());
        // One that is in use stays, so that nobody mounts its folder again.
        let unused = known.iter().position(|file_system| Arc::strong_count(file_system) == 1);
        let oldest = unused.filter(|_| known.len() > MAX_MOUNTED).and_then(|at| known.remove(at));
        drop(known);
        // Its session may take a second to end.
        if let Some(oldest) = oldest {
            let _ = Builder::new().name("ceph end".into()).spawn(move || drop(oldest));
        }
        file_system
    }

    /// The connection. It is made if there is none.
    ///
    /// # Errors
    /// The error is [`BackendError::Unavailable`] if the library is missing, if the servers do not answer, or if there is no such folder,
    /// and [`BackendError::Denied`] if they refuse the key.
    pub fn mounted(&self) -> Result<Arc<Mounted>> {
        let mut connection = lock(&self.connection);
        match &*connection {
            Connection::Mounted(mounted) if mounted.is_of_this_process() => return Ok(mounted.clone()),
            Connection::Failed(at, failure) if at.elapsed() < FAILED_TIME => {
                return Err(self.explain(failure.clone()));
            }
            _ => {}
        }
        if ENDING.load(Ordering::SeqCst) {
            return Err(self.explain(MountFailure::Mount(Errno::NOTCONN)));
        }
        match self.mount()? {
            Ok(mounted) => {
                at_exit(end_sessions);
                let mounted = Arc::new(mounted);
                let mut sessions = lock(&SESSIONS);
                sessions.retain(|session| session.strong_count() > 0);
                sessions.push(Arc::downgrade(&mounted));
                drop(sessions);
                *connection = Connection::Mounted(mounted.clone());
                Ok(mounted)
            }
            Err(failure) => {
                *connection = Connection::Failed(Instant::now(), failure.clone());
                Err(self.explain(failure))
            }
        }
    }

    /// Forgets a connection that is of no use any more.
    pub fn forget(&self, lost: &Arc<Mounted>) {
        let mut connection = lock(&self.connection);
        if matches!(&*connection, Connection::Mounted(mounted) if Arc::ptr_eq(mounted, lost)) {
            *connection = Connection::None;
        }
    }

    fn mount(&self) -> Result<std::result::Result<Mounted, MountFailure>> {
        let CephOptions { id, configuration, file_system, folder } = &self.options;
        let text = |text: &str| {
            let why = "it holds a NUL character";
            CString::new(text).map_err(|_| BackendError::InvalidKey { key: text.to_owned(), why })
        };
        let options = OPTIONS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let patience = ("client_mount_timeout".to_owned(), MOUNT_PATIENCE.to_string());
        let options: Vec<(CString, CString)> = options
            .into_iter()
            .chain([patience])
            .map(|(name, value)| Ok((text(&name)?, text(&value)?)))
            .collect::<Result<_>>()?;
        let options: Vec<_> = options.iter().map(|(name, value)| (&**name, &**value)).collect();
        let configuration = configuration.as_ref().map(|path| text(&path.to_string_lossy())).transpose()?;
        let file_system = file_system.as_deref().map(text).transpose()?;
        let folder = text(&format!("/{folder}"))?;
        Ok(Mounted::mount(&text(id)?, configuration.as_deref(), &options, file_system.as_deref(), &folder))
    }

    fn explain(&self, failure: MountFailure) -> BackendError {
        let name = self.options.to_string();
        let unavailable = |why: String| BackendError::Unavailable { name: name.clone(), why };
        match failure {
            MountFailure::NoLibrary(why) => unavailable(format!(
                "the client library of Ceph is not installed ({why}); install libcephfs2 of the release of the cluster"
            )),
            MountFailure::Configuration(what, errno) => unavailable(format!(
                "{what} cannot be read or set ({errno}); set CEPH_CONF to the configuration of the cluster"
            )),
            MountFailure::Mount(errno) => match errno {
                Errno::NOENT => unavailable(format!(
                    "there is no such folder or file system, or no key of client.{}; check the URL, CEPH_ARGS (--id NAME) and the keyring",
                    self.options.id
                )),
                Errno::ACCESS | Errno::PERM => BackendError::Denied {
                    name: name.clone(),
                    why: format!(
                        "the cluster refuses client.{}: its key is another one, or has no rights for this folder \
                         (ceph fs authorize)",
                        self.options.id
                    ),
                },
                Errno::TIMEDOUT => unavailable(format!(
                    "the servers of Ceph did not answer in {MOUNT_PATIENCE} s; check that the monitors and a server of the file \
                     system run (ceph status)"
                )),
                errno if errno.raw_os_error() == NO_MONITOR => unavailable(
                    "the configuration names no monitor that can be found; check mon_host in it, and CEPH_CONF".into(),
                ),
                errno => unavailable(format!("the file system cannot be mounted: {errno}")),
            },
        }
    }
}
