//! Options and results of store operations.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Number of a state of an object's bytes, length and arrival.
///
/// Versions of one object only grow. No version is used twice, even after a crash, or after the object was removed and
/// another one was created under its name. The difference of two versions means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.0)
    }
}

/// Whether an object is still arriving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalState {
    /// The writer will write more, and renews a lease.
    Open {
        /// End of the lease.
        until: SystemTime,
    },
    /// The object is complete. Objects created without a lease are complete from the start.
    Closed,
    /// The writer neither closed the object nor renewed the lease in time.
    LeaseExpired {
        /// End of the lease.
        since: SystemTime,
    },
}

impl ArrivalState {
    /// State at `now` of an object whose lease ends at `lease`. An object without a lease is closed.
    pub(crate) fn at(lease: Option<SystemTime>, now: SystemTime) -> Self {
        match lease {
            None => Self::Closed,
            Some(until) if now < until => Self::Open { until },
            Some(since) => Self::LeaseExpired { since },
        }
    }
}

/// Metadata of an object without its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub length: u64,
    /// Version of these fields and of the bytes.
    pub version: Version,
    /// Whether the object is still arriving.
    pub state: ArrivalState,
    /// Time of the last change of the version, by the store's clock.
    pub modified: SystemTime,
}

/// Options of `create`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// First attributes of the object: name and value.
    pub attributes: Vec<(String, Vec<u8>)>,
    /// `Some(lease)`: the object is open, and its writer must renew the lease or close the object within this time (at
    /// most [`MAX_LEASE`](crate::MAX_LEASE)). `None`: the object is closed, the normal case.
    pub open: Option<Duration>,
}

/// Options of reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Read only this version. The error is [`Stale`](crate::StoreError::Stale) if the object has another one, or gets
    /// another one before the read has ended.
    pub if_version: Option<Version>,
    /// Compare all bytes with their checksums, even if they were compared within the last hour.
    pub verify: bool,
}

impl ReadOptions {
    /// Options of a read of only `version`.
    pub fn at(version: Version) -> Self {
        Self { if_version: Some(version), verify: false }
    }
}

/// A change of one attribute: its name, and the new value or `None` to remove it.
pub type AttributeChange<'a> = (&'a str, Option<&'a [u8]>);

/// Options of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions<'a> {
    /// Write only if the object has this version. Otherwise the error is [`Stale`](crate::StoreError::Stale), and
    /// nothing changes.
    pub if_version: Option<Version>,
    /// Attributes to change with the bytes. One flush makes both durable together.
    pub attributes: &'a [AttributeChange<'a>],
}

/// Result of a step of `scrub`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubResult {
    /// First byte of the next step; `None` at the end of the object.
    pub next: Option<u64>,
    /// Number of bytes that were read and match their checksums.
    pub checked: u64,
    /// Number of bytes that had no checksums: a release without checksums wrote them, or a process ended while it wrote
    /// them. They are accepted as they are, and checked from now on.
    pub learnt: u64,
    /// Ranges of bytes that differ from the written bytes or cannot be read, at most one block each. If the file of the
    /// object is missing or has another length, it is the whole rest of the object.
    pub damaged: Vec<Range<u64>>,
}

/// A range of consecutive bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Outcome of `compare_and_swap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CasOutcome {
    /// The attribute had the expected value, and now has the new one.
    Swapped,
    /// The attribute had another value, and nothing changed.
    Mismatch {
        /// The value of the attribute; `None` if there is no such attribute.
        actual: Option<Vec<u8>>,
    },
}
