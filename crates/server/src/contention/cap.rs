//! The administrator's cap on the processor time of active work, and the turns of lanes during reads and writes.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use gristmill_runtime::thread_time;

use super::lane_allotments::LaneAllotments;
use super::lane_queue::{self, Lane, LaneQueue};
use super::normal::NormalCount;
use super::priority::{ActivePriority, LanePriority};
use super::starvation::Starvation;

/// Time whose unused share of the processors may be used later.
const SAVED: Duration = Duration::from_millis(20);

/// Time whose share must be available again before lanes continue after they used up their share. Pauses are few and
/// long, because each one costs the content of the caches.
const REFILL: Duration = Duration::from_millis(10);

/// Time without a read or a write after which new lanes are not idle, with [`ActivePriority::Auto`].
const QUIET: Duration = Duration::from_secs(1);

/// Processor time after which a lane lets other threads run: half of a tick of 4 ms. Each time it may wait for time slices of
/// all other lanes of the machine, so a small request should wait once or twice, and not after each block.
const YIELD_AFTER: Duration = Duration::from_millis(2);

/// Longest wait of a lane before it checks again.
pub(super) const CHECK_EVERY: Duration = Duration::from_millis(100);

thread_local! {
    /// Processor time of this thread that was counted already.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// The value of `COUNTED` when this thread last let others run.
    static YIELDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// The lane of this thread.
    static LANE: Lane = LANES.fetch_add(1, Ordering::Relaxed);
}

/// Number of lanes so far.
static LANES: AtomicU64 = AtomicU64::new(0);

/// Cap on the lanes of a node: together they use at most a share of the processors, and leave some to reads and writes.
/// It counts processor time, so it holds for every kernel and every speed of the disks.
pub(crate) struct Cap {
    share: f64,
    priority: ActivePriority,
    state: Mutex<State>,
    changed: Condvar,
    normal: NormalCount,
    turns: Mutex<LaneTurns>,
    allotments: Mutex<LaneAllotments>,
    /// Number of lanes that wait for their turn.
    pub(super) waiting: AtomicUsize,
    /// The last findings of idle lanes.
    pub(super) starvation: Starvation,
}

/// Turns of lanes during reads and writes and under a cap.
struct LaneTurns {
    cores: f64,
    lanes: LaneQueue,
    asleep: HashMap<Lane, Thread>,
}

struct State {
    /// Seconds of processor time per second that lanes may use.
    rate: f64,
    /// Seconds that lanes may use now. Negative after a long block.
    balance: f64,
    at: Instant,
    /// Whether the balance was used up and is not refilled yet.
    refills: bool,
    /// Seconds used since the start.
    used: f64,
}

impl Cap {
    /// Creates a cap: this share of `cores` processors. A share of 1 or more is no cap.
    pub fn new(share: f64, cores: f64, priority: ActivePriority, normal: NormalCount) -> Cap {
        let at = Instant::now();
        let state = State { rate: rate(share, cores), balance: 0.0, at, refills: false, used: 0.0 };
        let turns = LaneTurns { cores, lanes: LaneQueue::default(), asleep: HashMap::new() };
        Cap {
            share,
            priority,
            state: Mutex::new(state),
            changed: Condvar::new(),
            normal,
            turns: Mutex::new(turns),
            allotments: Mutex::new(LaneAllotments::new(cores, at)),
            waiting: AtomicUsize::new(0),
            starvation: Starvation::new(at),
        }
    }

    /// Sets the number of processors that this process may use.
    pub fn set_cores(&self, cores: f64) {
        self.state().rate = rate(self.share, cores);
        self.turns().cores = cores;
        self.allotments().set_cores(cores);
    }

    /// The priority of lanes now.
    pub fn priority(&self) -> LanePriority {
        self.priority.of_lane(self.normal.lately(QUIET))
    }

    /// Seconds of processor time that all lanes have used.
    pub fn used(&self) -> f64 {
        self.state().used
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turns(&self) -> MutexGuard<'_, LaneTurns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allotments(&self) -> MutexGuard<'_, LaneAllotments> {
        self.allotments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subtracts the used seconds. Returns the time to wait, if any.
    fn charge(&self, state: &mut State, used: f64, now: Instant) -> Option<Duration> {
        state.used += used;
        if state.rate.is_infinite() {
            return None;
        }
        let passed = now.saturating_duration_since(state.at).as_secs_f64();
        state.at = now;
        // The bound applies after the block is paid: a long block earns during its own time.
        let earned = passed * state.rate;
        state.balance = (state.balance + earned - used).min(SAVED.as_secs_f64() * state.rate);
        state.refills |= state.balance < 0.0;
        let enough = REFILL.as_secs_f64() * state.rate;
        if !state.refills || state.balance >= enough && state.rate > 0.0 {
            state.refills = false;
            return None;
        }
        let owed = if state.rate > 0.0 { (enough - state.balance) / state.rate } else { f64::INFINITY };
        Some(CHECK_EVERY.min(Duration::try_from_secs_f64(owed).unwrap_or(CHECK_EVERY)))
    }
}

/// Seconds of processor time per second of this share of `cores` processors. Infinite without a cap.
fn rate(share: f64, cores: f64) -> f64 {
    if share >= 1.0 { f64::INFINITY } else { share.max(0.0) * cores }
}

impl Cap {
    /// Counts time that the calling thread used, and waits until the thread may continue.
    pub(super) fn spend(&self, used: Duration, stopped: &dyn Fn() -> bool) {
        let mut state = self.state();
        let mut wait = self.charge(&mut state, used.as_secs_f64(), Instant::now());
        while let Some(time) = wait {
            if stopped() {
                break;
            }
            let waited = self.changed.wait_timeout(state, time);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            wait = self.charge(&mut state, 0.0, Instant::now());
        }
    }

    /// Counts time that the calling thread used before its lane ended.
    pub(super) fn spend_last(&self, used: Duration) {
        self.charge(&mut self.state(), used.as_secs_f64(), Instant::now());
    }

    /// Whether the lane of the calling thread may begin at normal priority, and without a turn. Nobody may under a cap.
    pub(super) fn begin_allotment(&self, principal: &Arc<str>) -> bool {
        self.has_allotments() && self.allotments().begin(principal, Instant::now())
    }

    /// Whether there are allotments.
    pub(super) fn has_allotments(&self) -> bool {
        self.share >= 1.0
    }

    /// Whether lanes get idle priority now and would hardly advance with it.
    pub(super) fn idle_lanes_starve(&self) -> bool {
        self.priority() == LanePriority::Idle && self.starvation.is_known(Instant::now())
    }

    /// Whether a lane of low priority should end, so that a lane of normal priority goes on in its place.
    pub(super) fn may_rise(&self, principal: &Arc<str>) -> bool {
        self.has_allotments() && self.allotments().may_rise(principal, Instant::now())
    }

    /// Subtracts time of such a lane from the allotment of its principal. Returns whether the lane may continue at normal
    /// priority and without a turn.
    pub(super) fn spend_allotment(&self, principal: &Arc<str>, used: Duration) -> bool {
        let some_left = self.allotments().spend(principal, used, Instant::now());
        if some_left {
            let_others_run();
        }
        some_left
    }

    /// Subtracts the last time of such a lane.
    pub(super) fn end_allotment(&self, principal: &Arc<str>, used: Duration) {
        self.allotments().end(principal, used, Instant::now());
    }

    /// Waits until the lane of the calling thread may work.
    pub(super) fn give_way(&self, principal: &Arc<str>, stopped: &dyn Fn() -> bool) {
        let lane = LANE.with(|lane| *lane);
        loop {
            let normal = self.normal.expected();
            if normal == 0 && self.share >= 1.0 && self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            let mut turns = self.turns();
            let most = lane_queue::max_lanes(turns.cores, normal, rate(self.share, turns.cores));
            if stopped() {
                self.leave(&mut turns, lane);
                return;
            }
            let worked = turns.lanes.works(lane);
            if turns.lanes.may_work(lane, principal, Instant::now(), most) {
                turns.asleep.remove(&lane);
                if most.is_none() {
                    turns.asleep.values().for_each(Thread::unpark);
                } else if !worked {
                    // Another lane may find room too.
                    wake_first(&turns, lane);
                }
                self.count(&turns);
                drop(turns);
                let_others_run();
                return;
            }
            turns.asleep.insert(lane, std::thread::current());
            if worked {
                wake_first(&turns, lane);
            }
            self.count(&turns);
            // No lane wakes the first one when a lane at work is silent.
            let first = turns.lanes.waiting(Instant::now()).first() == Some(&lane);
            drop(turns);
            std::thread::park_timeout(if first { lane_queue::AWAY } else { CHECK_EVERY });
        }
    }

    /// Ends the turn of the lane of the calling thread, or its wait.
    pub(super) fn end_turn(&self) {
        let lane = LANE.with(|lane| *lane);
        self.leave(&mut self.turns(), lane);
    }

    /// Ends the turn of a lane, or its wait.
    fn leave(&self, turns: &mut LaneTurns, lane: Lane) {
        turns.lanes.leave(lane);
        turns.asleep.remove(&lane);
        wake_first(turns, lane);
        self.count(turns);
    }

    fn count(&self, turns: &LaneTurns) {
        self.waiting.store(turns.lanes.count(), Ordering::Relaxed);
    }
}

/// Processor time of the calling thread since the last call.
pub(super) fn time_since_last() -> Duration {
    let now = thread_time();
    COUNTED.with(|counted| now.saturating_sub(counted.replace(now)))
}

/// Lets another thread run on this processor, if the calling thread has worked for [`YIELD_AFTER`]. A fair scheduler may owe
/// the thread some time, and would give it a whole time slice while a read waits.
fn let_others_run() {
    let now = COUNTED.get();
    if now.saturating_sub(YIELDED.get()) >= YIELD_AFTER {
        YIELDED.set(now);
        std::thread::yield_now();
    }
}

/// Wakes the first waiting lane other than `not`.
fn wake_first(turns: &LaneTurns, not: Lane) {
    if !turns.lanes.has_waiting() {
        return;
    }
    let first = turns.lanes.waiting(Instant::now()).into_iter().find(|lane| *lane != not);
    if let Some(thread) = first.and_then(|lane| turns.asleep.get(&lane)) {
        thread.unpark();
    }
}

#[cfg(test)]
mod tests;
