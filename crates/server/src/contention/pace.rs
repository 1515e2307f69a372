//! What active work takes of the processors, and the administrator's cap on it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::Pace;
use rustix::time::{ClockId, clock_gettime};

use super::priority::ActivePriority;

/// Work that was not done may be done later, but not more than of so long.
const SAVED: Duration = Duration::from_millis(200);

/// Longest that a lane waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

thread_local! {
    /// Processor time of this thread that is counted already.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Whether this thread was made less urgent.
    static YIELDS: Cell<bool> = const { Cell::new(false) };
}

/// Lets lanes work as long as all of them together stay below a share of the processors. What they use is counted in
/// processor time, so it holds whatever the kernel is and however fast the disks are.
pub(crate) struct Cap {
    /// Seconds of processor time that may be used in a second.
    rate: f64,
    priority: ActivePriority,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Seconds that may be used now; less than none after a long block.
    balance: f64,
    at: Instant,
    /// Seconds that were used in all.
    used: f64,
}

impl Cap {
    /// A share of so many processors; 1 or more is no cap.
    pub fn new(share: f64, cores: usize, priority: ActivePriority) -> Cap {
        let rate = if share >= 1.0 { f64::INFINITY } else { share.max(0.0) * cores as f64 };
        let state = State { balance: 0.0, at: Instant::now(), used: 0.0 };
        Cap { rate, priority, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Seconds of processor time that lanes have used.
    pub fn used(&self) -> f64 {
        self.state().used
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Books what was used, at this moment, and says how long to wait.
    fn book(&self, state: &mut State, used: f64, now: Instant) -> Option<Duration> {
        state.used += used;
        if self.rate.is_infinite() {
            return None;
        }
        let passed = now.saturating_duration_since(state.at).as_secs_f64();
        state.at = now;
        state.balance = (state.balance + passed * self.rate).min(SAVED.as_secs_f64() * self.rate) - used;
        if state.balance >= 0.0 {
            return None;
        }
        let owed = if self.rate > 0.0 { -state.balance / self.rate } else { f64::INFINITY };
        Some(LOOK_AGAIN.min(Duration::try_from_secs_f64(owed).unwrap_or(LOOK_AGAIN)))
    }
}

/// Processor time that the calling thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0).min(999_999_999);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

impl Cap {
    /// Counts what the calling thread has used since it came here last, and waits until it may go on. Gives what it used.
    fn spend(&self, stopped: &dyn Fn() -> bool) -> Duration {
        let now = cpu_time();
        let used = COUNTED.with(|counted| now.saturating_sub(counted.replace(now)));
        let mut state = self.state();
        let mut wait = self.book(&mut state, used.as_secs_f64(), Instant::now());
        while let Some(time) = wait {
            if stopped() {
                break;
            }
            let waited = self.changed.wait_timeout(state, time);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            wait = self.book(&mut state, 0.0, Instant::now());
        }
        used
    }
}

/// The pace of one request: that of the node, with a count of its own.
pub(crate) struct FoldPace {
    cap: Arc<Cap>,
    /// Nanoseconds of processor time that its lanes have used.
    used: AtomicU64,
}

impl FoldPace {
    pub fn new(cap: Arc<Cap>) -> FoldPace {
        FoldPace { cap, used: AtomicU64::new(0) }
    }

    /// Seconds of processor time that its lanes have used.
    pub fn used(&self) -> f64 {
        self.used.load(Ordering::Relaxed) as f64 / 1e9
    }
}

impl Pace for FoldPace {
    fn begins(&self) {
        if !YIELDS.replace(true) {
            self.cap.priority.set();
        }
    }

    fn folded(&self, stopped: &dyn Fn() -> bool) {
        let used = u64::try_from(self.cap.spend(stopped).as_nanos()).unwrap_or(u64::MAX);
        self.used.fetch_add(used, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_over_time() {
        let cap = Cap::new(0.25, 4, ActivePriority::Low);
        let begin = cap.state().at;
        let (mut now, mut used) = (begin, 0.0_f64);
        // Blocks of 30 ms, each followed by the wait that is asked for.
        while now < begin + Duration::from_secs(60) {
            let mut state = cap.state();
            now += Duration::from_millis(30);
            used += 0.03;
            let mut wait = cap.book(&mut state, 0.03, now);
            while let Some(time) = wait {
                now += time;
                wait = cap.book(&mut state, 0.0, now);
            }
        }
        // One lane is just what a quarter of four cores allows; two would be too much.
        assert!((used - 60.0).abs() < 0.5, "{used}");
        let mut state = cap.state();
        assert!(cap.book(&mut state, 10.0, now).is_some());
    }

    #[test]
    fn nothing_and_everything() {
        let now = Instant::now();
        assert_eq!(
            Cap::new(1.0, 2, ActivePriority::Low).book(
                &mut Cap::new(1.0, 2, ActivePriority::Low).state(),
                1e9,
                now
            ),
            None
        );
        let none = Cap::new(0.0, 2, ActivePriority::Low);
        assert_eq!(none.book(&mut none.state(), 0.001, now + Duration::from_secs(9)), Some(LOOK_AGAIN));
    }
}
