//! A turn of work in blocks. Between two blocks it goes to another principal that has fewer turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{Turn, Turns};

/// Shortest time of a turn before another principal gets it: the content of the caches is lost with it.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// Longest wait of a thread before it checks whether its work was stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A turn that its work has, or waits for again. Dropping it returns the turn, or gives up the place in the queue.
pub(crate) struct Yielding {
    turns: Arc<Turns>,
    phase: Mutex<Phase>,
    /// Whether another principal has the turn.
    away: AtomicBool,
    back: Condvar,
    runtime: Handle,
    /// Reference for the task that waits for the turn.
    this: Weak<Yielding>,
}

enum Phase {
    Working(Turn, Instant),
    /// The task that waits for the turn.
    Away(JoinHandle<()>),
    Over,
}

impl Yielding {
    /// Begins with this turn now.
    pub fn new(turn: Turn, runtime: &Handle) -> Arc<Yielding> {
        Arc::new_cyclic(|this| Yielding {
            turns: turn.turns.clone(),
            phase: Mutex::new(Phase::Working(turn, Instant::now())),
            away: AtomicBool::new(false),
            back: Condvar::new(),
            runtime: runtime.clone(),
            this: this.clone(),
        })
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn up if it is due, and waits until it is back or the work is stopped. Each thread of the work calls
    /// this between two blocks. `leaves` is called before a wait.
    pub fn at_block(&self, stopped: &dyn Fn() -> bool, leaves: &dyn Fn()) {
        let mut phase = self.phase();
        if let Phase::Working(turn, since) = &*phase
            && since.elapsed() >= SLICE
            && turn.is_wanted()
        {
            self.give_up(&mut phase);
        }
        if !matches!(*phase, Phase::Away(_)) {
            return;
        }
        leaves();
        while matches!(*phase, Phase::Away(_)) && !stopped() {
            phase = self.back.wait_timeout(phase, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether [`at_block`](Yielding::at_block) may have something to do. It takes no lock, since it runs after each
    /// block.
    pub fn is_due(&self) -> bool {
        self.away.load(Ordering::Relaxed) || self.turns.is_crowded()
    }

    fn give_up(&self, phase: &mut Phase) {
        let Phase::Working(turn, _) = std::mem::replace(phase, Phase::Over) else { return };
        // Its place is before all others of the principal, so that a principal has no more requests begun than turns.
        let waiter = self.turns.join_again(&turn.principal, turn.ticket);
        drop(turn);
        let this = self.this.clone();
        let back = self.runtime.spawn(async move {
            let Some(turn) = waiter.wait().await else { return };
            if let Some(this) = this.upgrade() {
                this.resume(turn);
            }
        });
        self.away.store(true, Ordering::Relaxed);
        *phase = Phase::Away(back);
    }

    fn resume(&self, turn: Turn) {
        let mut phase = self.phase();
        *phase = Phase::Working(turn, Instant::now());
        self.away.store(false, Ordering::Relaxed);
        self.back.notify_all();
    }
}

impl Drop for Yielding {
    fn drop(&mut self) {
        if let Phase::Away(back) = &*self.phase() {
            back.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::AtomicUsize;
    use std::thread::JoinHandle;

    use super::*;

    /// Works until it is stopped, and counts its waits.
    fn work(turn: Arc<Yielding>, stop: Arc<AtomicBool>, waited: Arc<AtomicUsize>) -> JoinHandle<()> {
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                if turn.is_due() {
                    let leaves = || {
                        waited.fetch_add(1, Ordering::SeqCst);
                    };
                    turn.at_block(&|| stop.load(Ordering::SeqCst), &leaves);
                }
                std::thread::yield_now();
            }
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_has_a_turn_while_long_work_goes_on() {
        let turns = Turns::new(1, 8);
        let (long, small): (Arc<str>, Arc<str>) = ("long".into(), "small".into());
        let turn = Yielding::new(turns.turn(&long).await.unwrap(), &Handle::current());
        let stop = Arc::new(AtomicBool::new(false));
        let waited: [Arc<AtomicUsize>; 2] = Default::default();
        let lanes = waited.clone().map(|waited| work(turn.clone(), stop.clone(), waited));
        // Several small requests have turns one after the other while all lanes of the long one wait.
        for times in 1..=3 {
            let held = turns.turn(&small).await.unwrap();
            while waited.iter().any(|waited| waited.load(Ordering::SeqCst) < times) {
                tokio::task::yield_now().await;
            }
            drop(held);
        }
        // A request of the same principal gets no turn.
        let same = turns.turn(&long);
        assert!(tokio::time::timeout(2 * SLICE, same).await.is_err());
        stop.store(true, Ordering::SeqCst);
        for lane in lanes {
            lane.join().unwrap();
        }
        drop(turn);
        while turns.free() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.waiting(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_is_stopped_while_it_waits_leaves_the_line() {
        let turns = Turns::new(1, 8);
        let (long, small): (Arc<str>, Arc<str>) = ("long".into(), "small".into());
        let turn = Yielding::new(turns.turn(&long).await.unwrap(), &Handle::current());
        let stop = Arc::new(AtomicBool::new(false));
        let lane = work(turn.clone(), stop.clone(), Arc::default());
        let held = turns.turn(&small).await.unwrap();
        stop.store(true, Ordering::SeqCst);
        lane.join().unwrap();
        assert_eq!(turns.waiting(), 1);
        drop(turn);
        while turns.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(turns.free(), 1);
    }
}
