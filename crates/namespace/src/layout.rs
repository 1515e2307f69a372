//! Checks of layouts.

use std::collections::BTreeSet;

use crate::{MAX_CLUSTER_TARGETS, NamespaceError, Result};

/// Longest file, and largest stripe unit and record, in bytes: the largest signed 64-bit offset.
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;

pub(crate) fn check_layout(unit: u64, first: u32, targets: &[u32], record: Option<u64>) -> Result<()> {
    let count = targets.len();
    if count > MAX_CLUSTER_TARGETS {
        return Err(NamespaceError::TooMany { what: "targets of a file", limit: MAX_CLUSTER_TARGETS as u64 });
    }
    let (what, remedy) = if count == 0 {
        ("a file lies on no target", "name at least one target")
    } else if targets.iter().collect::<BTreeSet<_>>().len() < count {
        ("a file names a target twice", "name each target once")
    } else if !(1..=MAX_FILE_BYTES).contains(&unit) {
        ("the stripe unit is 0 or too large", "use 1 to 2^63-1 bytes")
    } else if record.is_some_and(|record| !(1..=MAX_FILE_BYTES).contains(&record)) {
        ("the record length is 0 or too large", "use 1 to 2^63-1 bytes, or no record length")
    } else if first as usize >= count {
        ("the position of the first target is too large", "count positions from 0")
    } else {
        return Ok(());
    };
    Err(NamespaceError::invalid(what, remedy))
}
