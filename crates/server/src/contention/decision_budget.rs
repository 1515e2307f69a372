//! Time between decisions of a node. It decides soon after each change, but uses only a small share of a core, as long
//! as a decision takes less than that share of [`MOST_REST`].

use std::time::{Duration, Instant};

/// Shortest time between two decisions. Requests that arrive meanwhile are decided together.
pub(super) const DECIDE_EVERY: Duration = Duration::from_millis(1);

/// Share of one core that decisions may take over a longer time.
const DECIDING_SHARE: f64 = 0.01;

/// Processor seconds that decisions may use at once after a time with few decisions.
const MOST_SAVED: f64 = 0.01;

/// Longest time between two decisions, even after an expensive one: the machine changes meanwhile.
const MOST_REST: Duration = Duration::from_millis(500);

/// Processor time that decisions may still use.
///
/// It counts processor time of the thread, not time on the clock: a decision does not cost more because other processes
/// ran meanwhile.
pub(super) struct DecisionBudget {
    /// Processor seconds. Negative if decisions used too much.
    left: f64,
    /// Time of the last update.
    at: Instant,
}

impl DecisionBudget {
    pub fn new(now: Instant) -> DecisionBudget {
        DecisionBudget { left: MOST_SAVED, at: now }
    }

    /// Subtracts the processor time of a decision that ended `now`.
    pub fn spend(&mut self, processor: Duration, now: Instant) {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * DECIDING_SHARE).min(MOST_SAVED) - processor.as_secs_f64();
        // The debt is bounded by the longest rest: cheap decisions must not wait for expensive ones of minutes ago.
        self.left = self.left.max(-MOST_REST.as_secs_f64() * DECIDING_SHARE);
        self.at = now;
    }

    /// Time to wait from `now` until the next decision.
    pub fn rest(&self, now: Instant) -> Duration {
        let owed = (-self.left).max(0.0) / DECIDING_SHARE;
        let rest = Duration::try_from_secs_f64(owed).unwrap_or(MOST_REST).clamp(DECIDE_EVERY, MOST_REST);
        rest.saturating_sub(now.saturating_duration_since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_requests_wait_for_at_most_a_millisecond() {
        let mut now = Instant::now();
        let mut budget = DecisionBudget::new(now);
        for _ in 0..20 {
            assert!(budget.rest(now) <= DECIDE_EVERY);
            now += Duration::from_millis(5);
            budget.spend(Duration::from_micros(300), now);
        }
    }

    #[test]
    fn many_decisions_take_their_share_of_a_core_and_no_more() {
        let begun = Instant::now();
        let (mut now, mut used) = (begun, Duration::ZERO);
        let mut budget = DecisionBudget::new(now);
        let each = Duration::from_millis(2);
        while now - begun < Duration::from_secs(100) {
            now += budget.rest(now) + each;
            used += each;
            budget.spend(each, now);
        }
        let share = used.as_secs_f64() / (now - begun).as_secs_f64();
        assert!((0.009..0.0103).contains(&share), "{share}");
    }

    #[test]
    fn expensive_decisions_delay_only_the_next_one() {
        let mut now = Instant::now();
        let mut budget = DecisionBudget::new(now);
        for _ in 0..100 {
            budget.spend(Duration::from_secs(3), now);
            assert_eq!(budget.rest(now), MOST_REST);
            assert_eq!(budget.rest(now + MOST_REST), Duration::ZERO);
            now += MOST_REST;
        }
        budget.spend(Duration::from_micros(100), now);
        assert!(budget.rest(now) < Duration::from_millis(50), "{:?}", budget.rest(now));
    }
}
