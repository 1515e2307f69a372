//! How long reads take in a storage daemon, and which length of them is faster.
//!
//! A short read waits for the disk as long as a long one. But a long read from memory is slower than several short ones, because the daemon
//! takes new pages from the system for so many bytes at once. So both are measured.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Fewest bytes of a call that is measured. The time of fewer bytes says little of many.
const MEASURED: u64 = 64 << 10;

/// Where long reads are faster, one of so many calls reads short, because that may have changed.
const SHORT_TRIED: u32 = 16;

/// Where short reads are faster, one of so many calls reads long, and at first more of them. They are few, because that can take fifteen times as
/// long. If short reads become slower than long ones were, that is noticed at once.
const LONG_TRIED: u32 = 1_024;

/// How many calls an average is taken over.
const CALLS: u64 = 4;

/// How many times the average one call counts at most, so that a thread that had to wait for a processor does not decide alone.
const MOST: u64 = 4;

/// The times of reads of one storage, which many threads may share.
///
/// # Example
/// ```
/// use gristmill_object_fold::ReadTimes;
/// use std::time::Duration;
///
/// let times = ReadTimes::new();
/// assert!(!times.choose_long());
/// times.note(false, Duration::from_millis(5), 4 << 20);
/// assert!(times.choose_long(), "long reads are tried");
/// times.note(true, Duration::from_millis(2), 4 << 20);
/// assert!(times.choose_long(), "they are faster");
/// ```
#[derive(Debug, Default)]
pub struct ReadTimes {
    /// Averages of the last calls, in nanoseconds for each KiB. 0 is not known.
    short: AtomicU64,
    long: AtomicU64,
    calls: AtomicU32,
}

impl ReadTimes {
    /// No read is known yet.
    pub const fn new() -> ReadTimes {
        ReadTimes { short: AtomicU64::new(0), long: AtomicU64::new(0), calls: AtomicU32::new(0) }
    }

    /// Whether the next call should read long. Mostly that is the faster length, and sometimes the other one is tried again.
    pub fn choose_long(&self) -> bool {
        let (short, long) = (self.short.load(Ordering::Relaxed), self.long.load(Ordering::Relaxed));
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        if long == 0 {
            return short != 0;
        }
        let long_is_faster = long < short;
        let try_other = match long_is_faster {
            true => before.is_multiple_of(SHORT_TRIED),
            false => before.is_power_of_two() || before.is_multiple_of(LONG_TRIED),
        };
        long_is_faster != try_other
    }

    /// Notes the time and the bytes of all reads of a call.
    pub fn note(&self, long: bool, time: Duration, bytes: u64) {
        if bytes < MEASURED {
            return;
        }
        let average = if long { &self.long } else { &self.short };
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let sample = (nanos / (bytes >> 10)).max(1);
        let before = average.load(Ordering::Relaxed);
        let after = match before {
            0 => sample,
            // After a time of waits the average soon falls again.
            _ if sample < before => before.midpoint(sample),
            _ => {
                let sample = sample.min(before.saturating_mul(MOST));
                (before - before / CALLS).saturating_add(sample / CALLS)
            }
        };
        // If two calls note at once, one of them is lost, which does not matter to an average.
        average.store(after.max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: u64 = 4 << 20;

    /// How many of so many calls read long, if short and long reads take so many microseconds for each MiB.
    fn calls(times: &ReadTimes, count: u32, short: u32, long: u32) -> u32 {
        let mut chosen = 0;
        for _ in 0..count {
            let is_long = times.choose_long();
            chosen += u32::from(is_long);
            let each = if is_long { long } else { short };
            times.note(is_long, Duration::from_micros(u64::from(4 * each)), OBJECT);
        }
        chosen
    }

    #[test]
    fn the_faster_length_is_used_and_the_other_one_is_tried_again() {
        let times = ReadTimes::new();
        assert_eq!(calls(&times, 1_024, 100, 500), 10, "memory: calls 1, 2, 4 and so on");
        assert!(calls(&times, 256, 1_200, 400) > 256 - 16 - 5, "a disk");
        assert!(calls(&times, 768, 100, 500) <= 3 * SHORT_TRIED, "memory again");
        assert_eq!(calls(&times, 1_024, 100, 500), 1);
    }

    #[test]
    fn waits_for_a_processor_change_the_choice_for_a_few_calls_only() {
        let times = ReadTimes::new();
        calls(&times, 40, 100, 500);
        times.note(false, Duration::from_secs(1), OBJECT);
        assert!(!times.choose_long(), "one call does not decide");
        // Several calls were slow, so that short reads seem slower than long ones.
        (0..4).for_each(|_| times.note(false, Duration::from_secs(1), OBJECT));
        assert!(times.choose_long());
        assert!(calls(&times, 255, 100, 500) <= 5 * SHORT_TRIED);
        assert!(calls(&times, 256, 100, 500) <= 1, "one that tries again");
    }

    #[test]
    fn calls_of_few_bytes_are_not_measured() {
        let times = ReadTimes::new();
        times.note(false, Duration::from_secs(1), MEASURED - 1);
        assert_eq!(times.short.into_inner(), 0);
    }
}
