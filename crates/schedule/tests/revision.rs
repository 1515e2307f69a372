//! Moves of running work.

use gristmill_schedule::{
    BEGINNING_SECONDS, LEAST_GAIN, LEAST_SHARE, MAX_MOVES, Place, Revision, SETTLE_SECONDS,
};
use proptest::prelude::*;

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..100.0, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(1e300)]
}

proptest! {
    #[test]
    fn noise_does_not_move_work_often_or_back(
        start in 0..3_usize, predictions in prop::collection::vec((0.0..10.0, prop::array::uniform4(seconds())), 0..500),
    ) {
        let mut work = Revision::new(Place::ALL[start], 0.0);
        let (mut now, mut visited, mut since) = (0.0, vec![work.place()], 0.0);
        for (later, [stays, others @ ..]) in predictions {
            now += later;
            let others: Vec<(Place, f64)> = Place::ALL.into_iter().zip(others).collect();
            let Some(place) = work.consider(now, stays, &others) else { continue };
            let gain = stays - others[place.number()].1;
            if work.moves() == 0 && now < BEGINNING_SECONDS {
                prop_assert!(gain > 0.0);
            } else {
                prop_assert!(gain > LEAST_GAIN && gain > LEAST_SHARE * stays && now - since >= SETTLE_SECONDS);
            }
            prop_assert!(!visited.contains(&place));
            work.moved(now, place);
            visited.push(place);
            since = now;
        }
        prop_assert!(work.moves() <= MAX_MOVES);
        prop_assert_eq!(work.moves() as usize, visited.len() - 1);
        prop_assert_eq!(work.place(), visited[visited.len() - 1]);
    }
}

#[test]
fn a_large_gain_moves_work() {
    let mut work = Revision::new(Place::Storage, 100.0);
    let others = [(Place::Data, 21.0), (Place::Client, 20.0)];
    assert_eq!(work.consider(100.0 + SETTLE_SECONDS / 2.0, 60.0, &others), None);
    let place = work.consider(100.0 + SETTLE_SECONDS, 60.0, &others);
    assert_eq!(place, Some(Place::Client));
    work.moved(100.0 + SETTLE_SECONDS, Place::Client);
    assert_eq!((work.place(), work.moves()), (Place::Client, 1));
    // It never moves back, for any gain.
    assert_eq!(work.consider(200.0, 60.0, &[(Place::Storage, 0.0)]), None);
    assert_eq!(work.consider(200.0, 60.0, &[(Place::Data, 1.0)]), Some(Place::Data));
}

#[test]
fn work_that_has_only_begun_moves_for_a_small_gain() {
    let mut work = Revision::new(Place::Storage, 10.0);
    let begun = 10.0 + BEGINNING_SECONDS / 2.0;
    assert_eq!(work.consider(begun, 0.5, &[(Place::Client, 0.5)]), None);
    assert_eq!(work.consider(begun, 0.5, &[(Place::Client, 0.4)]), Some(Place::Client));
    assert_eq!(work.consider(10.0 + 2.0 * BEGINNING_SECONDS, 0.5, &[(Place::Client, 0.4)]), None);
    // At its second place it has not only begun.
    work.moved(begun, Place::Client);
    assert!(!work.may_move(begun));
}

#[test]
fn a_small_gain_does_not_move_work() {
    let work = Revision::new(Place::Storage, 0.0);
    let to = |stays, seconds| work.consider(10.0, stays, &[(Place::Client, seconds)]);
    assert_eq!(to(0.4, 0.0), None); // all of the time, but less than half a second
    assert_eq!(to(100.0, 80.0), None); // twenty seconds, but only a fifth of the time
    assert_eq!(to(100.0, 70.0), Some(Place::Client));
    assert_eq!(to(f64::NAN, 1.0), None);
    assert_eq!(to(100.0, f64::NAN), None);
}
