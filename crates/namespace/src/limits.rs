//! Bounds of a namespace.

use std::time::Duration;

#[cfg(doc)]
use crate::Namespace;

/// Most targets of a cluster, and so of a file.
pub const MAX_CLUSTER_TARGETS: usize = 1_024;

/// Longest address of a storage node, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 255;

/// Longest lease of a put in progress.
pub const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Most puts of a user that are in progress, or were abandoned and are not collected yet.
pub const MAX_UNFINISHED: u32 = 16_384;

/// Most names in one answer of [`Namespace::list`].
pub const MAX_LIST_PAGE: usize = 1_000;

/// Most garbage in one answer of [`Namespace::garbage`], and most expired attempts or held files that one call makes
/// garbage.
pub const MAX_GARBAGE_PAGE: usize = 1_000;

/// Most ids in one call of [`Namespace::forget_collected`].
pub const MAX_COLLECTED: usize = 10_000;

/// Most ids in one answer of [`Namespace::named_puts`].
pub const MAX_NAMED_PAGE: usize = 4_096;

/// Most files that one call moves or removes, because all other changes wait meanwhile.
pub const MAX_CHANGED_AT_ONCE: u64 = 500_000;

/// Most attached trees.
pub const MAX_TREES: usize = 1_024;

/// Longest source of a tree, in bytes.
pub const MAX_SOURCE_BYTES: usize = 16_384;

/// Longest file, and largest stripe unit and record, in bytes: the largest signed 64-bit offset.
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;
