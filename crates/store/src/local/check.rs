//! Comparison of read bytes with their sums.
//!
//! A block is checked at its first read after the store was opened or the block changed, and at the first read after an
//! hour. In between, its bytes come from the page cache, or from a device that was sound a short time ago. The times of
//! checks are kept in memory, for [`MAX_CHECKED_BLOCKS`] blocks.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::sums::{blocks_of, bytes_in_block, index_in_segment, segment_of};
use crate::clock::to_nanos;
use crate::disk::{DataFile, read_full};
use crate::locks::lock;
use crate::sums::{BLOCK_BYTES, BlockSum, SEGMENT_BLOCKS, Segment, are_zeros, sum};
use crate::{ObjectId, Result, StoreError};

/// Blocks whose sums a local store keeps in memory, with the times of their checks: the blocks of 128 GiB, in about
/// 24 MiB.
pub const MAX_CHECKED_BLOCKS: usize = 2 << 20;

/// Most segments whose sums a local store keeps in memory. Even a short object has one segment.
const MAX_CACHED_SEGMENTS: usize = 65_536;

/// Minutes after which a block is checked again at a read.
pub(super) const RECHECK_MINUTES: u32 = 60;

/// A cache of sums, with the times of the checks of their blocks.
pub(super) struct Checker(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    segments: HashMap<(u64, u64), CachedSegment>,
    blocks: usize,
    tick: u64,
}

struct CachedSegment {
    loaded: Arc<LoadedSegment>,
    /// Version of the object at the flush that stored the sums.
    version: u64,
    used: u64,
}

struct LoadedSegment {
    segment: Segment,
    /// Time of the last check of each block, in minutes since 1970; 0 without a check.
    checked: Box<[AtomicU32]>,
}

/// The object whose bytes are checked, with the sources of its bytes and its sums.
pub(super) struct VerifiedObject<'a> {
    pub(super) id: &'a ObjectId,
    pub(super) path: &'a dyn Fn() -> std::path::PathBuf,
    pub(super) birth: u64,
    /// Version at the flush that stored the sums.
    pub(super) version: u64,
    pub(super) length: u64,
    pub(super) file: &'a dyn DataFile,
    /// Whether to check blocks again that were checked a short time ago.
    pub(super) recheck: bool,
    pub(super) now: SystemTime,
    /// Whether the stored sum of a block belongs to its bytes. If they changed since the flush, it does not.
    pub(super) is_current: &'a dyn Fn(u64, BlockSum) -> bool,
    pub(super) load: &'a dyn Fn(u64) -> Result<Segment>,
}

impl Checker {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Checks `buffer`, which was read at `offset` and lies within the object. A block that lies only partly in it is
    /// read as a whole, and its bytes in `buffer` are replaced by those of this read.
    pub(super) fn check(&self, subject: &VerifiedObject<'_>, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let minute = minute_of(subject.now);
        let bytes = offset..offset + buffer.len() as u64;
        let blocks = blocks_of(&bytes);
        let mut next = blocks.start;
        while next < blocks.end {
            let number = segment_of(next);
            let end = blocks.end.min((number + 1) * SEGMENT_BLOCKS);
            let loaded = self.load_segment(subject, number)?;
            for block in next..end {
                if subject.recheck || !loaded.is_fresh(index_in_segment(block), minute) {
                    check_block(subject, &loaded, block, &bytes, buffer, minute)?;
                }
            }
            next = end;
        }
        Ok(())
    }

    /// Checks the blocks of `bytes`, and does not return their bytes.
    pub(super) fn check_blocks(&self, subject: &VerifiedObject<'_>, bytes: Range<u64>) -> Result<()> {
        let minute = minute_of(subject.now);
        for block in blocks_of(&(bytes.start..bytes.end.min(subject.length))) {
            let loaded = self.load_segment(subject, segment_of(block))?;
            if subject.recheck || !loaded.is_fresh(index_in_segment(block), minute) {
                let start = block * BLOCK_BYTES;
                check_block(subject, &loaded, block, &(start..start), &mut [], minute)?;
            }
        }
        Ok(())
    }

    /// Removes a segment whose stored sums changed without a flush.
    pub(super) fn forget(&self, birth: u64, number: u64) {
        lock(&self.0).remove((birth, number));
    }

    fn load_segment(&self, subject: &VerifiedObject<'_>, number: u64) -> Result<Arc<LoadedSegment>> {
        let key = (subject.birth, number);
        let before = {
            let mut cache = lock(&self.0);
            cache.tick += 1;
            let tick = cache.tick;
            match cache.segments.get_mut(&key) {
                Some(cached) if cached.version == subject.version => {
                    cached.used = tick;
                    return Ok(cached.loaded.clone());
                }
                other => other.map(|cached| cached.loaded.clone()),
            }
        };
        let blocks = subject.length.div_ceil(BLOCK_BYTES).saturating_sub(number * SEGMENT_BLOCKS);
        let blocks = blocks.min(SEGMENT_BLOCKS) as usize;
        let loaded = Arc::new(LoadedSegment::new((subject.load)(number)?, blocks, before.as_deref()));
        lock(&self.0).put(key, loaded.clone(), subject.version);
        Ok(loaded)
    }
}

impl Cache {
    /// Inserts a segment. If there is no space, the least recently used eighth of the others is removed.
    fn put(&mut self, key: (u64, u64), loaded: Arc<LoadedSegment>, version: u64) {
        self.remove(key);
        if self.segments.len() >= MAX_CACHED_SEGMENTS
            || self.blocks + loaded.checked.len() > MAX_CHECKED_BLOCKS
        {
            let mut ticks: Vec<_> = self.segments.values().map(|cached| cached.used).collect();
            let eighth = ticks.len() / 8;
            if eighth < ticks.len() {
                let (_, &mut limit, _) = ticks.select_nth_unstable(eighth);
                self.segments.retain(|_, cached| cached.used > limit);
                self.blocks = self.segments.values().map(|cached| cached.loaded.checked.len()).sum();
            }
        }
        self.blocks += loaded.checked.len();
        self.segments.insert(key, CachedSegment { loaded, version, used: self.tick });
    }

    fn remove(&mut self, key: (u64, u64)) {
        if let Some(cached) = self.segments.remove(&key) {
            self.blocks -= cached.loaded.checked.len();
        }
    }
}

impl LoadedSegment {
    /// A segment with `blocks` blocks in the object. `before`: the same segment at an earlier flush. Checks of blocks
    /// with unchanged sums stay valid.
    fn new(segment: Segment, blocks: usize, before: Option<&LoadedSegment>) -> Self {
        let minute = |index: usize| {
            before
                .filter(|before| before.segment.get(index) == segment.get(index))
                .and_then(|before| before.checked.get(index))
                .map_or(0, |minute| minute.load(Ordering::Relaxed))
        };
        let checked = (0..blocks).map(|index| AtomicU32::new(minute(index))).collect();
        Self { segment, checked }
    }

    fn is_fresh(&self, index: usize, minute: u32) -> bool {
        let checked = self.checked.get(index).map_or(0, |checked| checked.load(Ordering::Relaxed));
        checked != 0 && minute.checked_sub(checked).is_some_and(|passed| passed < RECHECK_MINUTES)
    }
}

fn check_block(
    subject: &VerifiedObject<'_>,
    loaded: &LoadedSegment,
    block: u64,
    read: &Range<u64>,
    buffer: &mut [u8],
    minute: u32,
) -> Result<()> {
    let index = index_in_segment(block);
    let expected = loaded.segment.get(index);
    if expected == BlockSum::Unknown || !(subject.is_current)(block, expected) {
        return Ok(());
    }
    let start = block * BLOCK_BYTES;
    let bytes = start..start + bytes_in_block(block, subject.length);
    let within = |range: &Range<u64>| (range.start - read.start) as usize..(range.end - read.start) as usize;
    let sound = if read.start <= bytes.start && bytes.end <= read.end {
        is_sound(expected, buffer.get(within(&bytes)).unwrap_or_default())
    } else {
        let mut whole = vec![0; (bytes.end - bytes.start) as usize];
        let found = read_full(subject.file, &mut whole, bytes.start)
            .map_err(|error| StoreError::io("read", &(subject.path)(), error))?;
        whole.truncate(found);
        let sound = is_sound(expected, &whole);
        let both = bytes.start.max(read.start)..bytes.end.min(read.end);
        let of_block = (both.start - bytes.start) as usize..(both.end - bytes.start) as usize;
        if let (Some(to), Some(from)) = (buffer.get_mut(within(&both)), whole.get(of_block)) {
            to.copy_from_slice(from);
        }
        sound
    };
    if !sound {
        return Err(corrupt(subject.id, &(subject.path)(), bytes));
    }
    if let Some(checked) = loaded.checked.get(index) {
        checked.store(minute, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether `bytes`, a whole block, agree with `expected`.
pub(super) fn is_sound(expected: BlockSum, bytes: &[u8]) -> bool {
    match expected {
        BlockSum::Unknown => true,
        BlockSum::Zeros => are_zeros(bytes),
        BlockSum::Crc(crc) => sum(bytes) == crc,
    }
}

pub(super) fn corrupt(id: &ObjectId, path: &Path, bytes: Range<u64>) -> StoreError {
    StoreError::Corrupt { id: id.clone(), path: path.to_path_buf(), bytes }
}

fn minute_of(time: SystemTime) -> u32 {
    u32::try_from(to_nanos(time) / 60_000_000_000).unwrap_or(0).max(1)
}
