//! The processor time at normal priority that one check has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::allotment::{Allotments, LOAN};

/// Processor time that a check has taken from its principal's. Dropping it settles the account.
pub(super) struct Loan {
    allotments: Arc<Mutex<Allotments>>,
    principal: Arc<str>,
    time: Duration,
    /// Time that the check used at normal priority, once it is known. Until then it counts as all of the loan.
    used: Option<Duration>,
    lowered: bool,
}

impl Loan {
    /// Takes a loan. `None` if the principal has no time left.
    pub fn new(allotments: &Arc<Mutex<Allotments>>, principal: &Arc<str>) -> Option<Loan> {
        let taken = lock(allotments).take(principal, Instant::now());
        let (allotments, principal) = (allotments.clone(), principal.clone());
        taken.then_some(Loan { allotments, principal, time: LOAN, used: None, lowered: false })
    }

    /// All the time of the check.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Whether the check had used its time and goes on with low priority.
    pub fn is_lowered(&self) -> bool {
        self.lowered
    }

    /// Takes more time. Returns false if the principal has none left.
    pub fn extend(&mut self) -> bool {
        let taken = lock(&self.allotments).take(&self.principal, Instant::now());
        self.time += if taken { LOAN } else { Duration::ZERO };
        taken
    }

    /// Records that the check goes on with low priority after this time. Returns the number of all such checks.
    pub fn lower(&mut self, used: Duration) -> usize {
        (self.used, self.lowered) = (Some(used), true);
        lock(&self.allotments).lower(&self.principal, Instant::now())
    }

    /// Ends a check that used this time.
    pub fn end(mut self, used: Duration) {
        self.used.get_or_insert(used);
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let used = self.used.unwrap_or(self.time);
        lock(&self.allotments).settle(&self.principal, self.time, used, self.lowered, Instant::now());
    }
}

fn lock(allotments: &Mutex<Allotments>) -> MutexGuard<'_, Allotments> {
    allotments.lock().unwrap_or_else(PoisonError::into_inner)
}
