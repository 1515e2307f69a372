//! One object in memory.
//!
//! Locks are taken in this order: `writer`, table, `shared`, SQLite. Whoever changes `shared` holds `writer`,
//! so a holder of `writer` sees `shared` stand still even between two looks at it. Readers need only
//! `shared`, and hold it while they read bytes, so a read sees all of a write or none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;

use super::meta::{Changes, Row};
use super::sums::Sums;
use crate::clock::{from_nanos, to_nanos};
use crate::disk::DataFile;
use crate::intervals::IntervalSet;
use crate::sums::BlockSum;
use crate::{ArrivalState, ObjectId, Result, Stat, StoreError, Version};

pub(super) struct Object {
    pub(super) id: ObjectId,
    /// Unique for ever: the version the object was created with.
    pub(super) birth: u64,
    pub(super) writer: Mutex<Writer>,
    pub(super) shared: RwLock<Shared>,
    /// When it was last looked up, in ticks of the table.
    pub(super) used: AtomicU64,
    /// A sync of its file failed; see [`StoreError::Unsynced`].
    pub(super) unsynced: AtomicBool,
}

/// What only writers of the object look at.
pub(super) struct Writer {
    /// The object has a row.
    pub(super) persisted: bool,
    /// Its row says `dirty`, with the range `touched`.
    pub(super) marked: bool,
    /// Only these of the durable bytes may have changed since the last flush.
    pub(super) touched: Range<u64>,
    /// Length in its row; the file is never shorter.
    pub(super) durable_length: u64,
    /// Bytes, length or state changed since the last flush.
    pub(super) changed: bool,
    /// Up to here the device was told to begin writing.
    pub(super) begun: u64,
    /// The flush under way says that the object is complete. Nobody is told so before that is durable.
    pub(super) closing: bool,
    /// The data file since it was first changed after the last flush. If writing back fails, who syncs a file that was opened
    /// later may not be told.
    pub(super) held: Option<Arc<dyn DataFile>>,
}

pub(super) struct Shared {
    pub(super) removed: bool,
    pub(super) version: Version,
    pub(super) length: u64,
    pub(super) modified: SystemTime,
    pub(super) lease: Option<SystemTime>,
    pub(super) written: IntervalSet,
    pub(super) sums: Sums,
    /// The version of the last flush, of which SQLite has the sums.
    pub(super) flushed: u64,
    /// Attribute changes not yet in SQLite.
    pub(super) pending: Changes,
    /// A failed write may have left the file longer than `length`.
    pub(super) excess: bool,
}

impl Object {
    pub(super) fn new(id: ObjectId, birth: u64, now: SystemTime, lease: Option<SystemTime>) -> Self {
        let writer = Writer {
            persisted: false,
            marked: false,
            touched: 0..0,
            durable_length: 0,
            changed: true,
            begun: 0,
            closing: false,
            held: None,
        };
        let shared = Shared {
            removed: false,
            version: Version(birth),
            length: 0,
            modified: now,
            lease,
            written: IntervalSet::default(),
            sums: Sums::new(BlockSum::Zeros),
            flushed: birth,
            pending: BTreeMap::new(),
            excess: false,
        };
        Self::with(id, birth, writer, shared)
    }

    pub(super) fn from_row(id: ObjectId, row: Row) -> Self {
        let absent = row.absent();
        let writer = Writer {
            persisted: true,
            marked: row.dirty.is_some(),
            durable_length: row.length,
            changed: row.dirty.is_some(),
            touched: row.dirty.unwrap_or(0..0),
            begun: row.length,
            closing: false,
            held: None,
        };
        let shared = Shared {
            removed: false,
            version: Version(row.version),
            length: row.length,
            modified: from_nanos(row.modified),
            lease: row.lease.map(from_nanos),
            written: row.written,
            sums: Sums::new(absent),
            flushed: row.version,
            pending: BTreeMap::new(),
            excess: false,
        };
        Self::with(id, row.birth, writer, shared)
    }

    fn with(id: ObjectId, birth: u64, writer: Writer, shared: Shared) -> Self {
        let (writer, shared) = (Mutex::new(writer), RwLock::new(shared));
        Self { id, birth, writer, shared, used: AtomicU64::new(0), unsynced: AtomicBool::new(false) }
    }

    /// `shared`, unless the object was removed after it was looked up.
    pub(super) fn live<G: std::ops::Deref<Target = Shared>>(&self, shared: G) -> Result<G> {
        if shared.removed { Err(StoreError::NotFound { id: self.id.clone() }) } else { Ok(shared) }
    }

    pub(super) fn expect(&self, shared: &Shared, if_version: Option<Version>) -> Result<()> {
        match if_version {
            Some(expected) if expected != shared.version => {
                Err(StoreError::Stale { id: self.id.clone(), expected, actual: shared.version })
            }
            _ => Ok(()),
        }
    }
}

impl Shared {
    pub(super) fn stat(&self, now: SystemTime) -> Stat {
        let state = ArrivalState::at(self.lease, now);
        Stat { length: self.length, version: self.version, state, modified: self.modified }
    }

    pub(super) fn row(&self, birth: u64) -> Row {
        Row {
            birth,
            version: self.version.0,
            length: self.length,
            modified: to_nanos(self.modified),
            lease: self.lease.map(to_nanos),
            dirty: None,
            written: self.written.clone(),
            summed: self.sums.absent == BlockSum::Zeros,
        }
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len)).sum()
    }
}
