//! What it costs this process to receive bytes of files: processor time of the threads that drive connections, and of those
//! that wait for the bytes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_runtime::thread_time;

/// Counts what is received, and the processor time that it takes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Received(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    /// Nanoseconds of the threads that drive connections, and of those that wait for bytes.
    driving: AtomicU64,
    waiting: AtomicU64,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipts {
    /// Bytes of files.
    pub bytes: u64,
    /// Processor time of threads that drive connections.
    pub driving: Duration,
    /// Processor time of lanes while they wait for bytes and take them.
    pub waiting: Duration,
}

impl Receipts {
    /// What came since.
    #[must_use]
    pub fn since(self, before: Receipts) -> Receipts {
        Receipts {
            bytes: self.bytes.saturating_sub(before.bytes),
            driving: self.driving.saturating_sub(before.driving),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

thread_local! {
    /// Processor time of this thread that is counted already.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Received {
    /// So far.
    pub fn now(&self) -> Receipts {
        let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed));
        let Counts { bytes, driving, waiting } = &*self.0;
        Receipts { bytes: bytes.load(Ordering::Relaxed), driving: time(driving), waiting: time(waiting) }
    }

    /// A thread that drives connections says that it is about to wait.
    pub fn drove(&self) {
        let now = thread_time();
        let used = COUNTED.with(|counted| now.saturating_sub(counted.replace(now)));
        self.0.driving.fetch_add(nanoseconds(used), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Does what waits for bytes, on a thread that drives none.
    pub(crate) fn waits<R>(&self, wait: impl FnOnce() -> R) -> R {
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
    fn what_came_since_is_told() {
        let received = Received::default();
        let before = received.now();
        received.add(7);
        assert_eq!(received.waits(|| 3), 3);
        received.drove();
        let since = received.now().since(before);
        assert_eq!(since.bytes, 7);
        assert_eq!(before, Receipts::default());
        assert!(since.driving > Duration::ZERO);
    }
}
