//! When work that runs is moved.

use gristmill_schedule::{LEAST_GAIN, LEAST_SHARE, MAX_MOVES, Place, Revision, SETTLE};
use proptest::prelude::*;

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..100.0, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(1e300)]
}

proptest! {
    #[test]
    fn noise_never_moves_a_work_often_or_back(
        start in 0..3_usize, heard in prop::collection::vec((0.0..10.0, prop::array::uniform4(seconds())), 0..500),
    ) {
        let mut work = Revision::new(Place::ALL[start], 0.0);
        let (mut now, mut been, mut since) = (0.0, vec![work.place()], 0.0);
        for (later, [stays, others @ ..]) in heard {
            now += later;
            let others: Vec<(Place, f64)> = Place::ALL.into_iter().zip(others).collect();
            let Some(place) = work.consider(now, stays, &others) else { continue };
            let gain = stays - others[place.number()].1;
            prop_assert!(gain > LEAST_GAIN && gain > LEAST_SHARE * stays && now - since >= SETTLE);
            prop_assert!(!been.contains(&place));
            work.moved(now, place);
            been.push(place);
            since = now;
        }
        prop_assert!(work.moves() <= MAX_MOVES);
        prop_assert_eq!(work.moves() as usize, been.len() - 1);
        prop_assert_eq!(work.place(), been[been.len() - 1]);
    }
}

#[test]
fn a_large_gain_that_lasts_moves_it() {
    let mut work = Revision::new(Place::Storage, 100.0);
    let others = [(Place::Data, 21.0), (Place::Client, 20.0)];
    assert_eq!(work.consider(100.0 + SETTLE / 2.0, 60.0, &others), None);
    let place = work.consider(100.0 + SETTLE, 60.0, &others);
    assert_eq!(place, Some(Place::Client));
    work.moved(100.0 + SETTLE, Place::Client);
    assert_eq!((work.place(), work.moves()), (Place::Client, 1));
    // Not back, whatever is promised.
    assert_eq!(work.consider(200.0, 60.0, &[(Place::Storage, 0.0)]), None);
    assert_eq!(work.consider(200.0, 60.0, &[(Place::Data, 1.0)]), Some(Place::Data));
}

#[test]
fn little_is_not_worth_a_move() {
    let work = Revision::new(Place::Storage, 0.0);
    let to = |stays, seconds| work.consider(10.0, stays, &[(Place::Client, seconds)]);
    assert_eq!(to(0.4, 0.0), None); // all of it, but less than half a second
    assert_eq!(to(100.0, 80.0), None); // twenty seconds, but a fifth
    assert_eq!(to(100.0, 70.0), Some(Place::Client));
    assert_eq!(to(f64::NAN, 1.0), None);
    assert_eq!(to(100.0, f64::NAN), None);
}
