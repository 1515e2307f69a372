//! The normal reads and writes that a node serves: they have no turns and no estimates, but they are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For so long after the last one more are expected.
pub(crate) const EXPECTED: Duration = Duration::from_millis(20);

/// How many there are.
#[derive(Clone, Debug)]
pub(crate) struct NormalCount(Arc<Count>);

#[derive(Debug)]
struct Count {
    now: AtomicU64,
    /// When the last one ended, in microseconds since `begun`; 0 if none did.
    ended: AtomicU64,
    begun: Instant,
}

impl Default for NormalCount {
    fn default() -> NormalCount {
        let count = Count { now: AtomicU64::new(0), ended: AtomicU64::new(0), begun: Instant::now() };
        NormalCount(Arc::new(count))
    }
}

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Normal(NormalCount);

impl NormalCount {
    /// One more, until what is given is dropped.
    pub fn begin(&self) -> Normal {
        self.0.now.fetch_add(1, Ordering::Relaxed);
        Normal(self.clone())
    }

    /// How many there are now.
    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// How many there are or will soon be: somebody who reads in a row is no less there between two reads.
    pub fn expected(&self) -> u64 {
        let ended = self.0.ended.load(Ordering::Relaxed);
        let lately = ended > 0 && self.up().saturating_sub(ended) < EXPECTED.as_micros() as u64;
        self.now().max(u64::from(lately))
    }

    /// Microseconds for which this has counted.
    fn up(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Normal {
    fn drop(&mut self) {
        self.0.0.ended.store(self.0.up().max(1), Ordering::Relaxed);
        self.0.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_just_ended_is_expected_again() {
        let count = NormalCount::default();
        assert_eq!((count.now(), count.expected()), (0, 0));
        let one = count.begin();
        let two = count.begin();
        assert_eq!((count.now(), count.expected()), (2, 2));
        drop((one, two));
        assert_eq!(count.now(), 0);
        while count.expected() > 0 {
            std::thread::yield_now();
        }
    }
}
