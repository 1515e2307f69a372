//! Recovery of a store whose last writer stopped without closing it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::meta::{Meta, Row, SettledObject};
use super::paths::object_path;
use super::sums::{SumChanges, blocks_of, index_in_segment, segment_of};
use super::versions::Versions;
use crate::disk::Disk;
use crate::sums::{BLOCK_BYTES, BlockSum, SEGMENT_BLOCKS};
use crate::{ObjectId, Result, StoreError};

/// Most objects that get their new versions in one commit.
const OBJECT_BATCH: usize = 1_000;
/// Number of segments of sums after which such a commit is made early.
const SEGMENT_BATCH: usize = 1_024;
/// Most segments of one object that are made to mark their blocks as unknown: the segments of 128 GiB.
const MAX_SEGMENTS_MADE: u64 = 4_096;

/// Whether `objects` contains no data file. Empty fan-out directories do not count.
pub(super) fn is_empty(objects: &Path) -> Result<bool> {
    for outer in fan_out_dirs(objects)? {
        for inner in fan_out_dirs(&outer)? {
            if entries(&inner)?.next().is_some() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Progress of the recovery of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Number of dirty objects that are settled.
    pub objects: u64,
    /// Numbers of synced folders and of all folders. Both are 0 before all objects are settled.
    pub folders: (u64, u64),
}

/// Settles dirty objects, removes files without a row and syncs every directory. Calls `report` with its progress.
pub(super) fn recover(
    objects: &Path,
    disk: &dyn Disk,
    meta: &Meta,
    versions: &Versions,
    report: &mut dyn FnMut(RecoveryProgress),
) -> Result<()> {
    let mut after = 0;
    let mut progress = RecoveryProgress::default();
    loop {
        let batch = meta.dirty(after, OBJECT_BATCH)?;
        let Some((_, last)) = batch.last() else { break };
        after = last.birth;
        let mut settled = Vec::with_capacity(batch.len());
        let mut segments = 0;
        for (id, row) in &batch {
            report(progress);
            progress.objects += 1;
            if cut_and_sync(disk, &object_path(objects, id), row.length)? {
                let (sums, summed) = forget_sums(meta, row)?;
                segments += sums.segments.len();
                settled.push(SettledObject { birth: row.birth, version: versions.next(meta)?, sums, summed });
            }
            if segments > SEGMENT_BATCH {
                meta.put_settled(&std::mem::take(&mut settled))?;
                segments = 0;
            }
        }
        if !settled.is_empty() {
            meta.put_settled(&settled)?;
        }
    }
    disk.sync_dir(objects).map_err(|error| StoreError::io("sync", objects, error))?;
    let outer_dirs = fan_out_dirs(objects)?;
    for (done, outer) in (0..).zip(&outer_dirs) {
        progress.folders = (done, outer_dirs.len() as u64);
        for inner in fan_out_dirs(outer)? {
            report(progress);
            remove_orphans(objects, &inner, disk, meta)?;
            disk.sync_dir(&inner).map_err(|error| StoreError::io("sync", &inner, error))?;
        }
        disk.sync_dir(outer).map_err(|error| StoreError::io("sync", outer, error))?;
    }
    Ok(())
}

/// Makes the sums in the changed range of an object unknown, because each block there may be old or new. Removes the
/// sums after its end. Returns the segments to store, and whether blocks without a sum are still known to be zeros.
fn forget_sums(meta: &Meta, row: &Row) -> Result<(SumChanges, bool)> {
    let dirty = row.dirty.clone().unwrap_or(0..0);
    let changed = blocks_of(&(dirty.start..dirty.end.min(row.length)));
    let touched = segment_of(changed.start)..changed.end.div_ceil(SEGMENT_BLOCKS);
    let behind = row.length.div_ceil(BLOCK_BYTES);
    let (last, kept) = (segment_of(behind), index_in_segment(behind));
    let few = touched.end - touched.start <= MAX_SEGMENTS_MADE;
    // In a longer range, a sparse object has mostly holes, so only stored segments are changed.
    let summed = row.summed && few;
    let mut numbers: Vec<u64> =
        if few { touched.collect() } else { meta.segments(row.birth, touched, usize::MAX)? };
    if kept > 0 && numbers.last() != Some(&last) {
        numbers.push(last);
    }
    let mut segments = BTreeMap::new();
    for number in numbers {
        let mut segment = meta.segment(row.birth, number, row.default_sum())?;
        let first = number * SEGMENT_BLOCKS;
        for block in changed.start.max(first)..changed.end.min(first + SEGMENT_BLOCKS) {
            segment.set(index_in_segment(block), BlockSum::Unknown);
        }
        if number == last && kept > 0 {
            segment.cut(kept);
        }
        segments.insert(number, segment);
    }
    Ok((SumChanges { cut: Some(last + u64::from(kept > 0)), segments }, summed))
}

/// Cuts a file to the length of its row and syncs it. Returns `false` if it is missing or too short. This is damage,
/// and later uses of the object report it. The other objects stay usable.
fn cut_and_sync(disk: &dyn Disk, path: &Path, length: u64) -> Result<bool> {
    let file = match disk.open_file(path, true) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io("open", path, error)),
    };
    let found = file.len().map_err(|error| StoreError::io("look at", path, error))?;
    if found < length {
        return Ok(false);
    }
    if found > length {
        file.set_len(length).map_err(|error| StoreError::io("cut", path, error))?;
    }
    file.sync().map_err(|error| StoreError::io("sync", path, error))?;
    // If a sync failed before the crash, the page cache may contain bytes that the device never got and that no sync
    // sends again. The new version must name the bytes on the device. A file system may ignore the call.
    let _ = file.drop_cache(0, 0);
    Ok(true)
}

/// Removes the files of `dir` that have the name of an object with this path but without a row.
fn remove_orphans(objects: &Path, dir: &Path, disk: &dyn Disk, meta: &Meta) -> Result<()> {
    for entry in entries(dir)? {
        let path = entry.map_err(|error| StoreError::io("list", dir, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(|name| ObjectId::new(name).ok()) else { continue };
        if object_path(objects, &id) == path && meta.load(&id)?.is_none() {
            disk.remove_file(&path).map_err(|error| StoreError::io("remove", &path, error))?;
        }
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<std::fs::ReadDir> {
    std::fs::read_dir(dir).map_err(|error| StoreError::io("list", dir, error))
}

/// The directories in `dir` whose names are two hexadecimal digits; at most 256 for this reason.
fn fan_out_dirs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in entries(dir)? {
        let entry = entry.map_err(|error| StoreError::io("list", dir, error))?;
        let name = entry.file_name();
        let named = name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        if named && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}
