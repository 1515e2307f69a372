//! Processor time that the checks of each principal may use at normal priority.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most processor time of the checks of one principal at once, after a time without checks.
pub(super) const MOST: Duration = Duration::from_millis(50);

/// Processor time that a check takes at once. All checks that run at normal priority can have one.
pub(super) const LOAN: Duration = Duration::from_millis(5);

/// Part of one core that the checks of a principal may use over a longer time.
const SHARE: f64 = 0.1;

/// Above this number, principals that have all their time are forgotten.
const MANY: usize = 1024;

/// The time that each principal has left. It grows by [`SHARE`] of the time that passes, up to [`MOST`].
#[derive(Default)]
pub(super) struct Allotments {
    of: HashMap<Arc<str>, Allotment>,
    /// Running checks that have used their time.
    lowered: usize,
}

struct Allotment {
    /// Seconds. Negative if checks used more than they had taken, at most by [`MOST`].
    left: f64,
    at: Instant,
    /// Running checks of the principal that have used their time.
    lowered: usize,
}

impl Allotment {
    fn add(&mut self, seconds: f64) {
        let most = MOST.as_secs_f64();
        self.left = (self.left + seconds).clamp(-most, most);
    }

    fn grow(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at);
        self.add(since.as_secs_f64() * SHARE);
        self.at = now;
    }

    fn is_full(&self) -> bool {
        self.left >= MOST.as_secs_f64() && self.lowered == 0
    }
}

impl Allotments {
    /// Takes [`LOAN`] of the time of a principal. Returns false if less is left, or while a check of this principal runs
    /// that has used its time.
    pub fn take(&mut self, principal: &Arc<str>, now: Instant) -> bool {
        let allotment = self.of(principal, now);
        let has = allotment.left >= LOAN.as_secs_f64() && allotment.lowered == 0;
        if has {
            allotment.left -= LOAN.as_secs_f64();
        }
        has
    }

    /// A check of this principal has used its time and goes on. Returns the number of all such checks.
    pub fn lower(&mut self, principal: &Arc<str>, now: Instant) -> usize {
        self.of(principal, now).lowered += 1;
        self.lowered += 1;
        self.lowered
    }

    /// A check ends that had taken some time and used some at normal priority. `lowered`: it went on after that.
    pub fn settle(
        &mut self,
        principal: &Arc<str>,
        taken: Duration,
        used: Duration,
        lowered: bool,
        now: Instant,
    ) {
        let allotment = self.of(principal, now);
        allotment.add(taken.as_secs_f64() - used.as_secs_f64());
        if lowered {
            allotment.lowered = allotment.lowered.saturating_sub(1);
            self.lowered = self.lowered.saturating_sub(1);
        }
    }

    fn of(&mut self, principal: &Arc<str>, now: Instant) -> &mut Allotment {
        if self.of.len() >= MANY && !self.of.contains_key(principal) {
            self.of.retain(|_, allotment| {
                allotment.grow(now);
                !allotment.is_full()
            });
        }
        let full = Allotment { left: MOST.as_secs_f64(), at: now, lowered: 0 };
        let allotment = self.of.entry(principal.clone()).or_insert(full);
        allotment.grow(now);
        allotment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_CHECKS;

    const MS: Duration = Duration::from_millis(1);

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn short_checks_one_after_the_other_have_time_at_normal_priority() {
        let (mut allotments, who, begun) = (Allotments::default(), name("who"), Instant::now());
        for n in 0..1000 {
            let now = begun + 10 * MS * n;
            assert!(allotments.take(&who, now), "check {n}");
            allotments.settle(&who, LOAN, 9 * MS / 10, false, now + MS);
        }
    }

    #[test]
    fn a_flood_uses_its_share_of_a_core_and_no_more() {
        for each in [MS, 4 * MS, 9 * MS] {
            let (mut allotments, begun) = (Allotments::default(), Instant::now());
            let (who, mut at, mut used) = (name("flood"), begun, Duration::ZERO);
            while at - begun < Duration::from_secs(100) {
                if allotments.take(&who, at) {
                    // A look at its time comes late, so it uses more than it has.
                    used += each;
                    allotments.settle(&who, LOAN, each, false, at + each);
                }
                at += each;
            }
            let share = used.as_secs_f64() / (at - begun).as_secs_f64();
            assert!((0.09..0.101).contains(&share), "{each:?}: {share}");
            // Another principal has all its time.
            assert!(allotments.take(&name("other"), at));
        }
    }

    #[test]
    fn all_checks_at_normal_priority_have_time_at_once() {
        let (mut allotments, who, now) = (Allotments::default(), name("who"), Instant::now());
        assert!((0..MAX_CHECKS).all(|_| allotments.take(&who, now)));
        let more = (0..100).filter(|_| allotments.take(&who, now)).count();
        assert!(LOAN * u32::try_from(MAX_CHECKS + more).unwrap_or(u32::MAX) <= MOST);
    }

    #[test]
    fn a_check_that_has_used_its_time_keeps_the_next_ones_low_until_it_ends() {
        let (mut allotments, who, begun) = (Allotments::default(), name("who"), Instant::now());
        assert!(allotments.take(&who, begun));
        assert_eq!(allotments.lower(&who, begun), 1);
        let later = begun + Duration::from_secs(10);
        assert!(!allotments.take(&who, later));
        allotments.settle(&who, LOAN, LOAN, true, later);
        assert!(allotments.take(&who, later));
        assert_eq!(allotments.lower(&name("other"), later), 1);
    }

    #[test]
    fn principals_with_all_their_time_are_forgotten() {
        let (mut allotments, mut now) = (Allotments::default(), Instant::now());
        for n in 0..10 * MANY {
            now += MS;
            let who = name(&n.to_string());
            assert!(allotments.take(&who, now));
            allotments.settle(&who, LOAN, MS, false, now);
        }
        assert!(allotments.of.len() <= MANY, "{}", allotments.of.len());
    }
}
