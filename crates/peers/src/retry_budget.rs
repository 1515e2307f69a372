//! The repetition of requests that a busy node refused.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use gristmill_runtime::RunError;

/// Most repetitions of a request that was refused as busy.
pub const MAX_BUSY_RETRIES: u32 = 3;

/// Longest time that a request waits for its repetitions in total. After it the client gets the refusal of the node.
pub const RETRY_WAIT: Duration = Duration::from_secs(90);

/// Longest random delay of a repetition, so that clients that were refused together do not return at once.
const SPREAD: Duration = Duration::from_millis(500);

/// The repetitions that a request has left after refusals by busy nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryBudget {
    retries: u32,
    waited: Duration,
}

impl RetryBudget {
    /// Time to wait before the request is repeated. `None` if the error is not a refusal with a time, or if the budget
    /// is used up. A node gives a time only for a request that it did not begin.
    pub fn wait_for(&mut self, error: &RunError) -> Option<Duration> {
        let random = RandomState::new().build_hasher().finish();
        let spread = Duration::from_millis(random % (SPREAD.as_millis() as u64 + 1));
        let wait = Duration::from_secs(error.retry_after()?.into()) + spread;
        let waited = self.waited + wait;
        if self.retries >= MAX_BUSY_RETRIES || waited > RETRY_WAIT {
            return None;
        }
        (self.retries, self.waited) = (self.retries + 1, waited);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use gristmill_runtime::ErrorKind;

    use super::*;

    fn busy(retry_after: u32) -> RunError {
        RunError::Busy { message: "busy".into(), retry_after }
    }

    #[test]
    fn a_busy_node_is_asked_again_at_most_so_often_and_not_before_its_time() {
        let mut budget = RetryBudget::default();
        for _ in 0..MAX_BUSY_RETRIES {
            let wait = budget.wait_for(&busy(2)).unwrap_or_default();
            assert!((Duration::from_secs(2)..=Duration::from_secs(2) + SPREAD).contains(&wait), "{wait:?}");
        }
        assert_eq!(budget.wait_for(&busy(2)), None);
    }

    #[test]
    fn the_waits_together_are_not_longer_than_the_bound() {
        let mut budget = RetryBudget::default();
        assert!(budget.wait_for(&busy(60)).is_some());
        assert_eq!(budget.wait_for(&busy(60)), None);
        assert!(budget.wait_for(&busy(1)).is_some(), "a short wait still fits");
        assert_eq!(RetryBudget::default().wait_for(&busy(u32::MAX)), None);
    }

    #[test]
    fn a_request_that_may_have_begun_is_not_repeated() {
        let error = |kind| RunError::Remote { kind, message: "m".into() };
        for error in [error(ErrorKind::Busy), error(ErrorKind::Unavailable), RunError::Panicked] {
            assert_eq!(RetryBudget::default().wait_for(&error), None);
        }
    }
}
