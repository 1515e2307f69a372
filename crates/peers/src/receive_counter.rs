//! The cost to receive bytes of files: processor time of the threads that drive connections, and of the threads that wait
//! for the bytes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_runtime::thread_time;

/// AtomicCounts received bytes and the processor time that they take. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ReceiveCounter(Arc<AtomicCounts>);

#[derive(Debug, Default)]
struct AtomicCounts {
    bytes: AtomicU64,
    /// Nanoseconds of the threads that drive connections. `waiting`: of the threads that wait for bytes.
    driving: AtomicU64,
    waiting: AtomicU64,
}

/// Received bytes and their cost, counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Received bytes of files.
    pub bytes: u64,
    /// Processor time of threads that drive connections.
    pub driving: Duration,
    /// Processor time of lanes while they wait for bytes and take them.
    pub waiting: Duration,
}

impl ReceiveCounts {
    /// The counts since an earlier time.
    #[must_use]
    pub fn since(self, before: ReceiveCounts) -> ReceiveCounts {
        ReceiveCounts {
            bytes: self.bytes.saturating_sub(before.bytes),
            driving: self.driving.saturating_sub(before.driving),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

thread_local! {
    /// Processor time of this thread that was counted already.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl ReceiveCounter {
    /// The counts so far.
    pub fn now(&self) -> ReceiveCounts {
        let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed));
        let AtomicCounts { bytes, driving, waiting } = &*self.0;
        ReceiveCounts { bytes: bytes.load(Ordering::Relaxed), driving: time(driving), waiting: time(waiting) }
    }

    /// AtomicCounts the time of this thread since the last call. A thread that drives connections calls it before it waits.
    pub fn count_driving(&self) {
        let now = thread_time();
        let used = COUNTED.with(|counted| now.saturating_sub(counted.replace(now)));
        self.0.driving.fetch_add(nanoseconds(used), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Runs `wait`, which waits for bytes, and counts its time. Not for threads that drive connections.
    pub(crate) fn count_waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        let begun = thread_time();
        let result = wait();
        let used = thread_time().saturating_sub(begun);
        self.0.waiting.fetch_add(nanoseconds(used), Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_since_an_earlier_time_are_the_differences() {
        let received = ReceiveCounter::default();
        let before = received.now();
        received.add(7);
        assert_eq!(received.count_waiting(|| 3), 3);
        received.count_driving();
        let since = received.now().since(before);
        assert_eq!(since.bytes, 7);
        assert_eq!(before, ReceiveCounts::default());
        assert!(since.driving > Duration::ZERO);
    }
}
