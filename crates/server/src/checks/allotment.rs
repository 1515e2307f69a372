//! Processor time that the checks of each principal may use at normal priority.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most processor time of the checks of one principal at once, after a time without checks.
pub(super) const MOST: Duration = Duration::from_millis(50);

/// Part of one core that the checks of a principal may use over a longer time.
const SHARE: f64 = 0.1;

/// Least time for which a check begins at normal priority.
const LEAST: Duration = Duration::from_millis(1);

/// Number of principals from which on those with all their time are forgotten.
const MANY: usize = 1024;

/// The time that each principal has left. It grows by [`SHARE`] of the time that passes, up to [`MOST`].
#[derive(Default)]
pub(super) struct Allotments {
    of: HashMap<Arc<str>, Allotment>,
    /// Running checks that have used their time.
    lowered: usize,
}

struct Allotment {
    left: Duration,
    at: Instant,
    /// Running checks of the principal that have used their time.
    lowered: usize,
}

impl Allotment {
    fn grow(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at);
        self.left = MOST.min(self.left.saturating_add(since.mul_f64(SHARE)));
        self.at = now;
    }
}

impl Allotments {
    /// Takes half of the time that a principal has left, so that checks at the same time have some too. Returns zero if
    /// it is less than [`LEAST`], or while a check of this principal runs that has used its time.
    pub fn take(&mut self, principal: &Arc<str>, now: Instant) -> Duration {
        let allotment = self.of(principal, now);
        let half = allotment.left / 2;
        if half < LEAST || allotment.lowered > 0 {
            return Duration::ZERO;
        }
        allotment.left -= half;
        half
    }

    /// A check of this principal has used its time. Returns the number of all such checks that run.
    pub fn lower(&mut self, principal: &Arc<str>, now: Instant) -> usize {
        self.of(principal, now).lowered += 1;
        self.lowered += 1;
        self.lowered
    }

    /// Returns the time that a check did not use. `lowered`: it had used its time before its end.
    pub fn give_back(&mut self, principal: &Arc<str>, rest: Duration, lowered: bool, now: Instant) {
        let allotment = self.of(principal, now);
        allotment.left = MOST.min(allotment.left.saturating_add(rest));
        if lowered {
            allotment.lowered = allotment.lowered.saturating_sub(1);
            self.lowered = self.lowered.saturating_sub(1);
        }
    }

    fn of(&mut self, principal: &Arc<str>, now: Instant) -> &mut Allotment {
        if self.of.len() >= MANY && !self.of.contains_key(principal) {
            self.of.retain(|_, allotment| {
                allotment.grow(now);
                allotment.left < MOST || allotment.lowered > 0
            });
        }
        let full = Allotment { left: MOST, at: now, lowered: 0 };
        let allotment = self.of.entry(principal.clone()).or_insert(full);
        allotment.grow(now);
        allotment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn short_checks_one_after_the_other_have_time_at_normal_priority() {
        let (mut allotments, who, begun) = (Allotments::default(), name("who"), Instant::now());
        let (each, used) = (Duration::from_millis(10), Duration::from_micros(900));
        for n in 0..1000 {
            let now = begun + each * n;
            let time = allotments.take(&who, now);
            assert!(time >= MOST / 4, "check {n} has {time:?}");
            allotments.give_back(&who, time - used, false, now + used);
        }
    }

    #[test]
    fn a_flood_uses_its_share_of_a_core_and_no_more() {
        let (mut allotments, begun) = (Allotments::default(), Instant::now());
        let (who, each) = (name("flood"), Duration::from_millis(5));
        let (mut at, mut used) = (begun, Duration::ZERO);
        while at - begun < Duration::from_secs(100) {
            let time = allotments.take(&who, at);
            at += each;
            used += each.min(time);
            allotments.give_back(&who, time.saturating_sub(each), false, at);
        }
        let share = used.as_secs_f64() / (at - begun).as_secs_f64();
        assert!((0.08..0.101).contains(&share), "{share}");
        // Another principal has all its time.
        assert_eq!(allotments.take(&name("other"), at), MOST / 2);
    }

    #[test]
    fn checks_at_once_share_the_time() {
        let (mut allotments, who, now) = (Allotments::default(), name("who"), Instant::now());
        let times: Vec<Duration> = (0..20).map(|_| allotments.take(&who, now)).collect();
        assert!(times.iter().sum::<Duration>() <= MOST);
        assert_eq!(times.last(), Some(&Duration::ZERO));
    }

    #[test]
    fn principals_with_all_their_time_are_forgotten() {
        let (mut allotments, mut now) = (Allotments::default(), Instant::now());
        for n in 0..10 * MANY {
            now += Duration::from_millis(1);
            let who = name(&n.to_string());
            let time = allotments.take(&who, now);
            allotments.give_back(&who, time - Duration::from_millis(1), false, now);
        }
        assert!(allotments.of.len() <= MANY, "{}", allotments.of.len());
    }

    #[test]
    fn a_check_that_has_used_its_time_keeps_the_next_ones_low_until_it_ends() {
        let (mut allotments, who, begun) = (Allotments::default(), name("who"), Instant::now());
        assert!(allotments.take(&who, begun) > LEAST);
        assert_eq!(allotments.lower(&who, begun), 1);
        let later = begun + Duration::from_secs(10);
        assert_eq!(allotments.take(&who, later), Duration::ZERO);
        allotments.give_back(&who, Duration::ZERO, true, later);
        assert_eq!(allotments.take(&who, later), MOST / 2);
    }
}
