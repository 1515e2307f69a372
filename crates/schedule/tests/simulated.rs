//! Simulations of small worlds with each policy.

use gristmill_schedule::ScheduleError;
use gristmill_schedule::simulate::{Policy, Request, World};

/// Largest ratio of the makespan of overlap to the one of the best static choice. The largest measured ratio in the
/// worlds below was 1.0000.
const WORST: f64 = 1.01;

/// Makes worlds with different numbers of nodes and clients, shares of hot nodes, and rates of requests.
fn worlds() -> impl Iterator<Item = World> {
    let shapes = [(1, 1), (4, 2), (4, 16), (16, 8)];
    (0..96_u64).map(move |seed| {
        let (nodes, clients) = shapes[seed as usize % 4];
        let hot = if seed % 3 == 0 { 0.5 } else { 0.0 };
        let mut world = World { nodes, clients, hot, requests: 200, seed, ..World::default() };
        world.per_second = world.capacity() * [0.25, 0.5, 1.0, 2.0, 8.0][seed as usize % 5];
        world
    })
}

#[test]
fn overlap_is_as_good_as_the_best_static_choice_and_no_policy_is_below_the_bound() {
    for world in worlds() {
        let asked = world.requests();
        let least = world.bound(&asked).unwrap();
        let [storage, client, paper, overlap] =
            Policy::ALL.map(|policy| world.run(&asked, policy).unwrap().makespan);
        for makespan in [storage, client, paper, overlap] {
            assert!(makespan >= least * (1.0 - 1e-9), "{world:?}: {makespan} is below {least}");
        }
        let fixed = storage.min(client);
        assert!(overlap <= WORST * fixed, "{world:?}: {overlap}, but the best static choice takes {fixed}");
    }
}

#[test]
fn one_request_takes_the_time_of_the_formula() {
    let world = World { nodes: 1, clients: 1, cores: 2.0, requests: 1, ..World::default() };
    let request = Request { at: 0.0, node: 0, client: 0, bytes: 800_000_000, result_bytes: 0, rate: 80e6 };
    let made = |policy| world.run(&[request], policy).unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    near(made(Policy::Storage).makespan, 5.0); // two cores
    near(made(Policy::Client).makespan, 8e8 / 118e6); // the link is slower than the client's folds
    near(made(Policy::Overlap).makespan, 5.0);
    // A later request is decided at the next tick.
    let late = Request { at: 10.01, ..request };
    let outcome = world.run(&[request, late], Policy::Storage).unwrap();
    near(outcome.makespan, 15.1);
    near(outcome.mean, (5.0 + 5.09) / 2.0);
}

#[test]
fn requests_share_resources() {
    let world = World { nodes: 1, clients: 1, ..World::default() };
    let request = Request { at: 0.0, node: 0, client: 0, bytes: 80_000_000, result_bytes: 0, rate: 80e6 };
    let long = Request { bytes: 240_000_000, ..request };
    let outcome = world.run(&[request, long], Policy::Storage).unwrap();
    // Each has half a core until the short request is done after 2 s. Then the long request takes 2 s more.
    assert!((outcome.makespan - 4.0).abs() < 1e-9 && (outcome.mean - 3.0).abs() < 1e-9, "{outcome:?}");
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let world = World { requests: 500, ..World::default() };
    let (asked, again) = (world.requests(), world.requests());
    assert_eq!(asked, again);
    assert_ne!(asked, World { seed: 1, ..world }.requests());
    for policy in Policy::ALL {
        assert_eq!(world.run(&asked, policy), world.run(&again, policy));
    }
}

#[test]
fn the_error_names_an_unknown_node() {
    let world = World::default();
    let request = Request { at: 0.0, node: 16, client: 0, bytes: 1, result_bytes: 0, rate: 80e6 };
    let error = world.run(&[request], Policy::Storage).unwrap_err();
    let unknown = ScheduleError::Unknown { request: 0, what: "storage node", number: 16, count: 16 };
    assert_eq!(error, unknown);
}
