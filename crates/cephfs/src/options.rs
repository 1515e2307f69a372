//! Which cluster, as which of its users, and which folder.

use std::fmt;
use std::path::PathBuf;

use gristmill_ceph::ClusterUser;

/// A folder of a file system of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CephOptions {
    /// The user of Ceph, without `client.`.
    pub id: String,
    /// The file with the configuration. `None`: `/etc/ceph/ceph.conf`, or what `CEPH_CONF` names.
    pub configuration: Option<PathBuf>,
    /// The file system. `None`: the default one of the cluster.
    pub file_system: Option<String>,
    /// The folder, with `/` between its parts. Empty: the whole file system.
    pub folder: String,
}

impl CephOptions {
    /// A folder of the cluster that the environment names, as the tools of Ceph understand it: `CEPH_CONF` has the path of the
    /// configuration, and `CEPH_ARGS` may name the user (`--id NAME`, `-n client.NAME`).
    ///
    /// An empty `file_system` is the default one of the cluster.
    #[must_use]
    pub fn of_environment(file_system: &str, folder: &str) -> CephOptions {
        let ClusterUser { id, configuration } = ClusterUser::of_environment();
        CephOptions {
            id,
            configuration,
            file_system: Some(file_system.to_owned()).filter(|name| !name.is_empty()),
            folder: folder.trim_matches('/').to_owned(),
        }
    }
}

/// The URL of the folder.
impl fmt::Display for CephOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cephfs://{}/{}", self.file_system.as_deref().unwrap_or_default(), self.folder)
    }
}
