//! Bytes that a reader will need soon are fetched while it works with others.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::buffers::{Buffer, Buffers};
use crate::driver::Driver;
use crate::object::Fetch;
use crate::pieces::{MAX_GAP, MAX_PIECE};

/// Most bytes of all objects that are fetched ahead, or were and are still kept.
pub const MAX_AHEAD: u64 = 256 << 20;

/// Segments of all objects that are kept after all their bytes were taken, because readers of neighbouring ranges meet at their ends.
const KEPT_SEGMENTS: usize = 16;

/// Bytes of one request ahead.
const AHEAD_PIECE: u64 = MAX_PIECE / 4;

/// Bytes of one permit of the budget.
const PERMIT_BYTES: u64 = 4 << 10;

/// The bytes of a segment, or `None` if they could not be fetched. Whoever needs them fetches them again, and gets the error.
type Arriving = Shared<BoxFuture<'static, Option<Arc<Buffer>>>>;

/// Bytes that were fetched ahead, or are on their way.
struct Segment {
    end: u64,
    /// Wanted bytes that no reader has taken yet.
    left: u64,
    bytes: Arriving,
    task: AbortHandle,
    _budget: OwnedSemaphorePermit,
}

impl Drop for Segment {
    fn drop(&mut self) {
        // A reader may wait for bytes that were taken.
        if self.left > 0 {
            self.task.abort();
        }
    }
}

/// The segments of one object, by their first bytes. They do not overlap.
#[derive(Default)]
struct Segments(Mutex<BTreeMap<u64, Segment>>);

impl Segments {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Segment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that all objects of a process fetch ahead.
pub(crate) struct AheadBudget {
    permits: Arc<Semaphore>,
    buffers: Arc<Buffers>,
    /// Segments of which all bytes were taken, the oldest first.
    taken: Mutex<VecDeque<(Weak<Segments>, u64)>>,
}

impl Default for AheadBudget {
    fn default() -> AheadBudget {
        let permits = Arc::new(Semaphore::new((MAX_AHEAD / PERMIT_BYTES) as usize));
        AheadBudget { permits, buffers: Arc::default(), taken: Mutex::default() }
    }
}

impl AheadBudget {
    fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).ok()?;
        self.permits.clone().try_acquire_many_owned(permits).ok()
    }

    /// Notes that all bytes of a segment were taken, and lets go of the oldest one of these.
    fn note_taken(&self, segments: &Arc<Segments>, start: u64) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push_back((Arc::downgrade(segments), start));
        let oldest = if taken.len() > KEPT_SEGMENTS { taken.pop_front() } else { None };
        drop(taken);
        if let Some((segments, start)) = oldest
            && let Some(segments) = segments.upgrade()
        {
            segments.lock().remove(&start);
        }
    }
}

/// The bytes of one object that are fetched ahead.
pub(crate) struct ReadAhead {
    fetch: Arc<dyn Fetch>,
    driver: Driver,
    length: u64,
    segments: Arc<Segments>,
}

impl ReadAhead {
    pub fn new(fetch: Arc<dyn Fetch>, driver: Driver, length: u64) -> ReadAhead {
        ReadAhead { fetch, driver, length, segments: Arc::default() }
    }

    /// Begins to fetch ranges that will be read soon, in ascending order, as far as there is room.
    pub fn expect(&self, ranges: &[Range<u64>]) {
        let mut segments = self.segments.lock();
        for (range, wanted) in requests(ranges, self.length) {
            let known = segments.range(..range.end).next_back().is_some_and(|(_, one)| one.end > range.start);
            if known {
                continue;
            }
            let Some(budget) = self.driver.ahead().reserve(range.end - range.start) else { return };
            segments.insert(range.start, self.begin(range, wanted, budget));
        }
    }

    fn begin(&self, range: Range<u64>, wanted: u64, budget: OwnedSemaphorePermit) -> Segment {
        let (fetch, start, len) = (self.fetch.clone(), range.start, range.end - range.start);
        let buffers = self.driver.ahead().buffers.clone();
        let task = self.driver.spawn(async move {
            // Pieces are copied, because a short one would keep the whole buffer into which it was read.
            let mut buffer = buffers.take(len as usize);
            let mut take = |piece: Bytes| buffer.bytes.extend_from_slice(&piece);
            fetch.fetch_once(start, len, &mut take).await.ok().map(|()| Arc::new(buffer))
        });
        let abort = task.abort_handle();
        let bytes = task.map(|done| done.ok().flatten()).boxed().shared();
        Segment { end: range.end, left: wanted, bytes, task: abort, _budget: budget }
    }

    /// Fills buffers from what was fetched ahead. Returns the rest.
    pub async fn take<'a>(&self, reads: Vec<(u64, &'a mut [u8])>) -> Vec<(u64, &'a mut [u8])> {
        let mut rest = Vec::with_capacity(reads.len());
        for (mut start, mut buffer) in reads {
            while !buffer.is_empty() {
                let Some((from, to, bytes)) = self.segment_of(start, buffer.len() as u64) else {
                    let until = self.next_segment(start).saturating_sub(start).min(buffer.len() as u64);
                    let (now, later) = std::mem::take(&mut buffer).split_at_mut(until as usize);
                    rest.push((start, now));
                    (start, buffer) = (start + until, later);
                    continue;
                };
                let (now, later) = std::mem::take(&mut buffer).split_at_mut((to - from) as usize);
                let arrived = bytes.await;
                match arrived.as_ref().and_then(|arrived| arrived.bytes.get(from as usize..to as usize)) {
                    Some(bytes) => now.copy_from_slice(bytes),
                    None => rest.push((start, now)),
                }
                (start, buffer) = (start + (to - from), later);
            }
        }
        rest
    }

    /// The part of a range that begins in a segment: its place in the segment, and the bytes of the segment.
    fn segment_of(&self, start: u64, len: u64) -> Option<(u64, u64, Arriving)> {
        let mut segments = self.segments.lock();
        let (&first, segment) =
            segments.range_mut(..=start).next_back().filter(|(_, one)| one.end > start)?;
        let to = segment.end.min(start.saturating_add(len));
        let bytes = segment.bytes.clone();
        let had = segment.left > 0;
        segment.left = segment.left.saturating_sub(to - start);
        let (is_taken, is_whole) = (had && segment.left == 0, first == start && to == segment.end);
        if is_taken && is_whole {
            // One reader took it all. Nobody else needs a part of it.
            segments.remove(&first);
        }
        drop(segments);
        if is_taken && !is_whole {
            self.driver.ahead().note_taken(&self.segments, first);
        }
        Some((start - first, to - first, bytes))
    }

    fn next_segment(&self, start: u64) -> u64 {
        self.segments.lock().range(start..).next().map_or(u64::MAX, |(first, _)| *first)
    }
}

/// Ranges as requests: neighbours in one, long ranges in several. With the bytes of each that are wanted.
fn requests(ranges: &[Range<u64>], length: u64) -> Vec<(Range<u64>, u64)> {
    let mut all: Vec<(Range<u64>, u64)> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (mut at, end) = (range.start, range.end.min(length));
        while at < end {
            let to = end.min(at.saturating_add(AHEAD_PIECE));
            match all.last_mut() {
                Some((last, wanted))
                    if at >= last.end && at - last.end <= MAX_GAP && to - last.start <= AHEAD_PIECE =>
                {
                    last.end = to;
                    *wanted += to - at;
                }
                _ => all.push((at..to, to - at)),
            }
            at = to;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_backend::Result;

    use super::*;
    use crate::object::TakeBytes;

    /// An object whose bytes tell their offsets, and which cannot be read at some of them.
    struct Numbers {
        fails_at: Option<u64>,
    }

    fn byte(at: u64) -> u8 {
        (at / 1000) as u8
    }

    impl Fetch for Numbers {
        fn name(&self) -> String {
            "numbers".to_owned()
        }

        fn fetch_once<'a>(&'a self, start: u64, len: u64, take: TakeBytes<'a>) -> BoxFuture<'a, Result<()>> {
            let range = start..start + len;
            let fails = self.fails_at.is_some_and(|at| range.contains(&at));
            let why = gristmill_backend::BackendError::Internal { what: "a test" };
            let bytes: Bytes = range.map(byte).collect();
            // They arrive in pieces.
            (0..bytes.len())
                .step_by(70_001)
                .for_each(|at| take(bytes.slice(at..bytes.len().min(at + 70_001))));
            std::future::ready(if fails { Err(why) } else { Ok(()) }).boxed()
        }

        fn has_changed(&self) -> BoxFuture<'_, bool> {
            std::future::ready(false).boxed()
        }
    }

    /// The bytes that are held for all objects.
    fn held(driver: &Driver) -> u64 {
        MAX_AHEAD - driver.ahead().permits.available_permits() as u64 * PERMIT_BYTES
    }

    #[test]
    fn many_objects_that_are_read_to_their_ends_hold_little() {
        let driver = Driver::start().unwrap();
        let length = 24 << 20;
        let mut objects = Vec::new();
        for _ in 0..20 {
            let ahead = ReadAhead::new(Arc::new(Numbers { fails_at: None }), driver.clone(), length);
            ahead.expect(&[0..length / 2, length / 2..length]);
            for start in (0..length).step_by(1 << 20) {
                let mut buffer = vec![0; 1 << 20];
                let left = driver.wait(ahead.take(vec![(start, &mut buffer)]));
                assert!(left.is_empty(), "{start}");
                assert!(buffer.iter().zip(start..).all(|(found, at)| *found == byte(at)));
            }
            objects.push(ahead);
        }
        assert!(held(&driver) <= KEPT_SEGMENTS as u64 * AHEAD_PIECE, "{}", held(&driver));
        drop(objects);
        assert_eq!(held(&driver), 0);
    }

    #[test]
    fn objects_that_are_read_at_once_hold_nothing() {
        let driver = Driver::start().unwrap();
        let ahead = ReadAhead::new(Arc::new(Numbers { fails_at: None }), driver.clone(), 65_536);
        ahead.expect(&[0..65_536, 0..0]);
        assert_eq!(held(&driver), 65_536);
        let mut buffer = vec![0; 65_536];
        assert!(driver.wait(ahead.take(vec![(0, &mut buffer)])).is_empty());
        assert_eq!(held(&driver), 0);
    }

    #[test]
    fn the_budget_bounds_all_objects() {
        let driver = Driver::start().unwrap();
        let make = || ReadAhead::new(Arc::new(Numbers { fails_at: None }), driver.clone(), MAX_AHEAD);
        let objects: Vec<ReadAhead> = (0..3).map(|_| make()).collect();
        for ahead in &objects {
            ahead.expect(&[0..MAX_AHEAD / 2, MAX_AHEAD / 2..MAX_AHEAD]);
        }
        assert!(held(&driver) <= MAX_AHEAD);
        // What is not fetched ahead is left to the reader.
        let mut buffer = vec![0; 1000];
        assert_eq!(driver.wait(objects[2].take(vec![(0, &mut buffer)])).len(), 1);
    }

    #[test]
    fn a_length_that_no_file_has_ends_the_cutting() {
        let range = u64::MAX - 5..u64::MAX;
        assert_eq!(requests(&[range.clone(), range.end..range.end], u64::MAX), [(range, 5)]);
    }

    #[test]
    fn what_could_not_be_fetched_is_left_to_the_reader() {
        let driver = Driver::start().unwrap();
        let ahead =
            ReadAhead::new(Arc::new(Numbers { fails_at: Some(AHEAD_PIECE + 7) }), driver.clone(), 1 << 24);
        ahead.expect(&[0..AHEAD_PIECE, AHEAD_PIECE..3 * AHEAD_PIECE]);
        let mut buffer = vec![0; 3 * AHEAD_PIECE as usize];
        let left = driver.wait(ahead.take(vec![(0, &mut buffer)]));
        let left: Vec<(u64, usize)> = left.iter().map(|(start, buffer)| (*start, buffer.len())).collect();
        assert_eq!(left, [(AHEAD_PIECE, AHEAD_PIECE as usize)]);
    }
}
