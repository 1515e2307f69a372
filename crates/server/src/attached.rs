//! Attached trees: files of mounts, object stores and web servers under paths of the cluster.
//!
//! The entry node keeps where each tree lies, finds states of files, and asks which nodes reach the tree. A grant for such a
//! file names the tree, the key and the version. Every node of the grant reads the whole file where it lies; the stripes of
//! the map say which records it owns. So nodes do not pull bytes from each other.

mod entry;
mod locator;
mod mounted_ceph;
mod near;
mod objects;
mod open_tree;
mod open_trees;
mod opened_later;
mod parts;
mod sight;

pub(crate) use entry::at_once;
pub(crate) use locator::Locator;
pub(crate) use mounted_ceph::MountedCeph;
pub(crate) use objects::{read, read_extents};
pub(crate) use open_trees::{OpenTrees, key};
pub(crate) use parts::{is_unchanged, open, own_parts};
pub(crate) use sight::{Sight, see};
