//! Tests of the estimates of links.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const UNKNOWN: f64 = 1.25e9;

fn peer(n: u32) -> IpAddr {
    Ipv4Addr::from(n).into()
}

/// A connection that sent at this rate for half a second, as fast as the network let it.
fn sent(n: u32, rate: f64) -> SendSample {
    SendSample {
        peer: peer(n),
        bytes: (rate / 2.0) as u64,
        delivery_rate: rate as u64,
        app_limited: false,
        busy: Some(500_000),
        no_room: 0,
    }
}

fn close(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= expected * 0.02
}

#[test]
fn a_link_that_is_used_is_measured() {
    let mut links = Links::new(None, UNKNOWN);
    assert_eq!((links.link(), links.is_measured()), (UNKNOWN, false));
    links.learn(0.5, &[sent(1, 118e6)]);
    assert!(close(links.link(), 118e6) && links.is_measured());
    // Two clients share it.
    links.learn(1.0, &[sent(1, 59e6), sent(2, 59e6)]);
    assert!(close(links.link(), 118e6), "{links:?}");
    // More than one client uses it.
    links.learn(1.5, &[sent(1, 118e6), sent(2, 400e6)]);
    assert!(close(links.link(), 518e6), "{links:?}");
}

#[test]
fn a_client_that_shares_a_full_link_is_not_slow() {
    let mut links = Links::new(Some(118e6), UNKNOWN);
    let rates = |links: &Links| [1, 2, 3].map(|n| links.peer(peer(n)));
    links.learn(0.5, &[sent(1, 59e6), sent(2, 59e6)]);
    assert_eq!(rates(&links), [None; 3]);
    // One client has much less than an equal part: it is slow itself.
    links.learn(1.0, &[sent(1, 57e6), sent(2, 57e6), sent(3, 4e6)]);
    assert!(rates(&links)[..2] == [None; 2] && close(links.peer(peer(3)).unwrap(), 4e6), "{links:?}");
    // The link has room, so the first client is slow. Later it shows that it can receive more.
    links.learn(1.5, &[sent(1, 30e6)]);
    assert!(close(links.peer(peer(1)).unwrap(), 30e6), "{links:?}");
    links.learn(2.0, &[sent(1, 20e6), sent(2, 98e6)]);
    assert!(close(links.peer(peer(1)).unwrap(), 25e6), "{links:?}");
    links.learn(2.5, &[sent(1, 59e6), sent(2, 59e6)]);
    assert!(close(links.peer(peer(1)).unwrap(), 42e6), "{links:?}");
}

#[test]
fn the_configured_speed_is_the_upper_bound() {
    let mut links = Links::new(Some(10e6), UNKNOWN);
    links.learn(0.5, &[sent(1, 1e9)]);
    assert_eq!((links.link(), links.is_measured()), (10e6, true));
    links.learn(1.0, &[sent(1, 4e6)]);
    assert!(links.link() < 10e6);
}

#[test]
fn slow_readers_and_small_transfers_do_not_lower_the_estimate() {
    let slow = SendSample { no_room: 400_000, ..sent(1, 5e6) };
    let little = SendSample { app_limited: true, ..sent(2, 5e6) };
    let short = SendSample { busy: Some(50_000), bytes: 2 << 20, ..sent(3, 5e6) };
    let mut links = Links::new(None, UNKNOWN);
    links.learn(0.5, &[slow, little, short]);
    assert_eq!((links.link(), links.is_measured()), (UNKNOWN, false));
    // The slow client keeps its estimate.
    assert!(close(links.peer(peer(1)).unwrap(), 5e6));
    assert_eq!((links.peer(peer(2)), links.peer(peer(3))), (None, None));
    // The same values raise the estimate of a slower link.
    let mut links = Links::new(Some(1e6), UNKNOWN);
    links.learn(0.5, &[little]);
    assert!(links.is_measured());
}

#[test]
fn the_largest_recent_rate_counts_and_fades_if_nothing_large_is_sent() {
    let mut links = Links::new(None, 1e9);
    links.learn(0.5, &[sent(1, 100e6)]);
    links.learn(1.0, &[sent(1, 10e6)]);
    assert!(close(links.link(), 91e6), "{links:?}");
    for n in 0..100 {
        links.learn(1.5 + f64::from(n) / 2.0, &[sent(1, 10e6)]);
    }
    assert!(close(links.link(), 10e6), "{links:?}");
    let small = SendSample { bytes: 1000, ..sent(1, 1.0) };
    let mut before = links.link();
    for n in 1..200 {
        links.learn(60.0 * f64::from(n), &[small]);
        assert!(links.link() >= before);
        before = links.link();
    }
    assert!(close(links.link(), 1e9) && !links.is_measured(), "{links:?}");
    assert_eq!(links.peer(peer(1)), None);
}

#[test]
fn the_number_of_remembered_clients_is_bounded() {
    let mut links = Links::new(None, UNKNOWN);
    // All read slowly.
    let slow = |n: u32| SendSample { no_room: 400_000, ..sent(n, 50e6) };
    let all: Vec<SendSample> = (0..2 * MAX_PEERS as u32).map(slow).collect();
    links.learn(0.5, &all);
    assert_eq!(links.peers.len(), MAX_PEERS);
    links.learn(0.5 + 2.0 * RECENT, &[sent(7_000_000, 50e6)]);
    assert!(links.peer(peer(7_000_000)).is_some());
}

fn strange_sample() -> impl Strategy<Value = SendSample> {
    let number = || prop_oneof![Just(0u64), Just(u64::MAX), 0u64..10_000_000, any::<u64>()];
    (0u32..5, number(), number(), any::<bool>(), number(), number()).prop_map(
        |(n, bytes, delivery_rate, app_limited, busy, no_room)| SendSample {
            peer: peer(n),
            bytes,
            delivery_rate,
            app_limited,
            busy: Some(busy).filter(|busy| busy % 3 > 0),
            no_room,
        },
    )
}

proptest! {
    #[test]
    fn strange_values_and_jumping_clocks_keep_estimates_in_range(
        configured in prop::option::of(1e3..1e12f64),
        calls in prop::collection::vec(
            (
                prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::NEG_INFINITY), 0.0..1e6f64],
                prop::collection::vec(strange_sample(), 0..6),
            ),
            0..20,
        ),
    ) {
        let mut links = Links::new(configured, UNKNOWN);
        for (now, sent) in calls {
            links.learn(now, &sent);
            prop_assert!((MIN_RATE..=configured.unwrap_or(MAX_RATE)).contains(&links.link()), "{links:?}");
            prop_assert!((0..5).filter_map(|n| links.peer(peer(n))).all(|rate| (MIN_RATE..=MAX_RATE).contains(&rate)));
        }
    }
}
