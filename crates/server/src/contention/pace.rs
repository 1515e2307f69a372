//! The pace of one request: its turns, its memory, and the processor time of its lanes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gristmill_runtime::{MemoryGuard, Pace};

use super::cap::{CHECK_EVERY, Cap, time_since_last};
use super::priority::LanePriority;
use crate::memory::Memory;
use crate::turns::Yielding;

/// Processor time for which a lane folds before it checks whether other lanes should work.
const PIECE_TIME: Duration = Duration::from_micros(200);

/// Positions that a lane folds first, while the time of one is unknown: k-means with tens of thousands of centres takes
/// 60 us for each. A piece is at most [`GROWTH`] times as large as the piece before.
const FIRST_PIECE: u64 = 64;
const GROWTH: u64 = 8;

thread_local! {
    /// The priority that this thread was given. `None`: it has the normal one.
    static PRIORITY: Cell<Option<LanePriority>> = const { Cell::new(None) };
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
    fn begins(&self, stopped: &dyn Fn() -> bool) {
        if !(is_normal() && self.cap.begin_allotment(&self.principal)) {
            self.go_on_low(stopped);
        }
    }

    fn piece(&self) -> u64 {
        self.piece.load(Ordering::Relaxed)
    }

    fn folded(&self, positions: u64, stopped: &dyn Fn() -> bool) {
        let used = time_since_last();
        let normal = is_normal() && self.cap.spend_allotment(&self.principal, used);
        self.cap.spend(used, stopped);
        self.piece.store(next_piece(self.piece(), positions, used), Ordering::Relaxed);
        let used = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        self.used.fetch_add(used, Ordering::Relaxed);
        self.give_turn(stopped);
        if !normal {
            self.go_on_low(stopped);
        }
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
