//! Tests of the pace of folds.

use super::*;

#[test]
fn a_piece_takes_as_long_as_other_lanes_may_wait() {
    let micros = Duration::from_micros;
    // A slow kernel: 60 us for a position.
    assert_eq!(next_piece(64, 64, 64 * micros(60)), 3);
    assert_eq!(next_piece(3, 3, 3 * micros(60)), 3);
    assert_eq!(next_piece(3, 3, 3 * micros(6000)), 1);
    // A fast kernel reaches whole blocks soon.
    let mut piece = FIRST_PIECE;
    for _ in 0..8 {
        piece = next_piece(piece, piece.min(32_768), Duration::ZERO);
    }
    assert!(piece > 1 << 20, "{piece}");
    assert!(next_piece(1 << 40, 32_768, micros(20)) < 1 << 20);
    assert_eq!(next_piece(u64::MAX, 0, micros(200)), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_lane_is_idle_once_the_allotment_of_its_principal_is_used() {
    use gristmill_runtime::thread_time;

    use crate::contention::normal::NormalCount;
    use crate::contention::priority::{ActivePriority, nice_and_policy};

    const NORMAL: Option<i32> = Some(0);
    const IDLE: Option<i32> = Some(5);

    // Without processors the allotments do not grow.
    let cap = Arc::new(Cap::new(1.0, 0.0, ActivePriority::Idle, NormalCount::default()));
    let lane = |who: &str, milliseconds: u64| {
        let pace = FoldPace::new(cap.clone(), Memory::new(1 << 20, "tests"), who.into());
        std::thread::spawn(move || {
            let policy = || nice_and_policy("thread-self")[1];
            let go_on = |lowers| {
                if lowers {
                    pace.lower(&|| false);
                }
            };
            go_on(pace.begins(&|| false));
            let mut seen = vec![policy()];
            for millisecond in 1..=milliseconds {
                while thread_time() < Duration::from_millis(millisecond) {}
                go_on(pace.folded(1, &|| false));
                seen.push(policy());
            }
            pace.ends();
            seen
        })
        .join()
    };
    let first = lane("who", 60).unwrap_or_default();
    assert_eq!((first[0], first[40], first[60]), (NORMAL, NORMAL, IDLE), "{first:?}");
    // The next lane has none left. That of another principal has.
    assert!(lane("who", 1).is_ok_and(|seen| seen.iter().all(|policy| *policy == IDLE)));
    assert!(lane("other", 1).is_ok_and(|seen| seen[0] == NORMAL));
}

#[test]
#[cfg(target_os = "linux")]
fn a_lane_without_an_allotment_waits_for_it_if_other_programs_take_the_processors() {
    use crate::contention::normal::NormalCount;
    use crate::contention::priority::ActivePriority;

    let begins = |spent: Duration, starved: bool, stopped: bool| {
        let cap = Cap::new(1.0, 2.0, ActivePriority::Idle, NormalCount::default());
        if starved {
            cap.starvation.note(Finding::Starves, Instant::now());
        }
        let who = Arc::from("who");
        assert!(cap.begin_allotment(&who) && !cap.spend_allotment(&who, spent));
        let pace = FoldPace::new(Arc::new(cap), Memory::new(1 << 20, "tests"), who);
        std::thread::spawn(move || {
            let lowers = pace.begins(&|| stopped);
            (lowers, is_normal())
        })
        .join()
        .ok()
    };
    let (little, much) = (Duration::from_millis(60), Duration::from_secs(60));
    assert_eq!(begins(much, false, false), Some((true, true)), "it would not starve at low priority");
    assert_eq!(begins(little, true, false), Some((false, true)), "it has an allotment again");
    assert_eq!(begins(much, true, true), Some((true, true)), "it was stopped");
}

#[test]
#[cfg(target_os = "linux")]
fn a_lane_does_not_wait_for_an_allotment_after_a_processor_was_free() {
    use std::sync::atomic::AtomicU64;

    use crate::contention::normal::NormalCount;
    use crate::contention::priority::ActivePriority;

    let cap = Arc::new(Cap::new(1.0, 2.0, ActivePriority::Idle, NormalCount::default()));
    cap.starvation.note(Finding::Starves, Instant::now());
    let who = Arc::from("who");
    assert!(cap.begin_allotment(&who) && !cap.spend_allotment(&who, Duration::from_secs(60)));
    let pace = FoldPace::new(cap.clone(), Memory::new(1 << 20, "tests"), who);
    let asked = AtomicU64::new(0);
    let lowers = pace.begins(&|| {
        asked.fetch_add(1, Ordering::Relaxed);
        cap.starvation.note_free_processor();
        false
    });
    assert!(lowers && asked.load(Ordering::Relaxed) == 1, "{asked:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_lane_rises_if_it_starves_and_the_allotment_has_grown() {
    use crate::contention::normal::NormalCount;
    use crate::contention::priority::ActivePriority;

    let may_rise = |lowered: bool, starved: bool, limited: bool, spent: Duration| {
        let cap = Cap::new(1.0, 2.0, ActivePriority::Idle, NormalCount::default());
        if starved {
            cap.starvation.note(Finding::Starves, Instant::now());
        }
        cap.starvation.set_limited(limited);
        let who = Arc::from("who");
        assert!(cap.begin_allotment(&who));
        cap.end_allotment(&who, spent);
        let pace = FoldPace::new(Arc::new(cap), Memory::new(1 << 20, "tests"), who);
        std::thread::spawn(move || {
            if lowered {
                pace.lower(&|| false);
            }
            pace.may_rise()
        })
        .join()
        .ok()
    };
    let (little, much) = (Duration::from_millis(1), Duration::from_secs(60));
    assert_eq!(may_rise(true, true, false, little), Some(true));
    assert_eq!(may_rise(false, true, false, little), Some(false), "it has normal priority");
    assert_eq!(may_rise(true, false, false, little), Some(false), "it does not starve");
    assert_eq!(may_rise(true, true, true, little), Some(false), "it may wait for its quota");
    assert_eq!(may_rise(true, true, false, much), Some(false), "its allotment is used");
}
