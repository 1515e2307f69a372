//! Tests of the cap of active work.

use std::sync::atomic::AtomicBool;

use gristmill_runtime::Pace;

use super::*;
use crate::contention::pace::FoldPace;

#[test]
fn a_share_is_kept_over_time() {
    let cap = Cap::new(0.25, 4.0, ActivePriority::Low, NormalCount::default());
    let begin = cap.state().at;
    let (mut now, mut used) = (begin, 0.0_f64);
    // Blocks of 30 ms, each with its wait.
    while now < begin + Duration::from_secs(60) {
        let mut state = cap.state();
        now += Duration::from_millis(30);
        used += 0.03;
        let mut wait = cap.charge(&mut state, 0.03, now);
        while let Some(time) = wait {
            now += time;
            wait = cap.charge(&mut state, 0.0, now);
        }
    }
    // A quarter of four cores is one lane.
    assert!((used - 60.0).abs() < 0.5, "{used}");
    let mut state = cap.state();
    assert!(cap.charge(&mut state, 10.0, now).is_some());
}

#[test]
fn a_full_share_never_waits_and_no_share_always_waits() {
    let cap = |share| Cap::new(share, 2.0, ActivePriority::Low, NormalCount::default());
    let now = Instant::now();
    let all = cap(1.0);
    assert_eq!(all.charge(&mut all.state(), 1e9, now), None);
    let none = cap(0.0);
    assert_eq!(none.charge(&mut none.state(), 0.001, now + Duration::from_secs(9)), Some(CHECK_EVERY));
}

#[test]
fn a_share_follows_the_number_of_processors() {
    let cap = Cap::new(0.5, 2.0, ActivePriority::Low, NormalCount::default());
    let now = cap.state().at;
    assert_eq!(cap.charge(&mut cap.state(), 0.01, now), Some(Duration::from_millis(10) + REFILL));
    cap.set_cores(0.5);
    assert_eq!(cap.charge(&mut cap.state(), 0.0, now), Some(Duration::from_millis(40) + REFILL));
}

#[test]
fn lanes_give_way_to_a_read_and_all_go_on_after_it() {
    const LANES: usize = 8;
    let normal = NormalCount::default();
    let cap = Arc::new(Cap::new(1.0, 2.0, ActivePriority::Idle, normal.clone()));
    let read = normal.begin();
    // Lanes that have an allotment need no turns.
    let who = Arc::from("who");
    assert!(cap.begin_allotment(&who) && !cap.spend_allotment(&who, Duration::from_secs(60)));
    let stop = AtomicBool::new(false);
    let blocks: [AtomicUsize; LANES] = Default::default();
    std::thread::scope(|scope| {
        for count in &blocks {
            let (cap, stop) = (&cap, &stop);
            scope.spawn(move || {
                let pace = FoldPace::for_tests(cap);
                let stopped = || stop.load(Ordering::Relaxed);
                if pace.begins(&stopped) {
                    pace.lower(&stopped);
                }
                while !stopped() {
                    count.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    pace.folded(1, &stopped);
                }
                pace.ends();
            });
        }
        // All lanes have turns during the read.
        while blocks.iter().any(|count| count.load(Ordering::Relaxed) == 0) {
            std::thread::yield_now();
        }
        drop(read);
        let before: Vec<usize> = blocks.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let goes_on = |(count, before): (&AtomicUsize, &usize)| count.load(Ordering::Relaxed) > *before;
        while !blocks.iter().zip(&before).all(goes_on) {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(cap.waiting.load(Ordering::Relaxed), 0);
    assert_eq!(cap.turns().lanes.count(), 0);
}
