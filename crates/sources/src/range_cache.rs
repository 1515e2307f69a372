//! Ranges of objects that are kept on a local disk, so that they are read over the network once.
//!
//! A file of the cache has the bytes of a range of one version of an object, and checksums. Its name has a hash of the place and the
//! version. So bytes of another version are never found, and nothing has to be made invalid. Files that were cut or damaged count as
//! not there. The ranges that were not used for the longest time are removed when there is no more room.

mod files;
mod index;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use gristmill_backend::{BackendError, Found, Result};
use ring::digest::{Context, SHA256};

use files::{Files, file_bytes};
use index::{Index, Kept};

/// Most bytes of a range that is kept.
pub const MAX_KEPT_RANGE: u64 = 64 << 20;

/// Most ranges that are kept. Each takes about 150 bytes of memory.
pub const MAX_KEPT_RANGES: usize = 1 << 20;

/// Most bytes that wait to be written. What is read meanwhile is not kept.
pub const MAX_UNWRITTEN: u64 = 64 << 20;

/// Most ranges that wait to be written.
const MAX_UNWRITTEN_RANGES: usize = 1_024;

/// Bytes of a block of the disk. A file takes whole blocks.
const BLOCK: u64 = 4_096;

/// A hash of the place and the version of an object.
type ObjectName = [u8; 16];

/// Ranges on a local disk. Readers may share it.
pub struct RangeCache {
    disk: Arc<Disk>,
    /// `None` only when the cache is dropped.
    writer: Option<(SyncSender<Unwritten>, JoinHandle<()>)>,
}

/// The state that readers and the writer share.
struct Disk {
    files: Files,
    index: Mutex<Index>,
    /// Most bytes on the disk.
    most: u64,
    found: AtomicU64,
    missed: AtomicU64,
    failed: AtomicU64,
    unwritten: AtomicU64,
}

/// A range that waits to be written: its object, its offset and its bytes.
type Unwritten = (ObjectName, u64, Vec<u8>);

/// Numbers of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads that were answered by the cache.
    pub found: u64,
    /// Reads of which bytes were not there.
    pub missed: u64,
    /// Ranges that could not be written.
    pub failed: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Ranges on the disk.
    pub ranges: u64,
}

fn add(number: &AtomicU64, more: u64) {
    number.fetch_add(more, Ordering::Relaxed);
}

/// The bytes that a range takes on a disk.
fn on_disk(len: u64) -> u64 {
    file_bytes(len).next_multiple_of(BLOCK)
}

impl Disk {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the ranges that were not used for the longest time, until there is room for another one.
    fn make_room(&self, most: u64, len: u64) {
        loop {
            let mut index = self.index();
            let (bytes, ranges) = index.size();
            if bytes.saturating_add(len) <= most && ranges < MAX_KEPT_RANGES {
                return;
            }
            let Some(oldest) = index.pop_oldest() else { return };
            drop(index);
            self.files.remove(&oldest);
        }
    }

    /// Writes the parts of a range that are not kept yet.
    fn write(&self, object: ObjectName, start: u64, bytes: &[u8]) {
        let gaps = self.index().gaps(&object, start..start.saturating_add(bytes.len() as u64));
        for gap in gaps {
            let kept = Kept { object, start: gap.start, len: gap.end - gap.start };
            let room = on_disk(kept.len);
            let part = bytes.get((gap.start - start) as usize..(gap.end - start) as usize);
            let Some(part) = part.filter(|_| room <= self.most) else { continue };
            self.make_room(self.most, room);
            if self.files.write(&kept, part).is_ok() {
                self.index().insert(kept);
                continue;
            }
            add(&self.failed, 1);
            // If the disk is full of other files, the cache yields.
            let now = self.index().size().0;
            self.make_room(now.saturating_sub(room), 0);
        }
    }
}

impl RangeCache {
    /// Opens the cache in a directory that it has for itself, with at most `most` bytes on the disk. Ranges of an earlier process are
    /// found again.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if the directory cannot be made, read or written, or if another process uses it.
    pub fn open(dir: &Path, most: u64) -> Result<Arc<RangeCache>> {
        let (files, found) = Files::open(dir)?;
        let mut index = Index::default();
        for kept in found {
            if !index.insert(kept) {
                files.remove(&kept);
            }
        }
        let (found, missed, failed, unwritten) = Default::default();
        let disk = Arc::new(Disk { files, index: Mutex::new(index), most, found, missed, failed, unwritten });
        disk.make_room(most, 0);
        let (send, receive) = sync_channel(MAX_UNWRITTEN_RANGES);
        let thread = std::thread::Builder::new().name("range cache".into());
        let thread = thread.spawn({
            let disk = disk.clone();
            move || write_all(&receive, &disk)
        });
        let failed = |source| BackendError::Io { verb: "start", name: "the range cache".into(), source };
        Ok(Arc::new(RangeCache { disk, writer: Some((send, thread.map_err(failed)?)) }))
    }

    /// Fills `out` from an offset of an object, as far as its bytes are there. Returns the parts of `out` that were not filled, with their
    /// offsets in the object.
    fn get<'a>(&self, object: &ObjectName, start: u64, out: &'a mut [u8]) -> Vec<(u64, &'a mut [u8])> {
        let (mut at, mut left, mut missing) = (start, out, Vec::new());
        while !left.is_empty() {
            let found = self.disk.index().touch(object, at);
            let len = match &found {
                Some(kept) => kept.start + kept.len - at,
                None => {
                    let gaps = self.disk.index().gaps(object, at..at.saturating_add(left.len() as u64));
                    // Another thread may have filled it meanwhile.
                    gaps.first().map_or(0, |gap| gap.end - at)
                }
            };
            let (now, later) = left.split_at_mut(left.len().min(len as usize));
            if let Some(kept) = found
                && self.disk.files.read(&kept, at - kept.start, now)
            {
                at += now.len() as u64;
            } else {
                if let Some(damaged) = found {
                    self.disk.index().remove(&damaged);
                    self.disk.files.remove(&damaged);
                }
                let here = at;
                at += now.len() as u64;
                if !now.is_empty() {
                    missing.push((here, now));
                }
            }
            left = later;
        }
        add(if missing.is_empty() { &self.disk.found } else { &self.disk.missed }, 1);
        missing
    }

    /// Keeps a range, soon. It is not kept if too many wait.
    fn put(&self, object: ObjectName, start: u64, bytes: &[u8]) {
        let (Some((writer, _)), len) = (&self.writer, bytes.len() as u64) else { return };
        if len == 0 || len > MAX_KEPT_RANGE {
            return;
        }
        let unwritten = &self.disk.unwritten;
        if unwritten.fetch_add(len, Ordering::Relaxed) + len > MAX_UNWRITTEN
            || writer.try_send((object, start, bytes.to_vec())).is_err()
        {
            unwritten.fetch_sub(len, Ordering::Relaxed);
        }
    }

    /// The numbers now.
    pub fn counts(&self) -> CacheCounts {
        let number = |counted: &AtomicU64| counted.load(Ordering::Relaxed);
        let (bytes, ranges) = self.disk.index().size();
        CacheCounts {
            found: number(&self.disk.found),
            missed: number(&self.disk.missed),
            failed: number(&self.disk.failed),
            bytes,
            ranges: ranges as u64,
        }
    }
}

impl Drop for RangeCache {
    /// Waits until all is written.
    fn drop(&mut self) {
        if let Some((send, thread)) = self.writer.take() {
            drop(send);
            // A writer that panicked has nothing more to write.
            let _ = thread.join();
        }
    }
}

/// Writes what arrives.
fn write_all(receive: &Receiver<Unwritten>, disk: &Disk) {
    while let Ok((object, start, bytes)) = receive.recv() {
        disk.write(object, start, &bytes);
        disk.unwritten.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// The ranges of one version of an object in a cache.
pub(crate) struct CachedObject {
    cache: Arc<RangeCache>,
    object: ObjectName,
}

impl CachedObject {
    /// The object of this name, in this state.
    pub fn new(place: &CachePlace, name: &str, found: &Found) -> CachedObject {
        let mut hash = Context::new(&SHA256);
        for text in [&*place.server, name, found.stamp.as_str()] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(&found.length.to_le_bytes());
        let mut object = ObjectName::default();
        object.iter_mut().zip(hash.finish().as_ref()).for_each(|(to, from)| *to = *from);
        CachedObject { cache: place.cache.clone(), object }
    }

    /// Fills buffers from their offsets. Returns the parts that are not there.
    pub fn take<'a>(&self, reads: Vec<(u64, &'a mut [u8])>) -> Vec<(u64, &'a mut [u8])> {
        let reads = reads.into_iter().filter(|(_, buffer)| !buffer.is_empty());
        reads.flat_map(|(start, buffer)| self.cache.get(&self.object, start, buffer)).collect()
    }

    /// The parts of ranges that are likely not there.
    pub fn gaps(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let index = self.cache.disk.index();
        ranges.iter().flat_map(|range| index.gaps(&self.object, range.clone())).collect()
    }

    /// Keeps a range.
    pub fn keep(&self, start: u64, bytes: &[u8]) {
        self.cache.put(self.object, start, bytes);
    }
}

/// The place of ranges: a cache, and the server of the objects.
#[derive(Clone)]
pub(crate) struct CachePlace {
    pub cache: Arc<RangeCache>,
    /// Tells servers apart that have objects of the same name.
    pub server: Arc<str>,
}

#[cfg(test)]
mod tests;
