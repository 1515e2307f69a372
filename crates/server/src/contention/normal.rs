//! Number of the normal reads and writes that a node serves. They have no turns and no estimates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time after the end of the last read or write for which another one is expected.
pub(crate) const EXPECTED: Duration = Duration::from_millis(20);

/// Number of normal reads and writes.
#[derive(Clone, Debug)]
pub(crate) struct NormalCount(Arc<Count>);

#[derive(Debug)]
struct Count {
    now: AtomicU64,
    /// End of the last read or write, in microseconds since `begun`; 0 before the first end.
    ended: AtomicU64,
    begun: Instant,
    /// Beginnings and ends of writes, and writes under way.
    writes: AtomicU64,
    writing: AtomicU64,
}

impl Default for NormalCount {
    fn default() -> NormalCount {
        let [now, ended, writes, writing] = [const { AtomicU64::new(0) }; 4];
        NormalCount(Arc::new(Count { now, ended, begun: Instant::now(), writes, writing }))
    }
}

/// A read or write, counted until dropped.
#[derive(Debug)]
pub(crate) struct Normal {
    count: NormalCount,
    write: bool,
}

impl NormalCount {
    /// Counts a read until the returned value is dropped.
    pub fn begin(&self) -> Normal {
        self.count(false)
    }

    /// Counts a write until the returned value is dropped.
    pub fn begin_write(&self) -> Normal {
        self.0.writing.fetch_add(1, Ordering::Relaxed);
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        self.count(true)
    }

    fn count(&self, write: bool) -> Normal {
        self.0.now.fetch_add(1, Ordering::Relaxed);
        Normal { count: self.clone(), write }
    }

    /// Number of writes under way, and a number that changes with each beginning and end of a write.
    pub fn writes(&self) -> (u64, u64) {
        (self.0.writing.load(Ordering::Relaxed), self.0.writes.load(Ordering::Relaxed))
    }

    /// Number of reads and writes now.
    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Number of reads and writes now, and at least 1 shortly after one ended: a client that reads in a row still
    /// counts between two reads.
    pub fn expected(&self) -> u64 {
        self.now().max(u64::from(self.ended_within(EXPECTED)))
    }

    /// Whether there is a read or write now, or one ended within this time.
    pub fn lately(&self, time: Duration) -> bool {
        self.now() > 0 || self.ended_within(time)
    }

    fn ended_within(&self, time: Duration) -> bool {
        let ended = self.0.ended.load(Ordering::Relaxed);
        ended > 0 && u128::from(self.elapsed_micros().saturating_sub(ended)) < time.as_micros()
    }

    /// Microseconds since this count began.
    fn elapsed_micros(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Normal {
    fn drop(&mut self) {
        let count = &self.count.0;
        if self.write {
            count.writes.fetch_add(1, Ordering::Relaxed);
            count.writing.fetch_sub(1, Ordering::Relaxed);
        }
        count.ended.store(self.count.elapsed_micros().max(1), Ordering::Relaxed);
        count.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_has_just_ended_is_expected_again() {
        let count = NormalCount::default();
        assert_eq!((count.now(), count.expected()), (0, 0));
        let one = count.begin();
        let two = count.begin();
        assert_eq!((count.now(), count.expected()), (2, 2));
        assert!(count.lately(Duration::ZERO));
        drop((one, two));
        assert_eq!(count.now(), 0);
        assert!(count.lately(Duration::from_secs(3600)) && !count.lately(Duration::ZERO));
        while count.expected() > 0 {
            std::thread::yield_now();
        }
    }
    #[test]
    fn a_short_write_is_noticed_after_its_end() {
        let count = NormalCount::default();
        drop(count.begin());
        assert_eq!(count.writes(), (0, 0));
        let write = count.begin_write();
        assert_eq!((count.now(), count.writes()), (1, (1, 1)));
        drop(write);
        assert_eq!((count.now(), count.writes()), (0, (0, 2)));
    }
}
