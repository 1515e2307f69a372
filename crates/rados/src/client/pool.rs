//! A connection to a namespace of a pool.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};

use gristmill_ceph::{ClusterUser, checked};
use rustix::io::Errno;

use super::abi::{CCluster, CPool, Functions, functions};

/// Longest wait for an answer of a storage daemon, in seconds. A change that was not answered may have happened.
pub const ANSWER_PATIENCE: u32 = 60;

/// Longest wait for an answer of a monitor, in seconds.
pub const MONITOR_PATIENCE: u32 = 30;

/// Options of the client.
const OPTIONS: [(&str, &str); 4] =
    [("admin_socket", ""), ("log_file", ""), ("log_to_stderr", "false"), ("err_to_stderr", "false")];

/// Why a pool is not opened.
#[derive(Clone, Debug)]
pub(crate) enum ConnectFailure {
    /// The library cannot be loaded.
    NoLibrary(String),
    /// A name holds a NUL character.
    Name(String),
    /// An option, or the file with the configuration.
    Configuration(String, Errno),
    /// The monitors.
    Connect(Errno),
    /// The pool.
    Pool(Errno),
}

/// A namespace of a pool of a cluster.
pub(crate) struct Pool {
    pub(super) functions: &'static Functions,
    pub(super) cluster: NonNull<CCluster>,
    /// `None` only while the connection is made.
    io: Option<NonNull<CPool>>,
}

// SAFETY: every function of the library may be called from every thread, with the same cluster and pool at once. The namespace of the
// pool, which is no part of that promise, is set before others see it.
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl Pool {
    /// Connects as a user of Ceph, and opens a namespace of a pool. An empty `namespace` is the default one.
    ///
    /// # Errors
    /// It fails if the library is missing, if the configuration cannot be read, if the monitors do not answer or refuse, and if there is no
    /// such pool.
    pub fn connect(user: &ClusterUser, pool: &str, namespace: &str) -> Result<Pool, ConnectFailure> {
        let text = |text: &str| CString::new(text).map_err(|_| ConnectFailure::Name(text.to_owned()));
        let functions = functions().map_err(ConnectFailure::NoLibrary)?;
        let (id, pool, namespace) = (text(&user.id)?, text(pool)?, text(namespace)?);
        let path =
            user.configuration.as_deref().map(Path::to_string_lossy).map(|path| text(&path)).transpose()?;
        let patience = [
            ("rados_osd_op_timeout", ANSWER_PATIENCE),
            ("rados_mon_op_timeout", MONITOR_PATIENCE),
            ("client_mount_timeout", MONITOR_PATIENCE),
        ];
        let patience = patience.map(|(name, seconds)| (name, seconds.to_string()));
        let options = OPTIONS.into_iter().chain(patience.iter().map(|(name, value)| (*name, value.as_str())));
        let options: Vec<_> = options
            .map(|(name, value)| Ok((text(name)?, text(value)?)))
            .collect::<Result<_, ConnectFailure>>()?;
        let mut cluster = null_mut();
        // SAFETY: the text ends with NUL, and the library writes one pointer.
        checked(unsafe { (functions.rados_create)(&raw mut cluster, id.as_ptr()) })
            .map_err(ConnectFailure::Connect)?;
        let cluster = NonNull::new(cluster).ok_or(ConnectFailure::Connect(Errno::NOMEM))?;
        // From here on dropping ends the connection.
        let mut opened = Pool { functions, cluster, io: None };
        let at = cluster.as_ptr();
        let configured = |what: &str, returned| {
            checked(returned).map_err(|errno| ConnectFailure::Configuration(what.to_owned(), errno)).map(drop)
        };
        let named: *const c_char = path.as_deref().map_or(null(), CStr::as_ptr);
        let mut io = null_mut();
        // SAFETY: the cluster was created and is not connected yet; the texts end with NUL; the library writes one pointer.
        unsafe {
            let shown = path.as_deref().map_or_else(|| "ceph.conf".into(), CStr::to_string_lossy);
            configured(&shown, (functions.rados_conf_read_file)(at, named))?;
            configured("CEPH_ARGS", (functions.rados_conf_parse_env)(at, null()))?;
            for (name, value) in &options {
                let shown = name.to_string_lossy();
                configured(&shown, (functions.rados_conf_set)(at, name.as_ptr(), value.as_ptr()))?;
            }
            checked((functions.rados_connect)(at)).map_err(ConnectFailure::Connect)?;
            checked((functions.rados_ioctx_create)(at, pool.as_ptr(), &raw mut io))
                .map_err(ConnectFailure::Pool)?;
        }
        opened.io = Some(NonNull::new(io).ok_or(ConnectFailure::Pool(Errno::NOMEM))?);
        // SAFETY: the pool is open, nobody else has it yet, and the text ends with NUL.
        unsafe {
            (functions.rados_ioctx_set_namespace)(opened.io(), namespace.as_ptr());
            // In a full pool locks work then, and what needs room fails instead of waiting.
            (functions.rados_set_pool_full_try)(opened.io());
        }
        Ok(opened)
    }

    /// The opened namespace, for the functions of the library.
    pub(super) fn io(&self) -> *mut CPool {
        self.io.map_or(null_mut(), NonNull::as_ptr)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(io) = self.io {
            // SAFETY: no operation runs, because each is waited for. The pool is not used again.
            unsafe { (self.functions.rados_ioctx_destroy)(io.as_ptr()) };
        }
        // SAFETY: as above.
        unsafe { (self.functions.rados_shutdown)(self.cluster.as_ptr()) };
    }
}
