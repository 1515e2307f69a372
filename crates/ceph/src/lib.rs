//! The parts that both client libraries of Ceph need: the choice of the cluster and of its user, and the loading of a library.
//!
//! The crates `cephfs` and `rados` use it. [`ClusterUser`] reads the environment as the tools of Ceph do. [`c_library!`] declares functions
//! of a library that is loaded when one of them is needed first, so that programs run without it.
//!
//! ```
//! use gristmill_ceph::ClusterUser;
//!
//! let user = ClusterUser::of_arguments("--conf /etc/ceph/backup.conf --id reader");
//! assert_eq!(user.id, "reader");
//! assert_eq!(user.configuration, Some("/etc/ceph/backup.conf".into()));
//! ```

mod errno;
mod library;
mod user;

pub use errno::checked;
pub use library::load;
pub use user::ClusterUser;

#[doc(hidden)]
pub use libloading;
