//! What goes into a store operation and what comes out.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Which state of an object's bytes, length and arrival this is.
///
/// Versions of one object only grow and are never given twice, not even after a crash or after the object
/// was removed and another created under its name. Their distance means nothing.
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
    /// Its writer said it will write more, and renews a lease that runs until this time.
    Open {
        /// When the lease ends.
        until: SystemTime,
    },
    /// It is complete. Objects created without a lease are complete from the start.
    Closed,
    /// Its writer neither closed it nor renewed the lease in time.
    LeaseExpired {
        /// When the lease ended.
        since: SystemTime,
    },
}

impl ArrivalState {
    /// The state at `now` of an object whose lease ends at `lease`, or that is closed.
    pub(crate) fn at(lease: Option<SystemTime>, now: SystemTime) -> Self {
        match lease {
            None => Self::Closed,
            Some(until) if now < until => Self::Open { until },
            Some(since) => Self::LeaseExpired { since },
        }
    }
}

/// What a store knows about an object besides its bytes and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub length: u64,
    /// The version these fields and the bytes belong to.
    pub version: Version,
    /// Whether more is to come.
    pub state: ArrivalState,
    /// When the version last changed, by the store's clock.
    pub modified: SystemTime,
}

/// Options of `create`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Attributes the object starts with: name and value.
    pub attributes: Vec<(String, Vec<u8>)>,
    /// `Some(lease)`: the object is created open and is expected to be renewed or closed within the lease
    /// (at most [`MAX_LEASE`](crate::MAX_LEASE)). `None`: it is closed, the normal case.
    pub open: Option<Duration>,
}

/// Options of reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Read only this version: [`Stale`](crate::StoreError::Stale) if the object has another one, or gets
    /// another one before the read has ended.
    pub if_version: Option<Version>,
    /// Compare all that is read with its checksums, also what was compared within the last hour.
    pub verify: bool,
}

impl ReadOptions {
    /// Read only `version`.
    pub fn at(version: Version) -> Self {
        Self { if_version: Some(version), verify: false }
    }
}

/// A change of one attribute: its name, and the new value or `None` to remove it.
pub type AttributeChange<'a> = (&'a str, Option<&'a [u8]>);

/// Options of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions<'a> {
    /// Write only on top of this version; otherwise [`Stale`](crate::StoreError::Stale), nothing changed.
    pub if_version: Option<Version>,
    /// Attributes to change with the bytes. One flush makes both durable together.
    pub attributes: &'a [AttributeChange<'a>],
}

/// What a step of `scrub` found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Where the next step begins; `None` at the end of the object.
    pub next: Option<u64>,
    /// Bytes that were read and are those that were written.
    pub checked: u64,
    /// Bytes of which nothing was known: they were written by a release without checksums, or when a process was ended.
    /// They are taken as they are and checked from now on.
    pub learnt: u64,
    /// Ranges of bytes that are not those that were written, at most one block each.
    pub damaged: Vec<Range<u64>>,
}

/// A run of bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What `compare_and_swap` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CasOutcome {
    /// The attribute had the expected value and has the new one now.
    Swapped,
    /// The attribute had another value, given here; nothing changed.
    Mismatch {
        /// The value found, `None` if there was no such attribute.
        actual: Option<Vec<u8>>,
    },
}
