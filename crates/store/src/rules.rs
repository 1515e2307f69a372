//! What implementations of [`ObjectStore`](crate::ObjectStore) share: the checks of arguments, sets of intervals, and locks.
//!
//! Crates with other backends use it, so that all refuse the same with the same error.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::SystemTime;

use crate::{
    ArrivalState, AttributeChange, MAX_ATTRIBUTES, MAX_LIST_PAGE, ObjectId, Result, Stat, StoreError, Version,
};

pub use crate::clock::{from_nanos, to_nanos};
pub use crate::counter::decode as decode_counter;
pub use crate::intervals::IntervalSet;
pub use crate::limits::{
    check_attribute_name, check_attribute_value, check_extents, check_lease, check_length, write_end,
};
pub use crate::locks::{lock, read, write};

/// The metadata of an object at `now`. `lease` is the end of its lease; an object without one is closed.
#[must_use]
pub fn stat_at(
    length: u64,
    version: Version,
    modified: SystemTime,
    lease: Option<SystemTime>,
    now: SystemTime,
) -> Stat {
    Stat { length, version, state: ArrivalState::at(lease, now), modified }
}

/// The names of the attributes of an object after `changes`.
///
/// # Errors
/// The error is [`InvalidAttribute`](StoreError::InvalidAttribute) for an invalid name, and [`TooLarge`](StoreError::TooLarge) for a value
/// that is too long, or if there are more than [`MAX_ATTRIBUTES`] and more than before.
pub fn names_after(names: &BTreeSet<String>, changes: &[AttributeChange<'_>]) -> Result<BTreeSet<String>> {
    let mut after = names.clone();
    for &(name, value) in changes {
        check_attribute_name(name)?;
        match value {
            Some(value) => {
                check_attribute_value(value)?;
                after.insert(name.to_owned());
            }
            None => drop(after.remove(name)),
        }
    }
    if after.len() > MAX_ATTRIBUTES && after.len() > names.len() {
        let limit = MAX_ATTRIBUTES as u64;
        return Err(StoreError::TooLarge { what: "the number of attributes", limit });
    }
    Ok(after)
}

/// Refuses another version than the one that is expected.
///
/// # Errors
/// The error is [`Stale`](StoreError::Stale).
pub fn check_version(id: &ObjectId, expected: Option<Version>, actual: Version) -> Result<()> {
    match expected {
        Some(expected) if expected != actual => Err(StoreError::Stale { id: id.clone(), expected, actual }),
        _ => Ok(()),
    }
}

/// Where a page of a list begins: at the first name with `prefix`, or behind `after` if that comes later.
#[must_use]
pub fn page_start<'a>(prefix: &'a str, after: Option<&'a ObjectId>) -> (Bound<&'a str>, Bound<&'a str>) {
    let first = match after.map(ObjectId::as_str) {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    (first, Bound::Unbounded)
}

/// A page of a list: the first of `names` that have `prefix`. The names are in order, from [`page_start`] on.
pub fn page<'a>(names: impl Iterator<Item = &'a ObjectId>, prefix: &str, limit: usize) -> Vec<ObjectId> {
    names.take_while(|id| id.as_str().starts_with(prefix)).take(limit.min(MAX_LIST_PAGE)).cloned().collect()
}
