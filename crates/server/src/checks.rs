//! Checks of requests before they are taken: decoding of long requests, plans of folds, regular expressions.
//!
//! A check may compute for seconds, and the request that causes it may have a few bytes. So checks have turns that go
//! to principals one after the other, and threads of their own. The checks of a principal get some processor time at
//! normal priority ([`Allotments`]). After that they have the priority of lanes, and give up their turns at normal
//! priority. So they delay neither reads nor checks of others. A check of ordinary length ends before.

mod allotment;
mod pool;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::{ErrorKind, thread_time, whole_cores};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use allotment::Allotments;
use pool::Pool;

use crate::ServerError;
use crate::contention::Contention;
use crate::error::{Answer, Refusal};
use crate::limits::MAX_CHECKS;
use crate::turns::{Turn, Turns};

/// Least time between two looks at the processor time of a check.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Checks of requests: at most [`MAX_CHECKS`] at normal priority at once, one at low priority for every two processors, and
/// those that have used their time.
pub(crate) struct Checks {
    allotments: Arc<Mutex<Allotments>>,
    normal: Queue,
    /// Its threads have the priority of lanes.
    low: Queue,
    contention: Arc<Contention>,
}

/// Turns of checks, and their threads.
struct Queue {
    turns: Arc<Turns>,
    pool: Arc<Pool>,
}

impl Queue {
    fn new(most: usize, most_waiting: usize) -> Queue {
        Queue { turns: Turns::new(most, most_waiting), pool: Pool::new(Handle::current()) }
    }
}

impl Checks {
    /// At most `most_waiting` requests of one principal wait. Call it on a thread of the runtime.
    pub fn new(most_waiting: usize, contention: Arc<Contention>) -> Checks {
        Checks {
            allotments: Arc::default(),
            normal: Queue::new(MAX_CHECKS, most_waiting),
            low: Queue::new((whole_cores() / 2).clamp(1, MAX_CHECKS), most_waiting),
            contention,
        }
    }

    /// Waits for a turn of this principal and runs `check` on a thread of the checks. If the caller stops waiting for
    /// the answer, a running check goes on to its end.
    ///
    /// # Errors
    /// Returns the errors of `check`, and an error if too many requests of this principal wait, if the system starts no
    /// more threads, or if the check panics.
    pub async fn run<T: Send + 'static>(
        &self,
        principal: &Arc<str>,
        check: impl FnOnce() -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let loan = Loan::new(&self.allotments, principal);
        let (time, low) = (loan.0.time, loan.0.time.is_zero());
        let queue = if low { &self.low } else { &self.normal };
        loan.0.lock().turn = Some(queue.turns.turn(principal).await?);
        let (shared, contention) = (loan.0.clone(), self.contention.clone());
        let (sender, mut answer) = oneshot::channel();
        let job = move || {
            if low {
                contention.cap.priority().set();
            }
            loan.0.lock().begun = Some(thread_time());
            let checked = check();
            drop(loan);
            // Sending fails if the caller is gone.
            let _ = sender.send(checked);
        };
        let pool = queue.pool.clone();
        let number = pool.begin(Box::new(job)).map_err(|source| {
            Refusal::new(ErrorKind::Unavailable, ServerError::Thread { source }.to_string())
        })?;
        let contention = self.contention.clone();
        let waiting = async move {
            let mut left = Some(time).filter(|_| !low);
            while let Some(wait) = left {
                if let Ok(answer) = timeout(wait.max(LEAST_WAIT), &mut answer).await {
                    return answer;
                }
                left = pool.lower_after(number, time, contention.cap.priority());
                if left.is_none() {
                    shared.lower();
                }
            }
            answer.await
        };
        // A task of its own goes on if the caller is gone.
        match tokio::spawn(waiting).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => {
                let what = "a request panicked".to_owned();
                Err(ServerError::Internal { what }.into())
            }
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.normal.pool.close();
        self.low.pool.close();
    }
}

/// Processor time at normal priority that a check has, and its turn. Dropping it returns the rest of the time and the turn.
struct Loan(Arc<SharedLoan>);

struct SharedLoan {
    allotments: Arc<Mutex<Allotments>>,
    principal: Arc<str>,
    time: Duration,
    state: Mutex<LoanState>,
}

#[derive(Default)]
struct LoanState {
    turn: Option<Turn>,
    /// Processor time of its thread when the check began.
    begun: Option<Duration>,
    lowered: bool,
    ended: bool,
}

impl Loan {
    fn new(allotments: &Arc<Mutex<Allotments>>, principal: &Arc<str>) -> Loan {
        let time = lock(allotments).take(principal, Instant::now());
        let (allotments, principal, state) = (allotments.clone(), principal.clone(), Mutex::default());
        Loan(Arc::new(SharedLoan { allotments, principal, time, state }))
    }
}

impl SharedLoan {
    fn lock(&self) -> MutexGuard<'_, LoanState> {
        lock(&self.state)
    }

    /// The check has used its time and goes on with low priority. Others need not wait for its turn, unless very many
    /// checks were lowered.
    fn lower(&self) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.lowered = true;
        if lock(&self.allotments).lower(&self.principal, Instant::now()) <= MAX_CHECKS {
            state.turn = None;
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        let used = state.begun.map_or(Duration::ZERO, |begun| thread_time().saturating_sub(begun));
        let rest = self.0.time.saturating_sub(used);
        lock(&self.0.allotments).give_back(&self.0.principal, rest, state.lowered, Instant::now());
        state.turn = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
