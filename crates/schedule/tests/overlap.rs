#![allow(clippy::unwrap_used, clippy::expect_used)] // the drawn problems are valid by construction

//! The objective of overlapping resources, compared with all choices and with its bound.

use gristmill_schedule::overlap::{Plan, solve};
use gristmill_schedule::{Choice, Place, Problem, ScheduleError, Use};
use proptest::prelude::*;

/// Relative difference by rounding of sums in another order.
const NEARLY: f64 = 1e-12;

/// Largest gap of the queues below by their length, rounded up. The documentation of
/// [`overlap`](gristmill_schedule::overlap) states these gaps.
const WORST: [(usize, f64); 3] = [(100, 0.15), (1000, 0.02), (10_000, 0.01)];

type Options = [Option<(Vec<Use>, f64)>; 3];

/// Makes a queue of two storage nodes, a data node and some clients, with mixed kernels, sizes and answers. Some works
/// cannot run at all places. Some use one core only.
fn queue(works: usize, clients: u32, seed: u64) -> (Vec<f64>, Vec<Options>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let busy = (0..6 + 2 * clients).map(|_| if rng.bool() { 0.0 } else { rng.f64() * works as f64 / 10.0 });
    let busy = busy.collect();
    let [data_cores, data_link] = [4, 5];
    let options = |_| {
        let node = 2 * rng.u32(0..2);
        let client = 6 + 2 * rng.u32(0..clients);
        let bytes = f64::from(16 << rng.u32(0..5)) * (0.9 + 0.2 * rng.f64());
        let rate = [860.0, 300.0, 80.0][rng.usize(0..3)];
        let answer = bytes * [0.0, 0.01, 0.3][rng.usize(0..3)];
        let one = |resource: u32, seconds: f64| Use { resource, seconds };
        let storage = vec![
            one(node, bytes / rate / 2.0),
            one(node + 1, answer / 118.0),
            one(client + 1, answer / 118.0),
        ];
        let data = vec![
            one(node + 1, bytes / 118.0),
            one(data_cores, bytes / rate / 8.0),
            one(data_link, (bytes + answer) / 1000.0),
            one(client + 1, answer / 118.0),
        ];
        let away = vec![
            one(node + 1, bytes / 118.0),
            one(client, bytes / rate / 4.0),
            one(client + 1, bytes / 118.0),
        ];
        let alone = if rng.u32(0..4) == 0 { bytes / rate } else { 0.0 };
        let place = 1 + rng.u32(0..7);
        [(storage, alone), (data, 0.0), (away, 0.0)]
            .map(|option| Some(option).filter(|_| place != 1 || rng.bool()))
    };
    let mut all: Vec<Options> = (0..works).map(options).collect();
    for options in &mut all {
        if options.iter().all(Option::is_none) {
            options[2] = Some((vec![Use { resource: 6, seconds: 0.5 }], 0.0));
        }
    }
    (busy, all)
}

fn problem((busy, works): &(Vec<f64>, Vec<Options>)) -> Problem {
    let mut problem = Problem::new(busy.clone()).unwrap();
    for options in works {
        let choice =
            |option: &Option<(Vec<Use>, f64)>| option.as_ref().map(|(uses, least)| (uses.clone(), *least));
        let kept = [choice(&options[0]), choice(&options[1]), choice(&options[2])];
        problem
            .push(
                [0, 1, 2].map(|i| kept[i].as_ref().map(|(uses, least)| Choice { uses, min_seconds: *least })),
            )
            .unwrap();
    }
    problem
}

/// Computes the least makespan of all choices.
fn brute_force(busy: &[f64], works: &[Options], longest: f64) -> f64 {
    let Some((options, rest)) = works.split_first() else {
        return busy.iter().fold(longest, |most, load| most.max(*load));
    };
    let after = |(uses, least): &(Vec<Use>, f64)| {
        let mut loads = busy.to_vec();
        for one in uses {
            loads[one.resource as usize] += one.seconds;
        }
        brute_force(&loads, rest, longest.max(*least))
    };
    options.iter().flatten().map(after).fold(f64::INFINITY, f64::min)
}

/// Checks the properties of every plan.
fn check_plan(problem: &Problem, plan: &Plan) {
    let (_, makespan) = problem.outcome(&plan.places).expect("each work runs at a possible place");
    assert_eq!(makespan, plan.makespan);
    assert!(plan.bound <= plan.makespan && plan.gap() >= 0.0, "{plan:?}");
    for place in Place::ALL {
        let (_, fixed) = problem.outcome(&problem.all_at(place)).unwrap();
        assert!(plan.makespan <= fixed, "all at {place} takes {fixed}, the plan {}", plan.makespan);
    }
}

#[test]
fn short_queues_are_solved_exactly() {
    for seed in 0..600 {
        let drawn = queue(seed as usize % 9, 1 + seed as u32 % 3, seed);
        let problem = problem(&drawn);
        let plan = solve(&problem);
        check_plan(&problem, &plan);
        let least = brute_force(&drawn.0, &drawn.1, 0.0);
        assert!(plan.makespan >= least * (1.0 - NEARLY), "seed {seed}: {plan:?} is below {least}");
        assert!(plan.bound <= least * (1.0 + NEARLY), "seed {seed}: the bound of {plan:?} is above {least}");
        assert!(plan.makespan <= least * (1.0 + NEARLY), "seed {seed}: {plan:?}, best is {least}");
    }
}

#[test]
fn the_order_of_a_short_queue_does_not_change_the_makespan() {
    for seed in 0..200 {
        let mut drawn = queue(7, 2, seed);
        let before = solve(&problem(&drawn)).makespan;
        fastrand::Rng::with_seed(seed).shuffle(&mut drawn.1);
        let after = solve(&problem(&drawn)).makespan;
        assert!((before - after).abs() <= NEARLY * before, "seed {seed}: {before} and {after}");
    }
}

#[test]
fn gaps_of_long_queues_are_as_documented() {
    for (works, worst) in WORST {
        for seed in 0..(20_000 / works as u64).min(60) {
            for clients in [1, 16] {
                let problem = problem(&queue(works, clients, seed));
                let plan = solve(&problem);
                check_plan(&problem, &plan);
                assert_eq!(plan, solve(&problem));
                assert!(plan.gap() <= worst, "{works} works, {clients} clients, seed {seed}: {}", plan.gap());
            }
        }
    }
}

proptest! {
    #[test]
    fn any_numbers_give_a_valid_plan(
        busy in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0, Just(1e30), Just(1e-300)], 1..5),
        works in prop::collection::vec(
            prop::array::uniform3(prop::option::of(prop::collection::vec(
                (0_u32..4, prop_oneof![Just(0.0), 0.0..10.0, Just(1e29), Just(1e-310), Just(1e-25)]), 0..5))),
            0..80),
    ) {
        let mut problem = Problem::new(busy.clone()).unwrap();
        for options in &works {
            let uses = options.each_ref().map(|uses| uses.as_ref().map(|uses| {
                let one = |&(resource, seconds): &(u32, f64)| {
                    Use { resource: resource % busy.len() as u32, seconds }
                };
                uses.iter().map(one).collect::<Vec<Use>>()
            }));
            let pushed = problem.push(uses.each_ref().map(|uses| uses.as_ref().map(|uses| Choice { uses, min_seconds: 0.0 })));
            prop_assert_eq!(pushed.is_err(), options.iter().all(Option::is_none));
        }
        let plan = solve(&problem);
        check_plan(&problem, &plan);
        prop_assert!(plan.makespan.is_finite() && plan.bound.is_finite() && !plan.gap().is_nan());
    }
}

#[test]
fn storage_is_preferred_and_errors_name_bad_numbers() {
    let mut problem = Problem::new(vec![0.0; 3]).unwrap();
    let nothing = Choice { uses: &[], min_seconds: 0.0 };
    problem.push([Some(nothing); 3]).unwrap();
    let alike = [0, 1, 2].map(|resource| [Use { resource, seconds: 1.0 }]);
    problem.push([0, 1, 2].map(|i| Some(Choice { uses: &alike[i], min_seconds: 0.0 }))).unwrap();
    assert_eq!(solve(&problem).places, [Place::Storage; 2]);
    assert_eq!(problem.push([None; 3]), Err(ScheduleError::NoPlace { request: 2 }));
    for (resource, seconds, expected) in [
        (3, 1.0, "request 2 names resource 3, but there are 3"),
        (0, f64::NAN, "the time of request 2 at client is NaN seconds"),
        (0, -1.0, "is -1 seconds"),
    ] {
        let uses = [Use { resource, seconds }];
        let error =
            problem.push([Some(nothing), None, Some(Choice { uses: &uses, min_seconds: 0.0 })]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!((problem.works(), solve(&problem).places.len()), (2, 2));
    assert!(Problem::new(vec![f64::INFINITY]).is_err());
    // Two uses of one resource are added.
    let twice = [Use { resource: 1, seconds: 2.0 }, Use { resource: 1, seconds: 3.0 }];
    let work = problem.push([Some(Choice { uses: &twice, min_seconds: 0.0 }), None, None]).unwrap();
    assert_eq!(problem.uses(work, Place::Storage), [Use { resource: 1, seconds: 5.0 }]);
}
