//! One object: its state in memory, and the reads that need only that.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::time::Duration;

use gristmill_store::rules::{IntervalSet, check_version, from_nanos, stat_at};
use gristmill_store::{AttributeChange, Clock, Extent, ObjectId, Result, Stat, StoreError, Version};
use rustix::io::Errno;

use crate::access::Access;
use crate::client::{Action, Reading};
use crate::piece::{PIECE_BYTES, c_name, head, piece, split};
use crate::record::Record;

mod change;
mod heads;

pub(crate) use change::ObjectChange;
pub(crate) use heads::read_heads;

/// The state of an object.
pub(crate) struct Object {
    record: Record,
    /// Whether the stored record is older than this one.
    unflushed: bool,
    /// Whether the stored record certainly has the mark of a change. It has not while a record without the mark may still arrive, because Ceph did
    /// not answer in time.
    marked: bool,
    /// Whether pieces may have bytes after the end of the object, or pieces after it exist.
    has_tail: bool,
    /// The names of the attributes, if they were needed.
    attributes: Option<BTreeSet<String>>,
}

impl Object {
    /// An object as its head says. It has no tail, because recovery cuts it off.
    pub fn load(access: &Access, id: &ObjectId) -> Result<Object> {
        let mut heads = read_heads(access, std::slice::from_ref(id))?;
        match heads.pop().flatten() {
            Some((record, marked)) => {
                Ok(Object { record, unflushed: marked, marked, has_tail: false, attributes: None })
            }
            None => Err(damaged_head(access, id)),
        }
    }

    /// Makes an object.
    pub fn create(
        access: &Access,
        id: &ObjectId,
        lease: Option<Duration>,
        attributes: &[AttributeChange<'_>],
    ) -> Result<Object> {
        let (version, now) = (access.next_version(), access.now());
        let record = Record {
            version,
            length: 0,
            modified: now,
            // No other object has this version, so no other has these pieces.
            generation: version.0,
            lease: lease.map(|lease| after(now, lease)),
            pieces: Default::default(),
            written: IntervalSet::default(),
        };
        let bytes = record.to_bytes(false);
        let make = || {
            let actions =
                [Action::MakeNew, Action::WriteWhole(&bytes)].into_iter().chain(entries(attributes));
            access.pool.change(&head(id), actions.collect())
        };
        let made = match make() {
            // Nobody has an object of this name. An earlier creation, which Ceph did not answer in time, was made nevertheless.
            Err(Errno::EXIST) => access.pool.change(&head(id), vec![Action::Remove]).and_then(|()| make()),
            made => made,
        };
        made.map_err(access.failed("create", id))?;
        let attributes = attributes.iter().map(|(name, _)| (*name).to_owned()).collect();
        Ok(Object { record, unflushed: false, marked: false, has_tail: false, attributes: Some(attributes) })
    }

    pub fn length(&self) -> u64 {
        self.record.length
    }

    pub fn version(&self) -> Version {
        self.record.version
    }

    pub fn written(&self) -> &IntervalSet {
        &self.record.written
    }

    /// The name of a piece, if it exists.
    pub fn name_of_piece(&self, id: &ObjectId, index: u64) -> Option<CString> {
        let salt = self.record.pieces.get(&index)?;
        Some(piece_name(id, &self.record, index, *salt))
    }

    pub fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    pub fn check_version(&self, id: &ObjectId, expected: Option<Version>) -> Result<()> {
        check_version(id, expected, self.record.version)
    }

    pub fn stat(&self, clock: &dyn Clock) -> Stat {
        let Record { length, version, modified, lease, .. } = self.record;
        stat_at(length, version, from_nanos(modified), lease.map(from_nanos), clock.now())
    }

    /// Reads extents that lie within the object, one after the other, into a buffer of their length.
    ///
    /// # Errors
    /// The error is [`Damaged`](StoreError::Damaged) if Ceph has fewer bytes than were written.
    pub fn read(&self, access: &Access, id: &ObjectId, extents: &[Extent], buffer: &mut [u8]) -> Result<()> {
        let (mut readings, mut asked, mut rest) = (Vec::new(), Vec::new(), buffer);
        for extent in extents.iter().filter(|extent| extent.len > 0) {
            for (index, range) in split(extent.offset..extent.offset + extent.len) {
                // A part is at most as long as a piece.
                let (out, others) = rest.split_at_mut((range.end - range.start) as usize);
                rest = others;
                let first = index * PIECE_BYTES + range.start;
                match self.record.pieces.get(&index) {
                    Some(&salt) => {
                        let name = c_name(piece(id, self.record.generation, index, salt));
                        asked.push((first, out.len()));
                        readings.push(Reading { name, offset: range.start, out });
                    }
                    None => {
                        self.check_hole(access, id, first, out.len())?;
                        out.fill(0);
                    }
                }
            }
        }
        // The buffers go to the library, so what is missing is filled afterwards.
        let missing =
            access.pool.read_all(&mut readings).into_iter().zip(&asked).map(|(read, &(first, asked))| {
                let read = match read {
                    Err(Errno::NOENT) => 0,
                    read => read.map_err(access.failed("read", id))?.min(asked),
                };
                if read < asked {
                    self.check_hole(access, id, first + read as u64, asked - read)?;
                }
                Ok(read)
            });
        let read = missing.collect::<Result<Vec<_>>>()?;
        for (reading, read) in readings.iter_mut().zip(read) {
            reading.out.get_mut(read..).unwrap_or(&mut []).fill(0);
        }
        Ok(())
    }

    /// Checks that bytes which Ceph does not have were never written.
    fn check_hole(&self, access: &Access, id: &ObjectId, first: u64, bytes: usize) -> Result<()> {
        let lost = self.record.written.within(first..first + bytes as u64, 1);
        match lost.first() {
            None => Ok(()),
            Some(lost) => Err(StoreError::Damaged {
                what: format!(
                    "{}: bytes {} to {} were written, and Ceph has no longer the objects with them",
                    access.name_of(id),
                    lost.start,
                    lost.end
                ),
                remedy: "Write the object again from its source, and find out who removes objects of the pool",
            }),
        }
    }
}

/// The error of a head that is missing or is no record.
fn damaged_head(access: &Access, id: &ObjectId) -> StoreError {
    StoreError::Damaged {
        what: format!("the record of {} is missing or has other bytes than were written", access.name_of(id)),
        remedy: "Remove the object and write it again from its source, and find out who changes objects of the pool",
    }
}

/// The end of a lease from `now` on, in nanoseconds since 1970.
fn after(now: i64, lease: Duration) -> i64 {
    now.saturating_add(i64::try_from(lease.as_nanos()).unwrap_or(i64::MAX))
}

/// Changes of attributes as actions on a head.
fn entries<'a>(changes: &'a [AttributeChange<'a>]) -> impl Iterator<Item = Action<'a>> {
    changes.iter().map(|&(key, value)| Action::Entry { key, value })
}

impl Access {
    /// The value of an attribute of an object, or `None` if it has none.
    pub fn attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>> {
        self.pool.entry(&head(id), name).map_err(self.failed("read an attribute of", id))
    }
}

/// The name of a piece as the library takes it.
fn piece_name(id: &ObjectId, record: &Record, index: u64, salt: u8) -> CString {
    c_name(piece(id, record.generation, index, salt))
}
