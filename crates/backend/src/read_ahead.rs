//! Bytes that a reader will need soon are fetched while it works with others.
//!
//! Here is what all storage does alike: which bytes are fetched, for how long they are kept, and how many there may be. How they are
//! fetched, and how a reader waits for them, is the storage's own ([`Arriving`]).

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes that are on their way, or have arrived. Clones are of the same bytes.
pub trait Arriving: Clone {
    /// Nobody needs the bytes any more, so they need not be fetched.
    fn give_up(&self);
}

/// How much is fetched ahead.
#[derive(Clone, Copy, Debug)]
pub struct AheadLimits {
    /// Most bytes of all objects that are being fetched ahead, or are kept afterwards.
    pub bytes: u64,
    /// Most bytes that are fetched together.
    pub piece: u64,
    /// Most bytes between two ranges that are fetched together.
    pub gap: u64,
    /// Segments that are kept although all their bytes were taken. Readers of neighbouring ranges need the same bytes at their ends.
    pub kept: usize,
}

/// Bytes that each segment counts at least, so that the number of segments is bounded, too.
const MIN_SHARE: u64 = 4 << 10;

/// A part of the bytes of all objects. Dropping it gives them back.
struct Share {
    left: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that were fetched ahead, or are on their way.
struct Segment<A: Arriving> {
    end: u64,
    /// Wanted bytes that no reader has taken yet.
    left: u64,
    bytes: A,
    _share: Share,
}

impl<A: Arriving> Drop for Segment<A> {
    fn drop(&mut self) {
        // A reader may wait for bytes that were taken.
        if self.left > 0 {
            self.bytes.give_up();
        }
    }
}

/// The segments of one object, by their first bytes. They do not overlap.
struct Segments<A: Arriving>(Mutex<BTreeMap<u64, Segment<A>>>);

impl<A: Arriving> Segments<A> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Segment<A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Segments of which all bytes were taken, the oldest first.
type Taken<A> = VecDeque<(Weak<Segments<A>>, u64)>;

/// The bytes that several objects fetch ahead.
pub struct AheadBudget<A: Arriving> {
    limits: AheadLimits,
    left: Arc<AtomicU64>,
    taken: Mutex<Taken<A>>,
}

impl<A: Arriving> AheadBudget<A> {
    /// A budget of which nothing is used.
    pub fn new(limits: AheadLimits) -> AheadBudget<A> {
        AheadBudget { limits, left: Arc::new(AtomicU64::new(limits.bytes)), taken: Mutex::default() }
    }

    /// The bytes that are on their way or are kept.
    pub fn used(&self) -> u64 {
        self.limits.bytes - self.left.load(Ordering::Relaxed)
    }

    fn reserve(&self, bytes: u64) -> Option<Share> {
        let bytes = bytes.max(MIN_SHARE);
        let less = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Share { left: self.left.clone(), bytes })
    }

    /// Notes that all bytes of a segment were taken, and lets go of the oldest one of these.
    fn note_taken(&self, segments: &Arc<Segments<A>>, start: u64) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push_back((Arc::downgrade(segments), start));
        let oldest = if taken.len() > self.limits.kept { taken.pop_front() } else { None };
        drop(taken);
        if let Some((segments, start)) = oldest
            && let Some(segments) = segments.upgrade()
        {
            segments.lock().remove(&start);
        }
    }
}

/// A buffer that is filled from bytes that were fetched ahead. If it is dropped before, the bytes need not be fetched any more.
pub struct AheadPart<'a, A: Arriving> {
    /// Where the buffer begins in the object.
    pub start: u64,
    /// The bytes of the segment that go into the buffer.
    pub range: Range<usize>,
    /// The bytes of the segment.
    pub segment: A,
    /// The buffer, until it is filled.
    buffer: Option<&'a mut [u8]>,
}

impl<'a, A: Arriving> AheadPart<'a, A> {
    /// Fills the buffer from the bytes of the segment. If they did not arrive, the buffer is added to those that are left to read.
    pub fn fill(mut self, arrived: Option<&[u8]>, left: &mut Vec<(u64, &'a mut [u8])>) {
        let Some(buffer) = self.buffer.take() else { return };
        match arrived.and_then(|arrived| arrived.get(self.range.clone())) {
            Some(bytes) if bytes.len() == buffer.len() => buffer.copy_from_slice(bytes),
            _ => left.push((self.start, buffer)),
        }
    }
}

impl<A: Arriving> Drop for AheadPart<'_, A> {
    fn drop(&mut self) {
        if self.buffer.is_some() {
            self.segment.give_up();
        }
    }
}

/// The bytes of one object that are fetched ahead.
pub struct ReadAhead<A: Arriving> {
    budget: Arc<AheadBudget<A>>,
    length: u64,
    segments: Arc<Segments<A>>,
}

impl<A: Arriving> ReadAhead<A> {
    /// Nothing is fetched yet of an object of some bytes.
    pub fn new(budget: Arc<AheadBudget<A>>, length: u64) -> ReadAhead<A> {
        ReadAhead { budget, length, segments: Arc::new(Segments(Mutex::default())) }
    }

    /// Begins to fetch ranges that will be read soon, in ascending order, as far as there is room. Calls `begin` for each piece. If it
    /// returns `None`, no more is fetched now.
    pub fn expect(&self, ranges: &[Range<u64>], mut begin: impl FnMut(Range<u64>) -> Option<A>) {
        let mut segments = self.segments.lock();
        for (range, wanted) in self.requests(ranges) {
            let known = segments.range(..range.end).next_back().is_some_and(|(_, one)| one.end > range.start);
            if known {
                continue;
            }
            let Some(share) = self.budget.reserve(range.end - range.start) else { return };
            let (start, end) = (range.start, range.end);
            let Some(bytes) = begin(range) else { return };
            segments.insert(start, Segment { end, left: wanted, bytes, _share: share });
        }
    }

    /// Cuts buffers, each with the place where it begins, into those that are filled from what was fetched ahead, and the others.
    #[allow(clippy::type_complexity)]
    pub fn take<'a>(
        &self,
        reads: Vec<(u64, &'a mut [u8])>,
    ) -> (Vec<AheadPart<'a, A>>, Vec<(u64, &'a mut [u8])>) {
        let (mut parts, mut rest) = (Vec::new(), Vec::with_capacity(reads.len()));
        for (mut start, mut buffer) in reads {
            while !buffer.is_empty() {
                let known = self.segment_of(start, buffer.len() as u64);
                let len = match &known {
                    Some((range, _)) => range.len(),
                    None => self.next_segment(start).saturating_sub(start).min(buffer.len() as u64) as usize,
                };
                let (now, later) = std::mem::take(&mut buffer).split_at_mut(len);
                match known {
                    Some((range, segment)) => {
                        parts.push(AheadPart { start, range, segment, buffer: Some(now) })
                    }
                    None => rest.push((start, now)),
                }
                (start, buffer) = (start + len as u64, later);
            }
        }
        (parts, rest)
    }

    /// The part of a range that begins in a segment: its place in the segment, and the bytes of the segment.
    fn segment_of(&self, start: u64, len: u64) -> Option<(Range<usize>, A)> {
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
            self.budget.note_taken(&self.segments, first);
        }
        Some(((start - first) as usize..(to - first) as usize, bytes))
    }

    fn next_segment(&self, start: u64) -> u64 {
        self.segments.lock().range(start..).next().map_or(u64::MAX, |(first, _)| *first)
    }

    /// Ranges as requests: neighbours in one, long ranges in several. With the bytes of each that are wanted.
    fn requests(&self, ranges: &[Range<u64>]) -> Vec<(Range<u64>, u64)> {
        let AheadLimits { piece, gap, .. } = self.budget.limits;
        let mut all: Vec<(Range<u64>, u64)> = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (mut at, end) = (range.start, range.end.min(self.length));
            while at < end {
                let to = end.min(at.saturating_add(piece.max(1)));
                match all.last_mut() {
                    Some((last, wanted))
                        if at >= last.end && at - last.end <= gap && to - last.start <= piece =>
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
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Room for ten segments.
    const LIMITS: AheadLimits = AheadLimits { bytes: 10 * MIN_SHARE, piece: 100, gap: 10, kept: 2 };

    /// The range that was asked for. Its bytes are never there before somebody takes them.
    #[derive(Clone)]
    struct Asked {
        range: Range<u64>,
        given_up: Arc<AtomicBool>,
    }

    impl Arriving for Asked {
        fn give_up(&self) {
            self.given_up.store(true, Ordering::Relaxed);
        }
    }

    impl Asked {
        fn bytes(&self) -> Vec<u8> {
            self.range.clone().map(byte).collect()
        }
    }

    fn byte(at: u64) -> u8 {
        (at % 251) as u8
    }

    fn ask(asked: &mut Vec<Asked>, range: Range<u64>) -> Option<Asked> {
        let one = Asked { range, given_up: Arc::default() };
        asked.push(one.clone());
        Some(one)
    }

    fn new(length: u64) -> (Arc<AheadBudget<Asked>>, ReadAhead<Asked>) {
        let budget = Arc::new(AheadBudget::new(LIMITS));
        (budget.clone(), ReadAhead::new(budget, length))
    }

    /// Reads a range, and returns the bytes of it that were not fetched ahead.
    fn read(ahead: &ReadAhead<Asked>, range: Range<u64>) -> Vec<Range<u64>> {
        let mut out = vec![0; (range.end - range.start) as usize];
        let (parts, mut left) = ahead.take(vec![(range.start, &mut out)]);
        for part in parts {
            let bytes = part.segment.bytes();
            part.fill(Some(&bytes), &mut left);
        }
        let left: Vec<Range<u64>> = left
            .into_iter()
            .map(|(start, buffer)| {
                buffer.iter_mut().zip(start..).for_each(|(one, at)| *one = byte(at));
                start..start + buffer.len() as u64
            })
            .collect();
        assert!(out.iter().zip(range.start..).all(|(found, at)| *found == byte(at)));
        left
    }

    #[test]
    fn neighbours_are_fetched_together_and_long_ranges_in_pieces() {
        let (_, ahead) = new(500);
        let mut asked = Vec::new();
        ahead.expect(&[0..30, 40..60, 71..80, 100..290, 480..900], |range| ask(&mut asked, range));
        let ranges: Vec<_> = asked.iter().map(|one| one.range.clone()).collect();
        assert_eq!(ranges, [0..60, 71..80, 100..200, 200..290, 480..500]);
        // What is on its way is not fetched again.
        ahead.expect(&[0..60, 250..300], |range| ask(&mut asked, range));
        assert_eq!(asked.len(), 5);
        assert_eq!(read(&ahead, 0..500), [60..71, 80..100, 290..480]);
    }

    #[test]
    fn objects_that_are_read_to_their_ends_hold_little() {
        let budget = Arc::new(AheadBudget::new(LIMITS));
        let mut objects = Vec::new();
        for _ in 0..20 {
            let ahead = ReadAhead::new(budget.clone(), 400);
            ahead.expect(&[0..200, 200..400], |range| ask(&mut Vec::new(), range));
            for start in (0..400).step_by(50) {
                assert_eq!(read(&ahead, start..start + 50), []);
            }
            objects.push(ahead);
        }
        assert!(budget.used() <= LIMITS.kept as u64 * MIN_SHARE, "{}", budget.used());
        drop(objects);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_segment_that_one_reader_takes_is_not_kept() {
        let (budget, ahead) = new(65);
        ahead.expect(&[0..65, 0..0], |range| ask(&mut Vec::new(), range));
        assert_eq!(budget.used(), MIN_SHARE);
        assert_eq!(read(&ahead, 0..65), []);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_budget_bounds_all_objects() {
        let budget = Arc::new(AheadBudget::new(LIMITS));
        let objects: Vec<_> = (0..3).map(|_| ReadAhead::new(budget.clone(), 1000)).collect();
        for ahead in &objects {
            ahead.expect(&[0..500, 500..1000], |range| ask(&mut Vec::new(), range));
        }
        assert_eq!(budget.used(), LIMITS.bytes);
        // What is not fetched ahead is left to the reader.
        assert_eq!(read(&objects[2], 0..1000), std::slice::from_ref(&(0..1000)));
        // So is everything while nothing can be fetched.
        drop(objects);
        let ahead = ReadAhead::new(budget.clone(), 1000);
        ahead.expect(std::slice::from_ref(&(0..1000)), |_| None);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_nobody_takes_is_given_up() {
        let (budget, ahead) = new(1000);
        let mut asked = Vec::new();
        ahead.expect(&[0..100, 100..200], |range| ask(&mut asked, range));
        assert_eq!(read(&ahead, 0..100), []);
        drop(ahead);
        let given_up: Vec<bool> = asked.iter().map(|one| one.given_up.load(Ordering::Relaxed)).collect();
        assert_eq!((given_up, budget.used()), (vec![false, true], 0));
    }

    #[test]
    fn what_a_reader_lets_go_is_given_up() {
        let (_, ahead) = new(200);
        let mut asked = Vec::new();
        ahead.expect(std::slice::from_ref(&(0..200)), |range| ask(&mut asked, range));
        let mut out = vec![0; 200];
        let (mut parts, mut left) = ahead.take(vec![(0, &mut out)]);
        let last = parts.pop().unwrap();
        drop(parts);
        let bytes = last.segment.bytes();
        last.fill(Some(&bytes), &mut left);
        let given_up: Vec<bool> = asked.iter().map(|one| one.given_up.load(Ordering::Relaxed)).collect();
        assert_eq!((given_up, left.len()), (vec![true, false], 0));
    }

    #[test]
    fn a_length_that_no_file_has_ends_the_cutting() {
        let (_, ahead) = new(u64::MAX);
        let range = u64::MAX - 5..u64::MAX;
        assert_eq!(ahead.requests(&[range.clone(), range.end..range.end]), [(range, 5)]);
    }

    #[test]
    fn what_did_not_arrive_is_left_to_the_reader() {
        let (_, ahead) = new(300);
        ahead.expect(std::slice::from_ref(&(0..300)), |range| ask(&mut Vec::new(), range));
        let mut out = vec![0; 300];
        let (parts, mut left) = ahead.take(vec![(0, &mut out)]);
        for part in parts {
            // Nothing of the first piece, and too little of the second.
            let bytes = part.segment.bytes();
            let arrived = match part.start {
                0 => None,
                100 => bytes.get(..99),
                _ => Some(&*bytes),
            };
            part.fill(arrived, &mut left);
        }
        let left: Vec<(u64, usize)> = left.iter().map(|(start, buffer)| (*start, buffer.len())).collect();
        assert_eq!(left, [(0, 100), (100, 100)]);
    }
}
