//! Tests of the placement of active requests.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_runtime::Control;

use super::*;
use crate::ActivePriority;
use crate::contention::active::{ActiveList, Work};
use crate::contention::cap::Cap;
use crate::contention::normal::NormalCount;
use crate::contention::pace::FoldPace;
use crate::hand_off::HandOff;

/// Name of the node's processors.
const NODE_PROCESSORS: &str = "0123456789abcdef";

/// Filters of 128 MB at the paper's rates: 80 MB/s per core, 118 MB/s per link, one core.
fn verdicts(count: u32, objective: Objective, change: impl Fn(u32, &mut Work)) -> Vec<Verdict> {
    staying(count, objective, change, &HashSet::new())
}

/// The same decisions, but the requests with these numbers stay.
fn staying(
    count: u32,
    objective: Objective,
    change: impl Fn(u32, &mut Work),
    staying: &HashSet<u64>,
) -> Vec<Verdict> {
    let (list, cap) =
        (ActiveList::default(), Arc::new(Cap::new(1.0, 1.0, ActivePriority::Idle, NormalCount::default())));
    for number in 0..count {
        let work = Work::for_tests(128 << 20);
        let asker = work.asker.map(|asker| Asker { name: format!("{number}"), ..asker });
        let mut work =
            Work { kernel: "filter".into(), asker, from: Some(IpAddr::from([10, 0, 0, 1])), ..work };
        change(number, &mut work);
        list.add(work, Arc::new(HandOff::new(&Arc::new(Control::new()), FoldPace::for_tests(&cap))), 0.0);
    }
    let rates = Rates::new(80e6).unwrap();
    let situation = Situation {
        cores: 1.0,
        lanes: 1.0,
        link: 118e6,
        link_busy: 0.0,
        clients: HashMap::new(),
        peers: HashMap::from([(IpAddr::from([10, 0, 0, 2]), 15e6)]),
        machine: SharedProcessors {
            processors: Some(NODE_PROCESSORS.into()),
            cores: 1.0,
            usable: 1.0,
            used: 0.0,
        },
        sends: 1e9,
        objective,
    };
    decide(&list.all(), &rates, &situation, staying).unwrap()
}

#[test]
fn the_paper_s_filter_stays_alone_and_is_handed_back_in_a_crowd() {
    for (count, at_client) in [(1, false), (2, false), (8, true), (64, true)] {
        let verdicts = verdicts(count, Objective::Paper, |_, _| ());
        assert!(
            verdicts.iter().all(|one| (one.place == Place::Client) == at_client),
            "{count}: {verdicts:?}"
        );
    }
    // If both places work at once, some requests stay.
    let crowd = verdicts(64, Objective::Overlap, |_, _| ());
    let handed_back = crowd.iter().filter(|one| one.place == Place::Client).count();
    assert!((20..60).contains(&handed_back), "{handed_back}");
}

#[test]
fn nothing_is_handed_back_because_a_kernel_is_not_measured() {
    let one = verdicts(1, Objective::Overlap, |_, work| {
        if let Some(asker) = &mut work.asker {
            asker.rate = Some(400_000_000);
        }
    });
    assert_eq!(one[0].place, Place::Storage, "{one:?}");
}

#[test]
fn nothing_is_handed_back_to_a_client_on_the_same_processors() {
    for count in [1, 8, 64] {
        let crowd = verdicts(count, Objective::Overlap, |_, work| {
            if let Some(asker) = &mut work.asker {
                // The speed that the client states has no effect.
                (asker.processors, asker.rate, asker.lanes) =
                    (Some(NODE_PROCESSORS.into()), Some(u64::MAX), 64);
            }
        });
        assert!(crowd.iter().all(|one| one.place == Place::Storage), "{count}: {crowd:?}");
    }
    let others = verdicts(64, Objective::Overlap, |_, work| {
        if let Some(asker) = &mut work.asker {
            asker.processors = Some("fedcba9876543210".into());
        }
    });
    assert!(others.iter().any(|one| one.place == Place::Client));
}

#[test]
fn requests_of_several_passes_stay_on_the_node() {
    for objective in [Objective::Paper, Objective::Overlap] {
        let crowd = verdicts(64, objective, |number, work| work.several_passes = number % 2 == 0);
        let stays = |(number, one): (usize, &Verdict)| number % 2 == 1 || one.place == Place::Storage;
        assert!(crowd.iter().enumerate().all(stays), "{crowd:?}");
        assert!(crowd.iter().any(|one| one.place == Place::Client));
    }
}

#[test]
fn a_request_is_handed_back_instead_of_one_that_cannot_move() {
    for stays in 0..2 {
        let verdicts = staying(2, Objective::Overlap, |_, _| (), &HashSet::from([stays]));
        let places: Vec<Place> = verdicts.iter().map(|one| one.place).collect();
        let mut expected = [Place::Client; 2];
        expected[stays as usize] = Place::Storage;
        assert_eq!(places, expected);
    }
}

#[test]
fn requests_without_a_client_stay() {
    for objective in [Objective::Paper, Objective::Overlap] {
        let verdicts = verdicts(32, objective, |number, work| {
            work.asker = work.asker.take().filter(|_| number % 2 == 0);
        });
        assert!(verdicts.iter().skip(1).step_by(2).all(|one| one.place == Place::Storage));
    }
}

#[test]
fn a_client_with_a_slow_link_is_handed_back_less() {
    let handed_back = |verdicts: &[Verdict]| verdicts.iter().filter(|one| one.place == Place::Client).count();
    let measured = |last: u8| {
        verdicts(16, Objective::Overlap, move |_, work| {
            work.from = Some(IpAddr::from([10, 0, 0, last]));
            // A measurement counts more than the speed that the client states.
            if let Some(asker) = &mut work.asker {
                (asker.name, asker.link) = ("one".into(), Some(118_000_000));
            }
        })
    };
    let (fast, slow) = (measured(1), measured(2));
    assert!(handed_back(&slow) < handed_back(&fast), "{} of {}", handed_back(&slow), handed_back(&fast));
}

#[test]
fn a_false_rate_counts_for_at_most_a_client_that_is_eight_times_as_fast() {
    let lies = |stated: u64| {
        verdicts(16, Objective::Overlap, move |_, work| {
            if let Some(asker) = &mut work.asker {
                (asker.rate, asker.lanes) = (Some(stated), 1);
            }
        })
    };
    assert_eq!(lies(u64::MAX), lies(640_000_000));
    assert_eq!(lies(0), lies(9_000_000));
}
