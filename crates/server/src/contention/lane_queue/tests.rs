//! Tests of the order of lanes.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn principal() -> Arc<str> {
    "who".into()
}

#[test]
fn each_read_leaves_a_processor_and_a_cap_limits_the_lanes() {
    const FREE: f64 = f64::INFINITY;
    assert_eq!(max_lanes(8.0, 0, FREE), None);
    assert_eq!([1, 3, 7, 8, 99].map(|normal| max_lanes(8.0, normal, FREE)), [7, 5, 1, 1, 1].map(Some));
    assert_eq!([(0.1, 1), (1.5, 1), (f64::NAN, 1)].map(|(cores, n)| max_lanes(cores, n, FREE)), [Some(1); 3]);
    assert_eq!([0.0, 0.1, 1.0, 2.5].map(|rate| max_lanes(8.0, 0, rate)), [1, 1, 1, 3].map(Some));
    assert_eq!([1, 6, 8].map(|normal| max_lanes(8.0, normal, 2.5)), [3, 2, 1].map(Some));
}

#[test]
fn all_lanes_work_without_reads() {
    let (mut lanes, now) = (LaneQueue::default(), Instant::now());
    assert!((0..100).all(|lane| lanes.may_work(lane, &principal(), now, None)));
    // During a read all lanes but one leave at the ends of their blocks.
    let stays: Vec<bool> = (0..100).map(|lane| lanes.may_work(lane, &principal(), now, Some(1))).collect();
    assert_eq!(stays.iter().filter(|stays| **stays).count(), 1);
    assert!((0..100).all(|lane| lanes.may_work(lane, &principal(), now, None)));
    assert_eq!(lanes.count(), 0);
}

#[test]
fn waiting_lanes_have_their_turns_in_the_order_of_arrival() {
    let (mut lanes, mut now) = (LaneQueue::default(), Instant::now());
    assert!(lanes.may_work(0, &principal(), now, Some(1)));
    assert!(!lanes.may_work(1, &principal(), now, Some(1)) && !lanes.may_work(2, &principal(), now, Some(1)));
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
fn a_lane_that_waits_for_a_slow_reader_delays_no_other_lane() {
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
fn a_turn_is_short_while_another_principal_has_no_lane_at_work() {
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
    fn at_most_the_allowed_lanes_work_and_at_least_one(
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
