//! Processor time that lanes may use at normal priority, for each principal.
//!
//! A small request should take little time also while other programs, or folds of other principals, keep all processors
//! busy. So the lanes of a principal that used little time lately begin at normal priority, and continue so until they
//! have used its allotment. The allotments of all principals together grow by [`SHARE`] of the processors. So reads and
//! writes lose no more than this over a longer time, apart from what the first use of each allotment and long blocks
//! take. It goes in equal parts to the principals whose allotments are not whole.
//!
//! The caller passes the time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A whole allotment: most processor time that the lanes of one principal may use at normal priority at once.
const WHOLE: Duration = Duration::from_millis(50);

/// Share of the processors by which all allotments together grow.
pub(super) const SHARE: f64 = 0.1;

/// Most used time that is remembered for a principal. A single block may take long.
const MOST_REMEMBERED: Duration = Duration::from_secs(60);

/// Largest number of principals whose allotments are not whole. Lanes of others have no time at normal priority.
const MAX_PRINCIPALS: usize = 1024;

/// The allotments of all principals.
#[derive(Debug)]
pub(super) struct LaneAllotments {
    cores: f64,
    at: Instant,
    /// Seconds by which an allotment that was never whole would have grown so far.
    grown: f64,
    /// Other allotments are whole, and no lane uses them.
    of: HashMap<Arc<str>, Allotment>,
}

#[derive(Debug)]
struct Allotment {
    /// The value of `grown` at which it is whole again.
    whole_at: f64,
    /// Lanes that use it. There are at most as many as processors, because each may have begun a long block.
    lanes: usize,
}

impl LaneAllotments {
    pub fn new(cores: f64, now: Instant) -> LaneAllotments {
        LaneAllotments { cores, at: now, grown: 0.0, of: HashMap::new() }
    }

    /// Sets the number of processors that this process may use.
    pub fn set_cores(&mut self, cores: f64) {
        self.cores = cores;
    }

    /// Whether a lane of this principal may begin at normal priority. It may do so until [`spend`](Self::spend) returns
    /// false or [`end`](Self::end) is called.
    pub fn begin(&mut self, principal: &Arc<str>, now: Instant) -> bool {
        self.grow(now);
        if self.of.len() >= MAX_PRINCIPALS && !self.of.contains_key(principal) {
            return false;
        }
        let most = self.most_lanes();
        let whole = Allotment { whole_at: self.grown, lanes: 0 };
        let allotment = self.of.entry(principal.clone()).or_insert(whole);
        let may = allotment.lanes < most && allotment.has_some(self.grown);
        allotment.lanes += usize::from(may);
        may
    }

    /// Whether a lane of this principal should rise to normal priority: half of the allotment has grown again.
    pub fn may_rise(&mut self, principal: &Arc<str>, now: Instant) -> bool {
        self.grow(now);
        let Some(allotment) = self.of.get(principal) else { return self.of.len() < MAX_PRINCIPALS };
        allotment.lanes < self.most_lanes() && allotment.whole_at - self.grown < WHOLE.as_secs_f64() / 2.0
    }

    /// Most lanes of a principal at normal priority.
    fn most_lanes(&self) -> usize {
        self.cores.ceil().max(1.0) as usize
    }

    /// Subtracts processor time that such a lane used. Returns whether it may continue at normal priority.
    pub fn spend(&mut self, principal: &Arc<str>, used: Duration, now: Instant) -> bool {
        self.grow(now);
        let Some(allotment) = self.of.get_mut(principal) else { return false };
        let most = self.grown + MOST_REMEMBERED.as_secs_f64();
        allotment.whole_at = (allotment.whole_at.max(self.grown) + used.as_secs_f64()).min(most);
        let may = allotment.has_some(self.grown);
        if !may {
            allotment.lanes = allotment.lanes.saturating_sub(1);
        }
        may
    }

    /// Such a lane ends, after it used this time.
    pub fn end(&mut self, principal: &Arc<str>, used: Duration, now: Instant) {
        if self.spend(principal, used, now)
            && let Some(allotment) = self.of.get_mut(principal)
        {
            allotment.lanes = allotment.lanes.saturating_sub(1);
        }
    }

    fn grow(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.grown += passed * self.cores * SHARE / self.of.len().max(1) as f64;
        self.of.retain(|_, allotment| allotment.lanes > 0 || allotment.whole_at > self.grown);
    }
}

impl Allotment {
    fn has_some(&self, grown: f64) -> bool {
        self.whole_at - grown < WHOLE.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    /// Lanes of these principals take turns, each for a millisecond. Returns the seconds that each used in `time`.
    fn floods(allotments: &mut LaneAllotments, who: &[Arc<str>], begun: Instant, time: Duration) -> Vec<f64> {
        let (mut now, mut used) = (begun, vec![0.0; who.len()]);
        while now < begun + time {
            for (who, used) in who.iter().zip(&mut used) {
                now += MS;
                if allotments.begin(who, now) {
                    *used += MS.as_secs_f64();
                    allotments.end(who, MS, now);
                }
            }
        }
        used
    }

    #[test]
    fn all_principals_together_use_their_share_and_each_an_equal_part() {
        const CORES: f64 = 4.0;
        let begun = Instant::now();
        for count in [1, 3, 10] {
            let who: Vec<_> = (0..count).map(|n| name(&n.to_string())).collect();
            let time = Duration::from_secs(100);
            let used = floods(&mut LaneAllotments::new(CORES, begun), &who, begun, time);
            let at_first = WHOLE.as_secs_f64() * count as f64;
            let most = time.as_secs_f64() * CORES * SHARE + at_first;
            let all: f64 = used.iter().sum();
            assert!((0.98 * most..=1.01 * most).contains(&all), "{count}: {all} of {most}");
            assert!(used.iter().all(|each| (each * count as f64 / all - 1.0).abs() < 0.02), "{used:?}");
        }
    }

    #[test]
    fn small_requests_beside_a_flood_are_always_at_normal_priority() {
        let begun = Instant::now();
        let (mut allotments, flood, who) = (LaneAllotments::new(2.0, begun), name("flood"), name("who"));
        let mut now = begun;
        for request in 0..200 {
            floods(&mut allotments, std::slice::from_ref(&flood), now, 100 * MS);
            now += 100 * MS;
            assert!(allotments.begin(&who, now), "request {request}");
            for _ in 0..8 {
                assert!(allotments.spend(&who, MS, now), "request {request}");
            }
            allotments.end(&who, MS, now);
        }
    }

    #[test]
    fn a_long_fold_rises_once_half_of_the_allotment_has_grown() {
        let begun = Instant::now();
        let (mut allotments, who) = (LaneAllotments::new(2.0, begun), name("who"));
        assert!(allotments.may_rise(&who, begun));
        assert!(allotments.begin(&who, begun) && !allotments.spend(&who, WHOLE, begun));
        let half = begun + (WHOLE / 2).mul_f64(1.0 / (2.0 * SHARE));
        assert!(!allotments.may_rise(&who, half - MS) && allotments.may_rise(&who, half + MS));
        // Both lanes of two processors have risen.
        assert!(allotments.begin(&who, half + MS) && allotments.begin(&who, half + MS));
        assert!(!allotments.may_rise(&who, half + MS));
    }

    #[test]
    fn a_long_block_is_paid_for_but_not_for_ever() {
        let begun = Instant::now();
        let (mut allotments, who) = (LaneAllotments::new(1.0, begun), name("who"));
        assert!(allotments.begin(&who, begun));
        assert!(!allotments.spend(&who, Duration::from_secs(1000), begun));
        let paid = begun + MOST_REMEMBERED.mul_f64(1.0 / SHARE);
        assert!(!allotments.begin(&who, paid - Duration::from_secs(1)));
        assert!(allotments.begin(&who, paid));
        assert!(!allotments.spend(&who, WHOLE + MS, paid));
    }

    #[test]
    fn a_principal_has_as_many_lanes_at_normal_priority_as_there_are_processors() {
        let begun = Instant::now();
        for (cores, most) in [(0.0, 1), (0.5, 1), (2.0, 2), (2.5, 3)] {
            let (mut allotments, who) = (LaneAllotments::new(cores, begun), name("who"));
            let begin =
                |allotments: &mut LaneAllotments| (0..10).filter(|_| allotments.begin(&who, begun)).count();
            assert_eq!(begin(&mut allotments), most, "{cores} cores");
            allotments.end(&name("who"), MS, begun);
            assert_eq!(begin(&mut allotments), 1, "after one has ended");
            // All of them have used the allotment, and are no longer counted.
            assert!((0..most).all(|_| !allotments.spend(&name("who"), WHOLE, begun)));
            assert!(allotments.of.values().all(|allotment| allotment.lanes == 0));
            assert_eq!(begin(&mut allotments), 0, "none is left");
        }
    }

    #[test]
    fn principals_with_whole_allotments_are_forgotten_and_their_number_is_bounded() {
        let begun = Instant::now();
        let mut allotments = LaneAllotments::new(1.0, begun);
        let lane = |allotments: &mut LaneAllotments, who: &str, now: Instant| {
            let began = allotments.begin(&name(who), now);
            allotments.end(&name(who), MS, now);
            began
        };
        assert!((0..MAX_PRINCIPALS).all(|n| lane(&mut allotments, &n.to_string(), begun)));
        assert!(!lane(&mut allotments, "one more", begun));
        assert!(lane(&mut allotments, "0", begun));
        assert!(lane(&mut allotments, "one more", begun + Duration::from_secs(1000)));
        assert_eq!(allotments.of.len(), 1);
    }
}
