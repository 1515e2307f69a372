//! The objective of DOSAS, compared with all choices.

use gristmill_schedule::paper::{Decisions, Work, solve, time};
use gristmill_schedule::{Place, ScheduleError};
use proptest::prelude::*;

/// Computes the least value of equation 4 over all 2^k choices.
fn brute_force(bandwidth: f64, works: &[Work]) -> f64 {
    fn search(bandwidth: f64, works: &[Work], sum: f64, longest: f64) -> f64 {
        let Some((work, rest)) = works.split_first() else { return sum + longest };
        let bytes = work.bytes as f64;
        let stays = sum + bytes / work.storage_rate + work.result_bytes as f64 / bandwidth;
        let handed_back = sum + bytes / bandwidth;
        let stays = search(bandwidth, rest, stays, longest);
        stays.min(search(bandwidth, rest, handed_back, longest.max(bytes / work.client_rate)))
    }
    search(bandwidth, works, 0.0, 0.0)
}

fn works() -> impl Strategy<Value = Vec<Work>> {
    let bytes = prop_oneof![Just(0), 1_u64..1000, (1_u64..64).prop_map(|n| n << 24)];
    let result = prop_oneof![Just(0), 1_u64..1000, (1_u64..80).prop_map(|n| n << 24)];
    let rate = || prop_oneof![Just(80e6), Just(860e6), 1e6..1e10];
    let work =
        (bytes, result, rate(), rate()).prop_map(|(bytes, result_bytes, storage_rate, client_rate)| Work {
            bytes,
            result_bytes,
            storage_rate,
            client_rate,
        });
    prop::collection::vec(work, 0..=14)
}

proptest! {
    #[test]
    fn the_solution_is_the_optimum(works in works(), bandwidth in prop_oneof![Just(118e6), 1e6..1e10]) {
        let found = solve(bandwidth, &works).unwrap();
        let least = brute_force(bandwidth, &works);
        prop_assert!((found.seconds - least).abs() <= 1e-12 * least, "{} and {least}", found.seconds);
        prop_assert_eq!(time(bandwidth, &works, &found.places).unwrap(), found.seconds);
    }

    #[test]
    fn requests_of_one_kernel_and_one_size_run_at_one_place(
        count in 1_usize..200, bytes in 1_u64..1 << 32, result_bytes in 0_u64..1 << 30,
        storage_rate in 1e6..1e10, client_rate in 1e6..1e10, bandwidth in 1e6..1e10,
    ) {
        let work = Work { bytes, result_bytes, storage_rate, client_rate };
        let places = solve(bandwidth, &vec![work; count]).unwrap().places;
        prop_assert!(places.iter().all(|place| *place == places[0]));
    }
}

#[test]
fn storage_is_preferred_among_equal_costs() {
    // x = 3, y = 1, z = 2: both cost 3.
    let work = Work { bytes: 2, result_bytes: 2, storage_rate: 1.0, client_rate: 1.0 };
    assert_eq!(solve(2.0, &[work]), Ok(Decisions { places: vec![Place::Storage], seconds: 3.0 }));
    // There is nothing to do.
    let nothing = Work { bytes: 0, result_bytes: 0, ..work };
    assert_eq!(solve(2.0, &[nothing; 3]).unwrap().places, [Place::Storage; 3]);
    assert_eq!(solve(2.0, &[]), Ok(Decisions { places: vec![], seconds: 0.0 }));
}

#[test]
fn one_long_request_does_not_keep_short_requests_at_storage() {
    let slow = Work { bytes: 100, result_bytes: 1, storage_rate: 50.0, client_rate: 1.0 };
    let fast = Work { client_rate: 1000.0, ..slow };
    let places = solve(100.0, &[slow, fast, slow, fast]).unwrap().places;
    assert_eq!(places, [Place::Storage, Place::Client, Place::Storage, Place::Client]);
}

#[test]
fn the_error_names_an_impossible_rate() {
    let good = Work { bytes: 1, result_bytes: 1, storage_rate: 1.0, client_rate: 1.0 };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
        let storage = solve(1.0, &[good, Work { storage_rate: bad, ..good }]).unwrap_err().to_string();
        assert!(
            storage.contains("the storage rate of request 1") && storage.contains("is not possible"),
            "{storage}"
        );
        let client = solve(1.0, &[Work { client_rate: bad, ..good }]).unwrap_err().to_string();
        assert!(client.contains("the client rate of request 0"), "{client}");
        let link = time(bad, &[good], &[Place::Client]).unwrap_err().to_string();
        assert!(link.contains("the bandwidth"), "{link}");
    }
    let unequal = time(1.0, &[good], &[]);
    assert_eq!(unequal, Err(ScheduleError::PlaceCount { places: 0, works: 1 }));
}
