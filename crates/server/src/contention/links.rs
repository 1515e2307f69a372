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
use gristmill_transport::SendSample;

/// Largest number of clients whose rates are remembered.
pub(crate) const MAX_PEERS: usize = 1024;

/// Fewest bytes of a connection that count as a measurement.
const MIN_SAMPLE_BYTES: u64 = 1 << 20;

/// Fewest seconds with bytes under way after which a connection shows that a link is slow. The last acknowledgement may
/// be 40 ms late.
const MIN_LIMITED_SECONDS: f64 = 0.2;

/// Fewest seconds with bytes under way that can be measured: the system's clock has steps of 4 ms.
const MIN_BUSY_SECONDS: f64 = 0.012;

/// Weight of a new, smaller rate in the estimate of the link, and of every rate in the estimate of a client.
const LOWER_WEIGHT: f64 = 0.1;
const PEER_WEIGHT: f64 = 0.5;

/// Share of the node's link from which the link counts as full.
const FULL: f64 = 0.8;

/// Share of an equal part of a full link below which a client counts as slow itself.
const SLOW: f64 = 0.5;

/// Seconds in which an estimate that nothing confirms returns two thirds of the way to the first estimate.
const DECAY: f64 = 600.0;

/// Seconds for which an estimate counts as measured, and a client is remembered.
const RECENT: f64 = 1800.0;

/// Fewest seconds by which the bytes of all connections between two calls are divided.
const MIN_INTERVAL: f64 = 0.1;

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
    /// Whether the connection always had more to send, for at least [`MIN_LIMITED_SECONDS`] seconds.
    pressed: bool,
    /// Whether, in addition, the reader had room, so that the network was the limit.
    by_network: bool,
}

fn link_sample(sent: &SendSample) -> Option<LinkSample> {
    if sent.bytes < MIN_SAMPLE_BYTES {
        return None;
    }
    let no_room = sent.no_room as f64 / 1e6;
    let (rate, long, room) = match sent.busy.map(|busy| busy as f64 / 1e6) {
        Some(busy) if busy < MIN_BUSY_SECONDS => return None,
        Some(busy) => (sent.bytes as f64 / busy, busy >= MIN_LIMITED_SECONDS, no_room <= busy / 2.0),
        // If the system does not report the time, only its own rate is known.
        None => (sent.delivery_rate as f64, true, true),
    };
    let pressed = long && !sent.app_limited;
    let sample = LinkSample { rate, pressed, by_network: pressed && room };
    (MIN_RATE..=MAX_RATE).contains(&rate).then_some(sample)
}

impl Links {
    /// Creates an estimate. `configured` is the administrator's value: the first estimate and its upper bound. Without
    /// it the first estimate is `assumed`.
    pub fn new(configured: Option<f64>, assumed: f64) -> Links {
        let prior = configured.unwrap_or(assumed);
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
    pub fn learn(&mut self, now: f64, sent: &[SendSample]) {
        let passed = if now.is_finite() { (now - self.now).clamp(0.0, RECENT) } else { 0.0 };
        // This clock never runs backwards.
        self.now += passed;
        let samples: Vec<(IpAddr, LinkSample)> =
            sent.iter().filter_map(|sent| Some((sent.peer, link_sample(sent)?))).collect();
        let bytes: f64 = sent.iter().map(|sent| sent.bytes as f64).sum();
        let fastest = samples.iter().map(|(_, sample)| sample.rate).fold(0.0, f64::max);
        // The sum over all connections is a rate too.
        let at_least =
            fastest.max(if bytes < MIN_SAMPLE_BYTES as f64 { 0.0 } else { bytes / passed.max(MIN_INTERVAL) });
        let total: f64 = samples.iter().map(|(_, sample)| sample.rate).sum();
        if at_least >= self.link {
            self.set_measured(at_least);
        } else if samples.iter().any(|(_, sample)| sample.by_network) {
            let first = self.measured.is_none();
            let part = if first { 1.0 } else { LOWER_WEIGHT };
            self.set_measured(self.link + (total.min(self.link) - self.link) * part);
        } else {
            let decayed = self.prior + (self.link - self.prior) * (-passed / DECAY).exp();
            self.link = decayed.clamp(MIN_RATE, self.most);
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
                let rate = known.map_or(sum, |rate| rate + (sum - rate) * PEER_WEIGHT);
                self.peers.insert(address, Peer { rate, at: now });
            }
        }
    }
}

#[cfg(test)]
mod tests;
