//! Checks of requests before they are taken: decoding of long requests, plans of folds, regular expressions.
//!
//! A check may compute for seconds, and the request that causes it may have a few bytes. So checks have turns that go
//! to principals one after the other, and threads of their own. The checks of a principal get some processor time at
//! normal priority ([`Allotments`]). After that they have the priority of lanes, and give up their turns at normal
//! priority. An ordinary check ends before that.

mod allotment;
mod loan;
mod pool;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill_runtime::{ErrorKind, thread_time};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use allotment::Allotments;
use loan::Loan;
use pool::Pool;

use crate::ServerError;
use crate::contention::Contention;
use crate::error::{Answer, Refusal};
use crate::limits::{MAX_CHECKS, MAX_LOW_CHECKS, MAX_LOWERED_CHECKS};
use crate::turns::{Turn, Turns};

/// Least time between two looks at the processor time of a check.
const LEAST_WAIT: Duration = Duration::from_millis(2);

/// Time between two looks at the priority of a check that has used its time.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Checks of requests.
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

/// A check sends this when it ends. It is the result of the check and the processor time that it used.
type Ended<T> = (Answer<T>, Duration);

impl Checks {
    /// At most `most_waiting` requests of one principal wait. Call it on a thread of the runtime.
    pub fn new(most_waiting: usize, contention: Arc<Contention>) -> Checks {
        let (normal, low) = (Queue::new(MAX_CHECKS, most_waiting), Queue::new(MAX_LOW_CHECKS, most_waiting));
        Checks { allotments: Arc::default(), normal, low, contention }
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
        let mut turn = self.normal.turns.turn(principal).await?;
        let loan = Loan::new(&self.allotments, principal);
        if loan.is_none() {
            drop(turn);
            turn = self.low.turns.turn(principal).await?;
        }
        let (sender, answer) = oneshot::channel();
        let lane_priority = loan.is_none().then(|| self.contention.clone());
        let job = move || {
            if let Some(contention) = lane_priority {
                contention.cap.priority().set();
            }
            let begun = thread_time();
            let checked = check();
            // Sending fails if the runtime ends.
            let _ = sender.send((checked, thread_time().saturating_sub(begun)));
        };
        let pool = if loan.is_some() { &self.normal.pool } else { &self.low.pool };
        let number = pool.begin(Box::new(job)).map_err(|source| {
            Refusal::new(ErrorKind::Unavailable, ServerError::Thread { source }.to_string())
        })?;
        let running =
            Running { pool: pool.clone(), number, turn: Some(turn), contention: self.contention.clone() };
        // A task of its own goes on if the caller is gone. It returns the turn on a thread of the runtime: a thread of
        // low priority could keep the lock for long.
        let ended = tokio::spawn(running.end(loan, answer)).await;
        let failed = |what: &str| Err(ServerError::Internal { what: what.to_owned() }.into());
        match ended {
            Ok(Some(checked)) => checked,
            Ok(None) => failed("a request panicked"),
            Err(error) if error.is_cancelled() => failed("the node stopped during a request"),
            Err(_) => failed("the wait for a check panicked"),
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.normal.pool.close();
        self.low.pool.close();
    }
}

/// A running check.
struct Running {
    pool: Arc<Pool>,
    number: u64,
    turn: Option<Turn>,
    contention: Arc<Contention>,
}

impl Running {
    /// Waits for the end of the check, and lowers its priority once it has used its time. `None` if it panicked.
    async fn end<T>(
        mut self,
        mut loan: Option<Loan>,
        mut answer: oneshot::Receiver<Ended<T>>,
    ) -> Option<Answer<T>> {
        let mut wait = loan.as_ref().map_or(LOOK_EVERY, Loan::time);
        let ended = loop {
            if let Ok(ended) = timeout(wait.max(LEAST_WAIT), &mut answer).await {
                break ended;
            }
            wait = match &mut loan {
                Some(loan) if !loan.is_lowered() => self.lower_after(loan),
                // With `ActivePriority::Auto` lanes become idle when somebody reads.
                _ => {
                    self.pool.lower(self.number, self.contention.cap.priority());
                    LOOK_EVERY
                }
            };
        };
        let (checked, used) = ended.ok()?;
        if let Some(loan) = loan {
            loan.end(used);
        }
        Some(checked)
    }

    /// Lowers the priority of the check if it has used its time and gets no more. Returns the time to wait.
    fn lower_after(&mut self, loan: &mut Loan) -> Duration {
        let used = self.pool.used(self.number).unwrap_or_default();
        while loan.time() <= used {
            if loan.extend() {
                continue;
            }
            if !self.pool.lower(self.number, self.contention.cap.priority()) {
                return LEAST_WAIT;
            }
            // Others need not wait for the turn, unless very many checks were lowered.
            if loan.lower(used) <= MAX_LOWERED_CHECKS {
                self.turn = None;
            }
            return LOOK_EVERY;
        }
        loan.time() - used
    }
}

#[cfg(test)]
mod tests;
