//! Whether other programs keep lanes from working.
//!
//! If other programs keep all processors busy, a lane of idle priority gets a few thousandths of a processor, or of the
//! part of the control group or session of the node. Lanes measure that, because nothing else tells it: a thread that
//! needs little time gets it even then.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Times in which a thread has waited or worked, from which nothing can be concluded because they are short.
const LEAST: Duration = Duration::from_millis(20);

/// A lane of idle priority starves if it waits so many times longer than it works. It does not if it works so many times longer
/// than it waits. Twenty other idle lanes for each processor would have the same effect.
const STARVES: u32 = 20;

/// Time for which a measurement of an idle lane holds, unless a sample of the machine shows a free processor before. After that a
/// lane becomes idle again, to measure.
const HOLDS: Duration = Duration::from_secs(30);

/// How long a thread worked, and how long it waited for a processor, since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    worked: Duration,
    waited: Duration,
}

/// The finding of a thread about its own times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It nearly always had a processor when it wanted one.
    Works,
    /// It waited for a processor now and then.
    Waits,
    /// It hardly worked.
    Starves,
}

impl ThreadTimes {
    /// Times of a thread that begins.
    pub const NONE: ThreadTimes = ThreadTimes { worked: Duration::ZERO, waited: Duration::ZERO };

    /// Times of the calling thread; `None` if the system does not tell.
    pub fn now() -> Option<ThreadTimes> {
        // The first two fields are in nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut fields = text.split_whitespace().map(|field| field.parse().ok().map(Duration::from_nanos));
        Some(ThreadTimes { worked: fields.next()??, waited: fields.next()?? })
    }

    /// The finding about the time since `before`. `None` if that time is too short.
    pub fn finding_since(self, before: ThreadTimes) -> Option<Finding> {
        let worked = self.worked.saturating_sub(before.worked);
        let waited = self.waited.saturating_sub(before.waited);
        if worked + waited < LEAST {
            return None;
        }
        Some(match () {
            () if waited > worked * STARVES => Finding::Starves,
            () if waited > worked / STARVES => Finding::Waits,
            () => Finding::Works,
        })
    }
}

/// The last findings of the idle lanes of a node.
#[derive(Debug)]
pub(super) struct Starvation {
    begun: Instant,
    /// Milliseconds from the beginning until idle lanes are said to starve.
    until: AtomicU64,
    /// Whether a quota of a control group stops this process from time to time. Then lanes wait although no other program wants
    /// the processors.
    limited: AtomicBool,
}

impl Starvation {
    pub fn new(now: Instant) -> Starvation {
        Starvation { begun: now, until: AtomicU64::new(0), limited: AtomicBool::new(false) }
    }

    /// Sets whether this process has a quota of processor time.
    pub fn set_limited(&self, limited: bool) {
        self.limited.store(limited, Ordering::Relaxed);
    }

    fn milliseconds(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes what a lane found.
    pub fn note(&self, finding: Finding, now: Instant) {
        match finding {
            Finding::Starves => self.until.store(self.milliseconds(now + HOLDS), Ordering::Relaxed),
            Finding::Works => self.until.store(0, Ordering::Relaxed),
            Finding::Waits => {}
        }
    }

    /// Notes that a processor of the machine was free, which an idle lane would have got.
    pub fn note_free_processor(&self) {
        self.until.store(0, Ordering::Relaxed);
    }

    /// Whether lanes of idle priority starve, as far as it is known.
    pub fn is_known(&self, now: Instant) -> bool {
        !self.limited.load(Ordering::Relaxed) && self.milliseconds(now) < self.until.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_much_longer_than_it_works_starves() {
        let ms = Duration::from_millis;
        let before = ThreadTimes { worked: ms(100), waited: ms(50) };
        let finding = |worked: u64, waited: u64| {
            let now = ThreadTimes { worked: ms(100 + worked), waited: ms(50 + waited) };
            now.finding_since(before)
        };
        assert_eq!(finding(5, 5), None);
        assert_eq!(finding(0, 30), Some(Finding::Starves));
        assert_eq!(finding(10, 201), Some(Finding::Starves));
        assert_eq!(finding(10, 199), Some(Finding::Waits));
        assert_eq!(finding(20, 2), Some(Finding::Waits));
        assert_eq!(finding(20, 1), Some(Finding::Works));
    }

    #[test]
    fn starvation_is_known_for_a_while() {
        let begun = Instant::now();
        let starvation = Starvation::new(begun);
        assert!(!starvation.is_known(begun));
        starvation.note(Finding::Starves, begun);
        starvation.note(Finding::Waits, begun);
        assert!(starvation.is_known(begun + HOLDS / 2) && !starvation.is_known(begun + HOLDS));
        starvation.set_limited(true);
        assert!(!starvation.is_known(begun));
        starvation.set_limited(false);
        starvation.note(Finding::Works, begun);
        assert!(!starvation.is_known(begun));
        starvation.note(Finding::Starves, begun);
        starvation.note_free_processor();
        assert!(!starvation.is_known(begun));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_how_long_a_thread_worked() {
        use gristmill_runtime::thread_time;

        let before = ThreadTimes::now().unwrap_or_default();
        let until = thread_time() + Duration::from_millis(20);
        while thread_time() < until {}
        let after = ThreadTimes::now().unwrap_or_default();
        assert!(after.worked > before.worked, "{before:?} {after:?}");
    }
}
