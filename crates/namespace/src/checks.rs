//! Checks of arguments.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{MAX_ADDRESS_BYTES, MAX_CLUSTER_TARGETS, MAX_FILE_BYTES, MAX_LEASE, NamespaceError, Result};

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

pub(crate) fn check_lease(lease: Duration) -> Result<()> {
    if lease > MAX_LEASE {
        return Err(NamespaceError::invalid("the lease is longer than 30 days", "use a shorter lease"));
    }
    Ok(())
}

pub(crate) fn check_address(address: &str) -> Result<()> {
    let strange = |c: char| c.is_whitespace() || c.is_control();
    if address.is_empty() || address.len() > MAX_ADDRESS_BYTES || address.contains(strange) {
        return Err(NamespaceError::invalid(
            format!("{:?} is not an address of a storage node", crate::error::shorten(address)),
            "use 1 to 255 bytes without spaces, such as host:port",
        ));
    }
    Ok(())
}

/// Checks the length and the number of versions of a commit.
pub(crate) fn check_length(length: u64, versions: &[u64]) -> Result<()> {
    if length > MAX_FILE_BYTES {
        return Err(NamespaceError::invalid(
            format!("a file of {length} bytes is too long"),
            "use less than 2^63 bytes",
        ));
    }
    if versions.len() > MAX_CLUSTER_TARGETS {
        return Err(NamespaceError::TooMany { what: "versions", limit: MAX_CLUSTER_TARGETS as u64 });
    }
    Ok(())
}
