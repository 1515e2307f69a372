//! The pace of one request: its turns, its memory, and the processor time of its lanes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use gristmill_runtime::{MemoryGuard, Pace};

use super::cap::{CHECK_EVERY, Cap, time_since_last};
use super::priority::LanePriority;
use super::starvation::{Finding, ThreadTimes};
use crate::memory::Memory;
use crate::turns::Yielding;

/// Processor time for which a lane folds before it checks whether other lanes should work.
const PIECE_TIME: Duration = Duration::from_micros(200);

/// Positions that a lane folds first, while the time of one is unknown: k-means with tens of thousands of centres takes
/// 60 us for each. A piece is at most [`GROWTH`] times as large as the piece before.
const FIRST_PIECE: u64 = 64;
const GROWTH: u64 = 8;

/// Time between two checks whether an idle lane starves. A check takes some microseconds.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// Longest time that a lane waits for an allotment before it goes on at low priority. On two processors half an allotment grows in
/// an eighth of a second for each principal.
const MAX_ALLOTMENT_WAIT: Duration = Duration::from_secs(10);

/// Time between two looks of a lane that waits for an allotment.
const ALLOTMENT_TICK: Duration = Duration::from_millis(5);

thread_local! {
    /// The priority that this thread was given. `None`: it has the normal one.
    static PRIORITY: Cell<Option<LanePriority>> = const { Cell::new(None) };
    /// Times of this thread when it was last checked whether it starves, and when that was. `None`: it was not checked yet.
    static CHECKED: Cell<(Option<Instant>, ThreadTimes)> = const { Cell::new((None, ThreadTimes::NONE)) };
}

/// Positions of the next piece, if the last `positions` took the time `used`.
fn next_piece(piece: u64, positions: u64, used: Duration) -> u64 {
    let each = used.as_secs_f64() / positions.max(1) as f64;
    let wanted = PIECE_TIME.as_secs_f64() / each.max(1e-12);
    (wanted as u64).min(piece.saturating_mul(GROWTH)).max(1)
}

/// Gives the lane of the calling thread a priority, unless it has this one or a lower one: a thread may not raise its own.
fn set_priority(priority: LanePriority) {
    let before = PRIORITY.get();
    if before != Some(priority) && before != Some(LanePriority::Idle) {
        PRIORITY.set(Some(priority));
        priority.set();
    }
}

/// Whether the calling thread has normal priority.
fn is_normal() -> bool {
    PRIORITY.get().is_none()
}

/// Ends the turn of the lane of the calling thread. A lane of normal priority has none, and should not wait for a lock that an idle
/// lane may hold for long.
fn end_turn(cap: &Cap) {
    if !is_normal() {
        cap.end_turn();
    }
}

/// The pace of one request: the node's cap, and a count of the request's own processor time.
pub(crate) struct FoldPace {
    cap: Arc<Cap>,
    /// Memory for chunks that its lanes decode.
    memory: Arc<Memory>,
    principal: Arc<str>,
    /// Turn of its lanes, if they need one.
    turn: Mutex<Weak<Yielding>>,
    /// Nanoseconds of processor time that its lanes have used.
    used: AtomicU64,
    /// Positions that a lane folds before it checks whether other lanes should work.
    piece: AtomicU64,
}

impl FoldPace {
    pub fn new(cap: Arc<Cap>, memory: Arc<Memory>, principal: Arc<str>) -> FoldPace {
        let (used, piece) = (AtomicU64::new(0), AtomicU64::new(FIRST_PIECE));
        FoldPace { cap, memory, principal, turn: Mutex::default(), used, piece }
    }

    #[cfg(test)]
    pub fn for_tests(cap: &Arc<Cap>) -> FoldPace {
        FoldPace::new(cap.clone(), Memory::new(1 << 20, "tests"), "who".into())
    }

    /// Sets the turn of its lanes.
    pub fn set_turn(&self, turn: &Arc<Yielding>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(turn);
    }

    /// Gives the turn to another principal if it is due, and waits for the next turn.
    fn give_turn(&self, stopped: &dyn Fn() -> bool) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(turn) = turn.filter(|turn| turn.is_due()) {
            turn.at_block(stopped, &|| end_turn(&self.cap));
        }
    }

    /// Measures whether other programs keep the lane of the calling thread from working.
    fn check_starvation(&self) -> Option<Finding> {
        let now = ThreadTimes::now()?;
        let before = CHECKED.replace((Some(Instant::now()), now)).1;
        let finding = now.finding_since(before)?;
        self.cap.starvation.note(finding, Instant::now());
        Some(finding)
    }

    /// Whether the lane of the calling thread, which has normal priority, would hardly advance at idle priority.
    fn would_starve(&self) -> bool {
        self.cap.idle_lanes_starve() && self.check_starvation() != Some(Finding::Works)
    }

    /// Waits until the lane of the calling thread, which has normal priority, may fold with it again. Returns false after
    /// [`MAX_ALLOTMENT_WAIT`], or soon after `stopped` returns true or idle lanes no longer starve.
    fn wait_for_allotment(&self, stopped: &dyn Fn() -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if self.cap.may_rise(&self.principal) && self.cap.begin_allotment(&self.principal) {
                return true;
            }
            if stopped() || begun.elapsed() >= MAX_ALLOTMENT_WAIT || !self.cap.idle_lanes_starve() {
                return false;
            }
            self.give_turn(stopped);
            std::thread::sleep(ALLOTMENT_TICK);
        }
    }

    /// Returns when the lane of the calling thread may continue as one of low priority.
    fn go_on_low(&self, stopped: &dyn Fn() -> bool) {
        set_priority(self.cap.priority());
        self.cap.give_way(&self.principal, stopped);
    }

    /// Seconds of processor time that its lanes have used.
    pub fn used(&self) -> f64 {
        self.used.load(Ordering::Relaxed) as f64 / 1e9
    }
}

impl Pace for FoldPace {
    fn begins(&self, stopped: &dyn Fn() -> bool) -> bool {
        if is_normal() && self.cap.has_allotments() {
            let begins = self.cap.begin_allotment(&self.principal)
                || self.cap.idle_lanes_starve() && self.wait_for_allotment(stopped);
            return !begins;
        }
        self.go_on_low(stopped);
        false
    }

    fn piece(&self) -> u64 {
        self.piece.load(Ordering::Relaxed)
    }

    fn folded(&self, positions: u64, stopped: &dyn Fn() -> bool) -> bool {
        let used = time_since_last();
        let was_normal = is_normal();
        let normal = was_normal && self.cap.spend_allotment(&self.principal, used);
        self.cap.spend(used, stopped);
        self.piece.store(next_piece(self.piece(), positions, used), Ordering::Relaxed);
        let used = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        self.used.fetch_add(used, Ordering::Relaxed);
        self.give_turn(stopped);
        if !was_normal {
            if CHECKED.get().0.is_none_or(|at| at.elapsed() >= BETWEEN_CHECKS) {
                self.check_starvation();
            }
            self.go_on_low(stopped);
        }
        // A lane that would hardly advance at low priority waits instead.
        was_normal && !normal && !(self.would_starve() && self.wait_for_allotment(stopped))
    }

    fn lower(&self, stopped: &dyn Fn() -> bool) {
        CHECKED.set((Some(Instant::now()), ThreadTimes::now().unwrap_or(ThreadTimes::NONE)));
        self.go_on_low(stopped);
    }

    fn may_rise(&self) -> bool {
        !is_normal() && self.cap.idle_lanes_starve() && self.cap.may_rise(&self.principal)
    }

    fn ends(&self) {
        // A block that failed was not counted yet.
        let used = time_since_last();
        self.cap.spend_last(used);
        if is_normal() {
            self.cap.end_allotment(&self.principal, used);
        }
        end_turn(&self.cap);
    }

    fn memory(&self, bytes: u64, waits: bool, stopped: &dyn Fn() -> bool) -> Option<MemoryGuard> {
        let mut room = self.memory.room(&self.principal);
        let time = if waits { CHECK_EVERY } else { Duration::ZERO };
        while !room.grow_on_thread(bytes, time) {
            if !waits || stopped() {
                return None;
            }
            // The request that has the memory may wait for this turn.
            end_turn(&self.cap);
            self.give_turn(stopped);
        }
        Some(Box::new(room))
    }
}

#[cfg(test)]
mod tests;
