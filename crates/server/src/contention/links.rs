//! Speed of a node's link and of its clients' links, estimated from the bytes that were sent. The caller passes the
//! bytes and the time.
//!
//! The bytes of a connection, divided by the time with bytes under way, are a rate that the link *can* reach. So a
//! larger rate raises the estimate at once. A smaller rate lowers it only if the network was the limit: the connection
//! always had more to send, the reader had room, and this lasted so long that its beginning and end do not matter.
//!
//! For a client it does not matter whether the client or its link is slow. But the rate of a client that shares a full
//! link of the node with other clients is only a lower bound of what it can receive.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gristmill_schedule::{MAX_RATE, MIN_RATE};
use gristmill_transport::Sent;

/// Largest number of clients whose rates are remembered.
pub(crate) const MAX_PEERS: usize = 1024;

/// Fewest bytes of a connection that count as a measurement.
const LARGE: u64 = 1 << 20;

/// Fewest seconds with bytes under way after which a connection shows that a link is slow. The last acknowledgement may
/// be 40 ms late.
const LONG: f64 = 0.2;

/// Fewest seconds with bytes under way that can be measured: the system's clock has steps of 4 ms.
const SHORT: f64 = 0.012;

/// Weight of a new, smaller rate in the estimate of the link, and of every rate in the estimate of a client.
const LOWERED: f64 = 0.1;
const SMOOTHED: f64 = 0.5;

/// Share of the node's link from which the link counts as full.
const FULL: f64 = 0.8;

/// Share of an equal part of a full link below which a client counts as slow itself.
const SLOW: f64 = 0.5;

/// Seconds in which an estimate that nothing confirms returns two thirds of the way to the first estimate.
const DECAY: f64 = 600.0;

/// Seconds for which an estimate counts as measured, and a client is remembered.
const RECENT: f64 = 1800.0;

/// Fewest seconds by which the bytes of all connections between two calls are divided.
const LEAST_TIME: f64 = 0.1;

/// Speeds of this node's link and of its clients' links.
#[derive(Debug)]
pub(crate) struct Links {
    /// Bytes per second before any measurement.
    prior: f64,
    /// Upper bound of the estimate, in bytes per second.
    most: f64,
    link: f64,
    measured: Option<f64>,
    peers: BTreeMap<IpAddr, Peer>,
    now: f64,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    rate: f64,
    at: f64,
}

/// Measurement of one connection.
struct LinkSample {
    rate: f64,
    /// Whether the connection always had more to send, for at least [`LONG`] seconds.
    pressed: bool,
    /// Whether, in addition, the reader had room, so that the network was the limit.
    by_network: bool,
}

fn link_sample(sent: &Sent) -> Option<LinkSample> {
    if sent.bytes < LARGE {
        return None;
    }
    let no_room = sent.no_room as f64 / 1e6;
    let (rate, long, room) = match sent.busy.map(|busy| busy as f64 / 1e6) {
        Some(busy) if busy < SHORT => return None,
        Some(busy) => (sent.bytes as f64 / busy, busy >= LONG, no_room <= busy / 2.0),
        // If the system does not report the time, only its own rate is known.
        None => (sent.delivery_rate as f64, true, true),
    };
    let pressed = long && !sent.app_limited;
    let sample = LinkSample { rate, pressed, by_network: pressed && room };
    (MIN_RATE..=MAX_RATE).contains(&rate).then_some(sample)
}

impl Links {
    /// Creates an estimate. `configured` is the administrator's figure: the first estimate and its upper bound. Without
    /// it the first estimate is `unknown`.
    pub fn new(configured: Option<f64>, unknown: f64) -> Links {
        let prior = configured.unwrap_or(unknown);
        let most = configured.unwrap_or(MAX_RATE);
        Links { prior, most, link: prior, measured: None, peers: BTreeMap::new(), now: 0.0 }
    }

    /// Bytes per second of the node's link.
    pub fn link(&self) -> f64 {
        self.link
    }

    /// Whether the link was measured in the last [`RECENT`] seconds.
    pub fn is_measured(&self) -> bool {
        self.measured.is_some_and(|at| self.now - at < RECENT)
    }

    /// Bytes per second that clients at this address receive, if known.
    pub fn peer(&self, address: IpAddr) -> Option<f64> {
        self.peers.get(&address).map(|peer| peer.rate)
    }

    /// Learns from the bytes that connections sent since the last call. `now`: seconds on a clock. If it jumps,
    /// estimates last longer or shorter.
    pub fn learn(&mut self, now: f64, sent: &[Sent]) {
        let passed = if now.is_finite() { (now - self.now).clamp(0.0, RECENT) } else { 0.0 };
        // This clock never runs backwards.
        self.now += passed;
        let samples: Vec<(IpAddr, LinkSample)> =
            sent.iter().filter_map(|sent| Some((sent.peer, link_sample(sent)?))).collect();
        let bytes: f64 = sent.iter().map(|sent| sent.bytes as f64).sum();
        let fastest = samples.iter().map(|(_, sample)| sample.rate).fold(0.0, f64::max);
        // The sum over all connections is a rate too.
        let at_least = fastest.max(if bytes < LARGE as f64 { 0.0 } else { bytes / passed.max(LEAST_TIME) });
        let together: f64 = samples.iter().map(|(_, sample)| sample.rate).sum();
        if at_least >= self.link {
            self.set_measured(at_least);
        } else if samples.iter().any(|(_, sample)| sample.by_network) {
            let first = self.measured.is_none();
            let part = if first { 1.0 } else { LOWERED };
            self.set_measured(self.link + (together.min(self.link) - self.link) * part);
        } else {
            let on_its_way = self.prior + (self.link - self.prior) * (-passed / DECAY).exp();
            self.link = on_its_way.clamp(MIN_RATE, self.most);
        }
        self.learn_peers(&samples);
    }

    fn set_measured(&mut self, rate: f64) {
        self.link = rate.clamp(MIN_RATE, self.most);
        self.measured = Some(self.now);
    }

    fn learn_peers(&mut self, samples: &[(IpAddr, LinkSample)]) {
        let mut sums: BTreeMap<IpAddr, (f64, bool)> = BTreeMap::new();
        for (peer, sample) in samples.iter().filter(|(_, sample)| sample.pressed) {
            let (sum, by_network) = sums.entry(*peer).or_insert((0.0, true));
            *sum += sample.rate;
            *by_network &= sample.by_network;
        }
        let now = self.now;
        self.peers.retain(|_, peer| now - peer.at < RECENT);
        let full = sums.values().map(|(sum, _)| sum).sum::<f64>() >= FULL * self.link;
        let slow = SLOW * self.link / sums.len().max(1) as f64;
        for (address, (sum, by_network)) in sums {
            let sum = sum.min(MAX_RATE);
            let is_limited_by_others = full && by_network && sum >= slow;
            let known = self.peers.get(&address).map(|peer| peer.rate);
            if is_limited_by_others && known.is_none_or(|rate| sum <= rate) {
                continue;
            }
            if known.is_some() || self.peers.len() < MAX_PEERS {
                let rate = known.map_or(sum, |rate| rate + (sum - rate) * SMOOTHED);
                self.peers.insert(address, Peer { rate, at: now });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const UNKNOWN: f64 = 1.25e9;

    fn peer(n: u32) -> IpAddr {
        Ipv4Addr::from(n).into()
    }

    /// A connection that sent at this rate for half a second, as fast as the network let it.
    fn sent(n: u32, rate: f64) -> Sent {
        Sent {
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
    fn what_is_said_of_it_is_the_most_that_is_believed() {
        let mut links = Links::new(Some(10e6), UNKNOWN);
        links.learn(0.5, &[sent(1, 1e9)]);
        assert_eq!((links.link(), links.is_measured()), (10e6, true));
        links.learn(1.0, &[sent(1, 4e6)]);
        assert!(links.link() < 10e6);
    }

    #[test]
    fn who_reads_slowly_or_has_little_to_send_does_not_slow_the_link() {
        let slow = Sent { no_room: 400_000, ..sent(1, 5e6) };
        let little = Sent { app_limited: true, ..sent(2, 5e6) };
        let short = Sent { busy: Some(50_000), bytes: 2 << 20, ..sent(3, 5e6) };
        let mut links = Links::new(None, UNKNOWN);
        links.learn(0.5, &[slow, little, short]);
        assert_eq!((links.link(), links.is_measured()), (UNKNOWN, false));
        // The slow client keeps its estimate.
        assert!(close(links.peer(peer(1)).unwrap(), 5e6));
        assert_eq!((links.peer(peer(2)), links.peer(peer(3))), (None, None));
        // The same figures raise the estimate of a slower link.
        let mut links = Links::new(Some(1e6), UNKNOWN);
        links.learn(0.5, &[little]);
        assert!(links.is_measured());
    }

    #[test]
    fn the_largest_of_late_counts_and_fades_when_nothing_large_is_sent() {
        let mut links = Links::new(None, 1e9);
        links.learn(0.5, &[sent(1, 100e6)]);
        links.learn(1.0, &[sent(1, 10e6)]);
        assert!(close(links.link(), 91e6), "{links:?}");
        for n in 0..100 {
            links.learn(1.5 + f64::from(n) / 2.0, &[sent(1, 10e6)]);
        }
        assert!(close(links.link(), 10e6), "{links:?}");
        let small = Sent { bytes: 1000, ..sent(1, 1.0) };
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
    fn only_so_many_clients_are_remembered() {
        let mut links = Links::new(None, UNKNOWN);
        // All read slowly.
        let slow = |n: u32| Sent { no_room: 400_000, ..sent(n, 50e6) };
        let all: Vec<Sent> = (0..2 * MAX_PEERS as u32).map(slow).collect();
        links.learn(0.5, &all);
        assert_eq!(links.peers.len(), MAX_PEERS);
        links.learn(0.5 + 2.0 * RECENT, &[sent(7_000_000, 50e6)]);
        assert!(links.peer(peer(7_000_000)).is_some());
    }

    fn odd() -> impl Strategy<Value = Sent> {
        let number = || prop_oneof![Just(0u64), Just(u64::MAX), 0u64..10_000_000, any::<u64>()];
        (0u32..5, number(), number(), any::<bool>(), number(), number()).prop_map(
            |(n, bytes, delivery_rate, app_limited, busy, no_room)| Sent {
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
        fn odd_figures_and_clocks_that_jump_do_no_harm(
            configured in prop::option::of(1e3..1e12f64),
            looks in prop::collection::vec(
                (
                    prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::NEG_INFINITY), 0.0..1e6f64],
                    prop::collection::vec(odd(), 0..6),
                ),
                0..20,
            ),
        ) {
            let mut links = Links::new(configured, UNKNOWN);
            for (now, sent) in looks {
                links.learn(now, &sent);
                prop_assert!((MIN_RATE..=configured.unwrap_or(MAX_RATE)).contains(&links.link()), "{links:?}");
                prop_assert!((0..5).filter_map(|n| links.peer(peer(n))).all(|rate| (MIN_RATE..=MAX_RATE).contains(&rate)));
            }
        }
    }
}
