//! Reads of a store while another process may write to it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::check::{Checker, VerifiedObject};
use super::committed_rows::CommittedRows;
use super::files::FileCache;
use super::meta::{Meta, Row};
use super::paths::{META_FILE, OBJECTS_DIR, object_path};
use super::scrub::{is_unreadable, rest_damaged, scan, step_blocks};
use super::{missing, wrong_length};
use crate::clock::from_nanos;
use crate::disk::{DataFile, Disk, read_full};
use crate::limits::{check_attribute_name, check_extents};
use crate::sums::BLOCK_BYTES;
use crate::{
    ArrivalState, CasOutcome, Clock, CreateOptions, Extent, MAX_LIST_PAGE, MAX_WRITTEN_PAGE, ObjectId,
    ObjectStore, ReadOptions, Result, ScrubResult, Stat, StoreError, Version, WriteOptions,
};

/// A store in a directory, open for reading. [`LocalStore::open_read_only`](super::LocalStore) makes it.
///
/// It sees the objects, lengths, attributes and versions that the writing process flushed. The bytes of an object that
/// is being changed may be newer. Every change returns [`ReadOnly`](StoreError::ReadOnly).
///
/// A read with `if_version` checks the version before and after it reads the bytes. This check is one
/// `PRAGMA data_version`, which reads memory that SQLite shares between processes. The row is read again only if there
/// was a commit in between. While the writer has unflushed changes in the object, such a read returns
/// [`Unflushed`](StoreError::Unflushed), because no version names its bytes.
pub struct LocalReader {
    objects: PathBuf,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    rows: CommittedRows,
    files: FileCache,
    checker: Checker,
}

impl LocalReader {
    pub(super) fn open(dir: &Path, clock: Arc<dyn Clock>, disk: Arc<dyn Disk>) -> Result<Self> {
        let (objects, path) = (dir.join(OBJECTS_DIR), dir.join(META_FILE));
        if let Err(error) = std::fs::metadata(&path) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(StoreError::io("look at", &path, error));
            }
            let what = format!("{} holds no store: {META_FILE} is missing", dir.display());
            return Err(StoreError::Invalid { what, remedy: "give the directory of an existing store" });
        }
        let meta = Meta::open_read_only(&path, disk.clone())?;
        Ok(Self {
            objects,
            disk,
            clock,
            rows: CommittedRows::new(meta),
            files: FileCache::new(),
            checker: Checker::new(),
        })
    }

    /// Fills `buffer` with bytes of the object, and checks them. The bytes must lie within the object.
    fn read_exact(
        &self,
        id: &ObjectId,
        row: &Row,
        offset: u64,
        buffer: &mut [u8],
        verify: bool,
    ) -> Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let path = || object_path(&self.objects, id);
        let file = self.file(id, row)?;
        let found =
            read_full(&*file, buffer, offset).map_err(|error| StoreError::io("read", &path(), error))?;
        if found < buffer.len() {
            return Err(wrong_length(&path(), offset + found as u64, row.length));
        }
        self.with_verified_object(id, row, &*file, verify, |subject| {
            self.checker.check(subject, offset, buffer)
        })
    }

    /// Calls `work` with the object, for checks of its bytes. The sums of blocks that the writer may have changed since
    /// the last flush are not current.
    fn with_verified_object<T>(
        &self,
        id: &ObjectId,
        row: &Row,
        file: &dyn DataFile,
        recheck: bool,
        work: impl FnOnce(&VerifiedObject<'_>) -> T,
    ) -> T {
        work(&VerifiedObject {
            id,
            path: &|| object_path(&self.objects, id),
            birth: row.birth,
            version: row.version,
            length: row.length,
            file,
            recheck,
            now: self.clock.now(),
            is_current: &|block, _| {
                let (start, end) = (block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
                let untouched = |dirty: &Range<u64>| start >= dirty.end || end <= dirty.start;
                row.dirty.as_ref().is_none_or(|dirty| untouched(dirty) && end <= row.length)
            },
            load: &|number| self.rows.meta.segment(row.birth, number, row.default_sum()),
        })
    }

    fn file(&self, id: &ObjectId, row: &Row) -> Result<Arc<dyn DataFile>> {
        self.files.get(row.birth, || self.open_file(id))
    }

    /// Does the same as [`open_file`](Self::open_file), and checks that no bytes are cut off.
    fn open_whole_file(&self, id: &ObjectId, row: &Row) -> Result<Box<dyn DataFile>> {
        let (path, file) = (object_path(&self.objects, id), self.open_file(id)?);
        match file.len().map_err(|error| StoreError::io("look at", &path, error))? {
            found if found < row.length => Err(wrong_length(&path, found, row.length)),
            _ => Ok(file),
        }
    }

    /// Opens the data file, even if it is open already.
    fn open_file(&self, id: &ObjectId) -> Result<Box<dyn DataFile>> {
        let path = object_path(&self.objects, id);
        self.disk.open_file(&path, false).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(&path),
            _ => StoreError::io("open", &path, error),
        })
    }
}

fn refuse<T>(op: &'static str) -> Result<T> {
    Err(StoreError::ReadOnly { op })
}

impl ObjectStore for LocalReader {
    fn create(&self, _: &ObjectId, _: &CreateOptions) -> Result<Stat> {
        refuse("create objects")
    }

    fn remove(&self, _: &ObjectId) -> Result<()> {
        refuse("remove objects")
    }

    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize> {
        self.rows.read_checked(id, options, |row| {
            let within = row.length.saturating_sub(offset);
            let n = usize::try_from(within).map_or(buffer.len(), |within| within.min(buffer.len()));
            self.read_exact(id, row, offset, buffer.get_mut(..n).unwrap_or_default(), options.verify)?;
            Ok(n)
        })
    }

    fn verify(&self, id: &ObjectId, range: Range<u64>, options: ReadOptions) -> Result<()> {
        self.rows.read_checked(id, options, |row| {
            if range.start >= range.end.min(row.length) {
                return Ok(());
            }
            let file = self.file(id, row)?;
            self.with_verified_object(id, row, &*file, options.verify, |subject| {
                self.checker.check_blocks(subject, range.clone())
            })
        })
    }

    fn read_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        buffer: &mut [u8],
        options: ReadOptions,
    ) -> Result<()> {
        let end = check_extents(extents, buffer.len())?;
        // All extents must come from one state of the object, even if the caller named no version.
        let row = self.rows.get(id)?;
        let options = match options.if_version {
            None if row.dirty.is_none() => ReadOptions { if_version: Some(Version(row.version)), ..options },
            _ => options,
        };
        self.rows.read_checked(id, options, |row| {
            if end > row.length {
                return Err(StoreError::OutOfRange { id: id.clone(), end, length: row.length });
            }
            let mut rest = &mut *buffer;
            for extent in extents {
                let (piece, tail) = rest.split_at_mut(extent.len as usize);
                self.read_exact(id, row, extent.offset, piece, options.verify)?;
                rest = tail;
            }
            Ok(())
        })
    }

    fn write_at(&self, _: &ObjectId, _: u64, _: &[u8], _: WriteOptions<'_>) -> Result<Version> {
        refuse("write")
    }

    fn write_extents(&self, _: &ObjectId, _: &[Extent], _: &[u8], _: WriteOptions<'_>) -> Result<Version> {
        refuse("write")
    }

    fn append(&self, _: &ObjectId, _: &[u8]) -> Result<(u64, Version)> {
        refuse("append")
    }

    fn punch(&self, _: &ObjectId, _: Range<u64>) -> Result<Version> {
        refuse("punch")
    }

    fn truncate(&self, _: &ObjectId, _: u64) -> Result<Version> {
        refuse("truncate")
    }

    fn flush(&self, id: &ObjectId) -> Result<()> {
        self.rows.get(id).map(|_| ())
    }

    fn stat(&self, id: &ObjectId) -> Result<Stat> {
        let row = self.rows.get(id)?;
        let state = ArrivalState::at(row.lease.map(from_nanos), self.clock.now());
        let modified = from_nanos(row.modified);
        Ok(Stat { length: row.length, version: Version(row.version), state, modified })
    }

    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        self.rows.meta.list(prefix, after, limit.min(MAX_LIST_PAGE))
    }

    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>> {
        check_attribute_name(name)?;
        self.rows.for_one_object(id, |birth| self.rows.meta.attribute(birth, name))
    }

    fn set_attribute(&self, _: &ObjectId, _: &str, _: &[u8]) -> Result<()> {
        refuse("set attributes")
    }

    fn remove_attribute(&self, _: &ObjectId, _: &str) -> Result<bool> {
        refuse("remove attributes")
    }

    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>> {
        self.rows.for_one_object(id, |birth| self.rows.meta.attribute_names(birth))
    }

    fn compare_and_swap(
        &self,
        _: &ObjectId,
        _: &str,
        _: Option<&[u8]>,
        _: Option<&[u8]>,
    ) -> Result<CasOutcome> {
        refuse("change attributes")
    }

    fn fetch_add(&self, _: &ObjectId, _: &str, _: i64) -> Result<i64> {
        refuse("change attributes")
    }

    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        Ok(self.rows.get(id)?.written.within(range, MAX_WRITTEN_PAGE))
    }

    fn renew_lease(&self, _: &ObjectId, _: Duration) -> Result<()> {
        refuse("renew leases")
    }

    fn close(&self, _: &ObjectId) -> Result<Version> {
        refuse("close objects")
    }

    /// Compares blocks with their sums. New sums of unknown blocks are not stored.
    fn scrub(&self, id: &ObjectId, from: u64) -> Result<ScrubResult> {
        self.rows.read_checked(id, ReadOptions::default(), |row| {
            let Some((number, blocks)) = step_blocks(from, row.length) else {
                return Ok(ScrubResult::default());
            };
            let found = match self.open_whole_file(id, row) {
                // If the writer changed the object meanwhile, the scrub begins again.
                Err(error) if is_unreadable(&error) && *self.rows.get(id)? == *row => {
                    return Ok(rest_damaged(from, row.length));
                }
                file => self.with_verified_object(id, row, &*file?, true, |subject| {
                    scan(subject, &mut (subject.load)(number)?, blocks)
                })?,
            };
            match found.damaged.first() {
                // The writer may have changed the object meanwhile.
                Some(_) if *self.rows.get(id)? != *row => Ok(ScrubResult { damaged: Vec::new(), ..found }),
                _ => Ok(found),
            }
        })
    }

    fn advise_sequential(&self, id: &ObjectId) -> Result<()> {
        let row = self.rows.get(id)?;
        let (path, file) = (object_path(&self.objects, id), self.file(id, &row)?);
        file.advise_sequential().map_err(|error| StoreError::io("advise on", &path, error))
    }
}
