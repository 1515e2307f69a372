//! One object in memory.
//!
//! Locks are taken in this order: `writer`, table, `shared`, SQLite. A thread that changes `shared` also holds
//! `writer`. So other threads do not change `shared` while a thread holds `writer`. Readers need only `shared`, and
//! hold it while they read bytes, so a read sees all of a write or none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;

use super::meta::{Changes, Row};
use super::sums::ObjectSums;
use crate::clock::{from_nanos, to_nanos};
use crate::disk::DataFile;
use crate::intervals::IntervalSet;
use crate::sums::BlockSum;
use crate::{ArrivalState, ObjectId, Result, Stat, StoreError, Version};

pub(super) struct Object {
    pub(super) id: ObjectId,
    /// First version of the object. No other object ever has the same.
    pub(super) birth: u64,
    pub(super) writer: Mutex<WriterState>,
    pub(super) shared: RwLock<SharedState>,
    /// Time of the last lookup, in ticks of the table.
    pub(super) used: AtomicU64,
    /// Whether a sync of its file failed; see [`StoreError::Unsynced`].
    pub(super) unsynced: AtomicBool,
}

/// State that only writers of the object use.
pub(super) struct WriterState {
    /// Whether the object has a row.
    pub(super) persisted: bool,
    /// Whether its row is marked `dirty`, with the range `touched`.
    pub(super) marked: bool,
    /// Range of the durable bytes that may have changed since the last flush.
    pub(super) touched: Range<u64>,
    /// Length in its row. The file is never shorter.
    pub(super) durable_length: u64,
    /// Whether bytes, length or state changed since the last flush.
    pub(super) changed: bool,
    /// End of the bytes that the device was asked to write before the flush.
    pub(super) write_behind_end: u64,
    /// Whether the running flush closes the object. Readers see it as closed only when that is durable.
    pub(super) closing: bool,
    /// The data file since its first change after the last flush. If the system fails to write back, the sync of a file
    /// that was opened later may not report this.
    pub(super) changed_file: Option<Arc<dyn DataFile>>,
}

pub(super) struct SharedState {
    pub(super) removed: bool,
    pub(super) version: Version,
    pub(super) length: u64,
    pub(super) modified: SystemTime,
    pub(super) lease: Option<SystemTime>,
    pub(super) written: IntervalSet,
    pub(super) sums: ObjectSums,
    /// Version at the last flush. SQLite has the sums of this version.
    pub(super) flushed: u64,
    /// Attribute changes that SQLite does not have yet.
    pub(super) pending: Changes,
    /// Whether a failed write may have left the file longer than `length`.
    pub(super) excess: bool,
}

impl Object {
    pub(super) fn new(id: ObjectId, birth: u64, now: SystemTime, lease: Option<SystemTime>) -> Self {
        let writer = WriterState {
            persisted: false,
            marked: false,
            touched: 0..0,
            durable_length: 0,
            changed: true,
            write_behind_end: 0,
            closing: false,
            changed_file: None,
        };
        let shared = SharedState {
            removed: false,
            version: Version(birth),
            length: 0,
            modified: now,
            lease,
            written: IntervalSet::default(),
            sums: ObjectSums::new(BlockSum::Zeros),
            flushed: birth,
            pending: BTreeMap::new(),
            excess: false,
        };
        Self::with(id, birth, writer, shared)
    }

    pub(super) fn from_row(id: ObjectId, row: Row) -> Self {
        let default_sum = row.default_sum();
        let writer = WriterState {
            persisted: true,
            marked: row.dirty.is_some(),
            durable_length: row.length,
            changed: row.dirty.is_some(),
            touched: row.dirty.unwrap_or(0..0),
            write_behind_end: row.length,
            closing: false,
            changed_file: None,
        };
        let shared = SharedState {
            removed: false,
            version: Version(row.version),
            length: row.length,
            modified: from_nanos(row.modified),
            lease: row.lease.map(from_nanos),
            written: row.written,
            sums: ObjectSums::new(default_sum),
            flushed: row.version,
            pending: BTreeMap::new(),
            excess: false,
        };
        Self::with(id, row.birth, writer, shared)
    }

    fn with(id: ObjectId, birth: u64, writer: WriterState, shared: SharedState) -> Self {
        let (writer, shared) = (Mutex::new(writer), RwLock::new(shared));
        Self { id, birth, writer, shared, used: AtomicU64::new(0), unsynced: AtomicBool::new(false) }
    }

    /// Returns `shared`, or an error if the object was removed after its lookup.
    pub(super) fn check_live<G: std::ops::Deref<Target = SharedState>>(&self, shared: G) -> Result<G> {
        if shared.removed { Err(StoreError::NotFound { id: self.id.clone() }) } else { Ok(shared) }
    }

    pub(super) fn check_version(&self, shared: &SharedState, if_version: Option<Version>) -> Result<()> {
        match if_version {
            Some(expected) if expected != shared.version => {
                Err(StoreError::Stale { id: self.id.clone(), expected, actual: shared.version })
            }
            _ => Ok(()),
        }
    }
}

impl SharedState {
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
            summed: self.sums.default_sum == BlockSum::Zeros,
        }
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len)).sum()
    }
}
