//! What an open does after the last writer stopped without closing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::meta::{Meta, Row, Settled};
use super::paths::object_path;
use super::sums::{Unflushed, blocks_of, index_in_segment, segment_of};
use super::versions::Versions;
use crate::disk::Disk;
use crate::sums::{BLOCK_BYTES, BlockSum, SEGMENT_BLOCKS};
use crate::{ObjectId, Result, StoreError};

/// Objects given their fresh versions by one commit.
const BATCH: usize = 1_000;
/// Segments of sums that one such commit may have before it is made.
const SEGMENT_BATCH: usize = 1_024;
/// Segments of one object that are made to say that nothing is known of their blocks: those of 128 GiB.
const MAX_SEGMENTS_MADE: u64 = 4_096;

/// Whether no data file is in `objects`. Empty fan-out directories do not count.
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

/// How far an open is that recovers its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Objects that were under change and are settled.
    pub objects: u64,
    /// Folders that are synced, and all of them; there are none before all objects are settled.
    pub folders: (u64, u64),
}

/// Settles dirty objects, removes files without a row and syncs every directory. Tells again and again how far it is.
pub(super) fn recover(
    objects: &Path,
    disk: &dyn Disk,
    meta: &Meta,
    versions: &Versions,
    tell: &mut dyn FnMut(Recovery),
) -> Result<()> {
    let mut after = 0;
    let mut far = Recovery::default();
    loop {
        let batch = meta.dirty(after, BATCH)?;
        let Some((_, last)) = batch.last() else { break };
        after = last.birth;
        let mut settled = Vec::with_capacity(batch.len());
        let mut segments = 0;
        for (id, row) in &batch {
            tell(far);
            far.objects += 1;
            if settle(disk, &object_path(objects, id), row.length)? {
                let (sums, summed) = forget_sums(meta, row)?;
                segments += sums.segments.len();
                settled.push(Settled { birth: row.birth, version: versions.next(meta)?, sums, summed });
            }
            if segments > SEGMENT_BATCH {
                meta.settle(&std::mem::take(&mut settled))?;
                segments = 0;
            }
        }
        if !settled.is_empty() {
            meta.settle(&settled)?;
        }
    }
    disk.sync_dir(objects).map_err(|error| StoreError::io("sync", objects, error))?;
    let outer_dirs = fan_out_dirs(objects)?;
    for (done, outer) in (0..).zip(&outer_dirs) {
        far.folders = (done, outer_dirs.len() as u64);
        for inner in fan_out_dirs(outer)? {
            tell(far);
            collect(objects, &inner, disk, meta)?;
            disk.sync_dir(&inner).map_err(|error| StoreError::io("sync", &inner, error))?;
        }
        disk.sync_dir(outer).map_err(|error| StoreError::io("sync", outer, error))?;
    }
    Ok(())
}

/// Forgets the sums in the range where an object was changed, because each block there may be old or new, and those behind
/// its end. Gives the segments to store, and whether blocks without a sum are still known to be zeros.
fn forget_sums(meta: &Meta, row: &Row) -> Result<(Unflushed, bool)> {
    let dirty = row.dirty.clone().unwrap_or(0..0);
    let changed = blocks_of(&(dirty.start..dirty.end.min(row.length)));
    let touched = segment_of(changed.start)..changed.end.div_ceil(SEGMENT_BLOCKS);
    let behind = row.length.div_ceil(BLOCK_BYTES);
    let (last, kept) = (segment_of(behind), index_in_segment(behind));
    let few = touched.end - touched.start <= MAX_SEGMENTS_MADE;
    // Of a range that is longer, a sparse object is mostly holes.
    let summed = row.summed && few;
    let mut numbers: Vec<u64> =
        if few { touched.collect() } else { meta.segments(row.birth, touched, usize::MAX)? };
    if kept > 0 && numbers.last() != Some(&last) {
        numbers.push(last);
    }
    let mut segments = BTreeMap::new();
    for number in numbers {
        let mut segment = meta.segment(row.birth, number, row.absent())?;
        let first = number * SEGMENT_BLOCKS;
        for block in changed.start.max(first)..changed.end.min(first + SEGMENT_BLOCKS) {
            segment.set(index_in_segment(block), BlockSum::Unknown);
        }
        if number == last && kept > 0 {
            segment.cut(kept);
        }
        segments.insert(number, segment);
    }
    Ok((Unflushed { cut: Some(last + u64::from(kept > 0)), segments }, summed))
}

/// Cuts a file to the length of its row and syncs it. `false` if it is missing or too short: that is damage,
/// reported to whoever uses the object; the others stay usable.
fn settle(disk: &dyn Disk, path: &Path, length: u64) -> Result<bool> {
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
    // If a sync failed before the crash, memory may hold bytes that the device never got and that no sync
    // sends again. The fresh version must name what is on the device. A file system that cannot forget is
    // no worse off than without asking.
    let _ = file.drop_cache(0, 0);
    Ok(true)
}

/// Removes the files of `dir` that are named like an object that belongs there and has no row.
fn collect(objects: &Path, dir: &Path, disk: &dyn Disk, meta: &Meta) -> Result<()> {
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

/// The directories in `dir` with two hexadecimal digits for a name; at most 256 by the rule of names.
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
