//! Choice of the lanes that may work. During reads and writes one processor is left to each of them. Under a cap as
//! many lanes work as the cap has processors.
//!
//! A low priority of lanes is not enough. A fair scheduler gives even the thread of lowest priority a whole time slice
//! now and then, which is longer than a read. So lanes wait at the ends of their blocks. Under a cap, lanes that take
//! turns block by block find the data of other lanes in the caches; a few lanes with longer turns do the same work in
//! half the time. Otherwise all lanes work.
//!
//! The next turn goes to a lane of the principal with the fewest lanes at work. So a small request of one principal
//! does not wait for all lanes of another.
//!
//! The caller passes the time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a lane works before a waiting lane has its turn.
const TURN: Duration = Duration::from_millis(50);

/// Time that a lane works while another principal without a lane at work waits: a small request needs a few turns on
/// each node.
const SHORT_TURN: Duration = Duration::from_millis(10);

/// Time without a call after which a lane no longer counts as at work: it waits for something else than a processor.
pub(super) const AWAY: Duration = Duration::from_millis(100);

/// Largest number of principals that are remembered without lanes at work or waiting.
const MOST_SERVED: usize = 64;

/// Number of a lane.
pub(super) type Lane = u64;

/// Lanes at work, and waiting lanes in the order of their arrival, each with its principal.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    lanes: HashMap<Lane, Turn>,
    queue: VecDeque<(Lane, Arc<str>)>,
    /// Number of the last turn of each principal.
    served: HashMap<Arc<str>, u64>,
    turns: u64,
}

#[derive(Debug)]
struct Turn {
    principal: Arc<str>,
    begun: Instant,
    heard: Instant,
}

/// Largest number of lanes that may work: at least one, or `None` for all. `normal`: reads and writes under way.
/// `rate`: cap in seconds of processor time per second, infinite without a cap.
pub(super) fn max_lanes(cores: f64, normal: u64, rate: f64) -> Option<usize> {
    let beside = (normal > 0).then(|| (cores.ceil() - normal as f64).max(1.0) as usize);
    let capped = rate.is_finite().then(|| rate.ceil().max(1.0) as usize);
    match (beside, capped) {
        (Some(beside), Some(capped)) => Some(beside.min(capped)),
        (beside, capped) => beside.or(capped),
    }
}

impl LaneQueue {
    /// Whether a lane of a principal may work now. Lanes call this when they begin, after each block, and while they
    /// wait. A lane that may not work is in the queue afterwards and calls again.
    pub fn may_work(&mut self, lane: Lane, principal: &Arc<str>, now: Instant, most: Option<usize>) -> bool {
        let turn = self.lanes.remove(&lane);
        let others = self.working(now);
        let goes = match (most, &turn) {
            (None, _) => true,
            (Some(most), Some(turn)) => {
                let worked = now.saturating_duration_since(turn.begun);
                let over = worked >= TURN && !self.queue.is_empty()
                    || worked >= SHORT_TURN && self.another_waits(&turn.principal, now);
                others < most && !(over && others + 1 == most)
            }
            (Some(most), None) => {
                self.join(lane, principal);
                let before = self.waiting(now).iter().position(|other| *other == lane);
                others.saturating_add(before.unwrap_or(0)) < most
            }
        };
        if !goes {
            self.join(lane, principal);
            return false;
        }
        self.queue.retain(|(other, _)| *other != lane);
        if turn.is_none() {
            self.serve(principal);
        }
        let begun = turn.map_or(now, |turn| turn.begun);
        self.lanes.insert(lane, Turn { principal: principal.clone(), begun, heard: now });
        true
    }

    /// Whether a lane of another principal without lanes at work waits.
    fn another_waits(&self, principal: &Arc<str>, now: Instant) -> bool {
        let at_work: HashSet<&str> = self.at_work(now).map(|turn| &*turn.principal).collect();
        self.queue.iter().any(|(_, other)| other != principal && !at_work.contains(&**other))
    }

    /// Records a turn of a principal.
    fn serve(&mut self, principal: &Arc<str>) {
        self.turns += 1;
        self.served.insert(principal.clone(), self.turns);
        if self.served.len() > MOST_SERVED {
            let (lanes, queue) = (&self.lanes, &self.queue);
            self.served.retain(|principal, _| {
                lanes.values().any(|turn| turn.principal == *principal)
                    || queue.iter().any(|(_, other)| other == principal)
            });
        }
    }

    /// Puts a lane at the end of the queue, unless the queue contains it.
    fn join(&mut self, lane: Lane, principal: &Arc<str>) {
        if self.queue.iter().all(|(other, _)| *other != lane) {
            self.queue.push_back((lane, principal.clone()));
        }
    }

    /// Whether this lane is at work, as far as its last call shows.
    pub fn works(&self, lane: Lane) -> bool {
        self.lanes.contains_key(&lane)
    }

    /// Removes a lane that ends or no longer waits.
    pub fn leave(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
        self.queue.retain(|(other, _)| *other != lane);
    }

    /// Whether a lane waits.
    pub fn is_crowded(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Number of waiting lanes.
    pub fn count(&self) -> usize {
        self.queue.len()
    }

    /// Waiting lanes in the order of their turns: first by the number of lanes of the same principal at work or before
    /// the lane, then by the last turn of the principal, then by arrival.
    pub fn waiting(&self, now: Instant) -> Vec<Lane> {
        let mut of_principal: HashMap<&str, usize> = HashMap::new();
        self.at_work(now).for_each(|turn| *of_principal.entry(&*turn.principal).or_default() += 1);
        let mut ranked = Vec::with_capacity(self.queue.len());
        for (lane, principal) in self.queue.iter() {
            let before = of_principal.entry(&**principal).or_default();
            ranked.push((*before, self.served.get(principal).copied().unwrap_or(0), *lane));
            *before += 1;
        }
        ranked.sort_by_key(|(before, served, _)| (*before, *served));
        ranked.into_iter().map(|(_, _, lane)| lane).collect()
    }

    /// Number of lanes at work.
    fn working(&self, now: Instant) -> usize {
        self.at_work(now).count()
    }

    /// Lanes at work.
    fn at_work(&self, now: Instant) -> impl Iterator<Item = &Turn> {
        self.lanes.values().filter(move |turn| now.saturating_duration_since(turn.heard) < AWAY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn principal() -> Arc<str> {
        "who".into()
    }

    #[test]
    fn a_processor_is_left_to_each_reader_and_one_to_lanes_and_a_cap_has_as_many_as_it_needs() {
        const FREE: f64 = f64::INFINITY;
        assert_eq!(max_lanes(8.0, 0, FREE), None);
        assert_eq!([1, 3, 7, 8, 99].map(|normal| max_lanes(8.0, normal, FREE)), [7, 5, 1, 1, 1].map(Some));
        assert_eq!(
            [(0.1, 1), (1.5, 1), (f64::NAN, 1)].map(|(cores, n)| max_lanes(cores, n, FREE)),
            [Some(1); 3]
        );
        assert_eq!([0.0, 0.1, 1.0, 2.5].map(|rate| max_lanes(8.0, 0, rate)), [1, 1, 1, 3].map(Some));
        assert_eq!([1, 6, 8].map(|normal| max_lanes(8.0, normal, 2.5)), [3, 2, 1].map(Some));
    }

    #[test]
    fn all_work_where_nobody_reads() {
        let (mut lanes, now) = (LaneQueue::default(), Instant::now());
        assert!((0..100).all(|lane| lanes.may_work(lane, &principal(), now, None)));
        // During a read all lanes but one leave at the ends of their blocks.
        let stays: Vec<bool> =
            (0..100).map(|lane| lanes.may_work(lane, &principal(), now, Some(1))).collect();
        assert_eq!(stays.iter().filter(|stays| **stays).count(), 1);
        assert!((0..100).all(|lane| lanes.may_work(lane, &principal(), now, None)));
        assert_eq!(lanes.count(), 0);
    }

    #[test]
    fn those_who_wait_have_their_turns_in_the_order_in_which_they_came() {
        let (mut lanes, mut now) = (LaneQueue::default(), Instant::now());
        assert!(lanes.may_work(0, &principal(), now, Some(1)));
        assert!(
            !lanes.may_work(1, &principal(), now, Some(1)) && !lanes.may_work(2, &principal(), now, Some(1))
        );
        let mut worked = Vec::new();
        for _ in 0..60 {
            now += 10 * MS;
            let at_work: Vec<Lane> =
                (0..3).filter(|lane| lanes.may_work(*lane, &principal(), now, Some(1))).collect();
            assert!(at_work.len() <= 1);
            worked.extend(at_work);
        }
        worked.dedup();
        assert!(worked.len() > 6, "{worked:?}");
        assert!(worked.windows(2).all(|two| two[1] == (two[0] + 1) % 3), "{worked:?}");
    }

    #[test]
    fn nobody_waits_for_a_lane_that_waits_for_a_slow_reader() {
        let (mut lanes, now) = (LaneQueue::default(), Instant::now());
        assert!(lanes.may_work(0, &principal(), now, Some(1)));
        assert!(!lanes.may_work(1, &principal(), now, Some(1)));
        assert!(lanes.may_work(1, &principal(), now + AWAY, Some(1)));
        // The lane returns, and waits like all others.
        assert!(!lanes.may_work(0, &principal(), now + AWAY, Some(1)));
        lanes.leave(1);
        assert!(lanes.may_work(0, &principal(), now + AWAY, Some(1)));
    }

    #[test]
    fn a_small_request_does_not_wait_for_all_lanes_of_another_principal() {
        let (mut lanes, mut now) = (LaneQueue::default(), Instant::now());
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        let principal_of = |lane: Lane| if lane < 100 { &greedy } else { &other };
        for lane in 0..16 {
            lanes.may_work(lane, principal_of(lane), now, Some(1));
        }
        let mut worked = Vec::new();
        for step in 0..200 {
            now += 10 * MS;
            // The small request arrives after some turns of the others.
            let small = if step < 20 { 0..0 } else { 100..102 };
            worked.extend(
                (0..16).chain(small).filter(|lane| lanes.may_work(*lane, principal_of(*lane), now, Some(1))),
            );
        }
        worked.dedup();
        let first = worked.iter().position(|lane| *lane >= 100).unwrap();
        assert!(first <= 6, "{worked:?}");
        // From then on each principal has every second turn, and both lanes of the small request have turns.
        assert!(worked[first..].windows(2).all(|two| (two[0] < 100) != (two[1] < 100)), "{worked:?}");
        assert!(worked.contains(&100) && worked.contains(&101));
        let greedy: HashSet<_> = worked.iter().filter(|lane| **lane < 100).collect();
        assert!(greedy.len() > 10, "{worked:?}");
    }

    #[test]
    fn a_turn_is_short_while_another_principal_has_none_at_work() {
        let (mut lanes, now) = (LaneQueue::default(), Instant::now());
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        assert!(lanes.may_work(0, &greedy, now, Some(1)));
        assert!(!lanes.may_work(1, &greedy, now, Some(1)));
        assert!(lanes.may_work(0, &greedy, now + SHORT_TURN, Some(1)));
        assert!(!lanes.may_work(2, &other, now + SHORT_TURN, Some(1)));
        assert!(!lanes.may_work(0, &greedy, now + SHORT_TURN, Some(1)));
        assert!(lanes.may_work(2, &other, now + SHORT_TURN, Some(1)));
    }

    proptest! {
        #[test]
        fn never_more_than_may_work_and_always_one(
            steps in prop::collection::vec((0u64..6, 0u64..4, 0u8..8), 1..300),
            most in 1usize..4,
        ) {
            let (mut lanes, mut now) = (LaneQueue::default(), Instant::now());
            let mut at_work = HashSet::new();
            for (lane, millis, what) in steps {
                now += 10 * MS * millis as u32;
                if what == 0 {
                    lanes.leave(lane);
                    at_work.remove(&lane);
                } else if lanes.may_work(lane, &principal(), now, Some(most)) {
                    at_work.insert(lane);
                } else {
                    at_work.remove(&lane);
                }
                prop_assert!(lanes.working(now) <= most);
                let waiting = lanes.waiting(now);
                prop_assert!(waiting.iter().all(|lane| !at_work.contains(lane)));
                // The first waiting lane may work at once if there is room.
                if let Some(first) = waiting.first().filter(|_| lanes.working(now) < most) {
                    prop_assert!(lanes.may_work(*first, &principal(), now, Some(most)));
                    at_work.insert(*first);
                }
            }
        }
    }
}
