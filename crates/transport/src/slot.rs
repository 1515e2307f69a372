//! The slots of a listener's connections, and the choice of a connection to evict when all slots are taken and a client
//! waits.
//!
//! A connection has an *owner* after a handler identified the principal of a request and bound a value to the
//! connection. An owned connection with a request in flight keeps its slot. Among the others, connections without an
//! owner are evicted first, then those that have been quiet for the longest time. Each has some time before it can be
//! evicted ([`SILENT_WHEN_FULL`], [`IDLE_WHEN_FULL`], [`UNOWNED_WHEN_FULL`]). If one source has more than half of all
//! slots, its connections have less time ([`CROWDED_WHEN_FULL`]). If more than half of all connections have no owner,
//! the oldest of these is evicted at once. So many are a flood, and a real client sends its request before so many
//! others arrive.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{CROWDED_WHEN_FULL, EVICTION_CHECK, IDLE_WHEN_FULL, Origin, SILENT_WHEN_FULL, UNOWNED_WHEN_FULL};

/// The slot of a connection. It is in the extensions of every request that a [`Listener`](crate::Listener) serves, so
/// that a handler can give the connection an owner.
pub struct ConnectionSlot {
    source: Source,
    accepted: Instant,
    state: Mutex<State>,
    /// Whether bytes wait for the socket.
    sending: AtomicBool,
    eviction: Notify,
    /// Number of the listener's connections without an owner that are not evicted.
    unowned: Arc<AtomicUsize>,
}

struct State {
    /// Number of requests whose answers are not sent yet.
    in_flight: usize,
    /// The time when the last request ended, or when the connection was accepted.
    quiet_since: Instant,
    had_request: bool,
    /// Whether its principal has too many connections.
    surplus: bool,
    evicted: bool,
    /// Whether it is counted in `unowned`.
    counted: bool,
    owner: Option<Box<dyn Any + Send + Sync>>,
}

/// Source whose connections are counted together: a user of this machine, an IPv4 address, an IPv6 network (64 bits).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    User(u32),
    Host(Ipv4Addr),
    Network(u64),
}

impl From<Origin> for Source {
    fn from(origin: Origin) -> Source {
        match origin {
            Origin::Unix { uid, .. } => Source::User(uid),
            Origin::Tcp(IpAddr::V4(host)) => Source::Host(host),
            Origin::Tcp(IpAddr::V6(host)) => Source::Network((host.to_bits() >> 64) as u64),
        }
    }
}

impl ConnectionSlot {
    fn new(origin: Origin, unowned: &Arc<AtomicUsize>) -> Arc<ConnectionSlot> {
        unowned.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let state = State {
            in_flight: 0,
            quiet_since: now,
            had_request: false,
            surplus: false,
            evicted: false,
            counted: true,
            owner: None,
        };
        Arc::new(ConnectionSlot {
            source: origin.into(),
            accepted: now,
            state: Mutex::new(state),
            sending: AtomicBool::new(false),
            eviction: Notify::new(),
            unowned: unowned.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection has an owner.
    pub fn is_owned(&self) -> bool {
        self.state().owner.is_some()
    }

    /// Gives the connection an owner, unless it has one. The value of `claim` is kept until the connection ends. If
    /// `claim` fails, the connection is surplus, and is evicted first when a client waits for a slot.
    ///
    /// # Errors
    /// It returns the error of `claim`.
    pub fn set_owner<T: Any + Send + Sync, E>(&self, claim: impl FnOnce() -> Result<T, E>) -> Result<(), E> {
        let mut state = self.state();
        if state.owner.is_none() {
            let claimed = claim();
            state.surplus = claimed.is_err();
            state.owner = Some(Box::new(claimed?));
            self.uncount(&mut state);
        }
        Ok(())
    }

    /// Whether no request has arrived yet.
    pub(crate) fn is_silent(&self) -> bool {
        !self.state().had_request
    }

    /// Whether the connection keeps its slot although others wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.state().is_busy(self.is_sending())
    }

    /// Sets whether bytes wait for the socket.
    pub(crate) fn set_sending(&self, sending: bool) {
        self.sending.store(sending, Ordering::Relaxed);
    }

    fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Counts a request that arrived.
    pub(crate) fn begin_request(self: &Arc<Self>) -> InFlight {
        let mut state = self.state();
        state.had_request = true;
        state.in_flight += 1;
        InFlight(self.clone())
    }

    /// Waits until the connection is evicted.
    pub(crate) async fn wait_for_eviction(&self) {
        self.eviction.notified().await;
    }

    /// Evicts the connection, unless it became busy. Returns whether it is evicted.
    fn evict(&self) -> bool {
        let mut state = self.state();
        let evicts = !state.evicted && !state.is_busy(self.is_sending());
        if evicts {
            state.evicted = true;
            self.uncount(&mut state);
            self.eviction.notify_one();
        }
        evicts
    }

    /// Removes the connection from the count in `unowned`: it has an owner now, or is evicted.
    fn uncount(&self, state: &mut State) {
        if std::mem::take(&mut state.counted) {
            self.unowned.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the connection is evicted already.
    fn is_evicted(&self) -> bool {
        self.state().evicted
    }

    /// The order of eviction, if the connection can be evicted. `crowded`: most connections are from its source.
    fn eviction_order(&self, crowded: bool) -> Option<EvictionOrder> {
        let state = self.state();
        if state.evicted || state.is_busy(self.is_sending()) {
            return None;
        }
        let owned = state.owner.is_some();
        let allowed = match (crowded, state.had_request) {
            (true, _) => CROWDED_WHEN_FULL,
            (_, false) => SILENT_WHEN_FULL,
            (_, true) => IDLE_WHEN_FULL,
        };
        let quiet = (state.in_flight == 0).then_some(state.quiet_since + allowed);
        let unowned = (!owned).then_some(self.accepted + UNOWNED_WHEN_FULL);
        let at = if state.surplus { Some(state.quiet_since) } else { quiet.into_iter().chain(unowned).min() };
        Some(EvictionOrder { at: at?, within_share: !state.surplus, owned, quiet_since: state.quiet_since })
    }
}

impl State {
    fn is_busy(&self, sending: bool) -> bool {
        self.owner.is_some() && (self.in_flight > 0 || sending)
    }
}

/// The order in which connections are evicted. The connection with the least value is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionOrder {
    /// The time from which the connection can be evicted.
    at: Instant,
    within_share: bool,
    owned: bool,
    quiet_since: Instant,
}

/// A request in flight, until the value is dropped.
pub(crate) struct InFlight(Arc<ConnectionSlot>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.quiet_since = Instant::now();
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.uncount(&mut self.state());
    }
}

/// All slots of a listener.
pub(crate) struct ConnectionSlots {
    /// At most twice as many as there are connections. Connections without an owner are in the order of their arrival.
    taken: VecDeque<Weak<ConnectionSlot>>,
    unowned: Arc<AtomicUsize>,
    most: usize,
}

impl ConnectionSlots {
    pub fn new(most: usize) -> ConnectionSlots {
        ConnectionSlots { taken: VecDeque::new(), unowned: Arc::default(), most }
    }

    /// Adds the slot of a new connection.
    pub fn add(&mut self, origin: Origin) -> Arc<ConnectionSlot> {
        if self.taken.len() >= self.most.saturating_mul(2) {
            self.taken.retain(|slot| slot.strong_count() > 0);
        }
        let slot = ConnectionSlot::new(origin, &self.unowned);
        self.taken.push_back(Arc::downgrade(&slot));
        slot
    }

    /// Evicts one connection, as soon as one can be evicted. Cancelling changes nothing.
    pub async fn evict_one(&mut self) {
        loop {
            if let Some(slot) = self.oldest_of_flood() {
                if slot.evict() {
                    return;
                }
                continue;
            }
            let now = Instant::now();
            match self.next(now) {
                Some((time, slot)) if time <= now => {
                    if slot.evict() {
                        return;
                    }
                }
                Some((time, _)) => tokio::time::sleep_until(time.min(now + EVICTION_CHECK)).await,
                None => tokio::time::sleep(EVICTION_CHECK).await,
            }
        }
    }

    /// The oldest connection without an owner, if most connections have no owner. This must be fast: thousands may
    /// arrive in a second.
    fn oldest_of_flood(&mut self) -> Option<Arc<ConnectionSlot>> {
        if self.unowned.load(Ordering::Relaxed) <= self.most / 2 {
            return None;
        }
        for _ in 0..self.taken.len() {
            let Some(slot) = self.taken.pop_front()?.upgrade().filter(|slot| !slot.is_evicted()) else {
                continue;
            };
            if !slot.is_owned() {
                return Some(slot);
            }
            self.taken.push_back(Arc::downgrade(&slot));
        }
        None
    }

    /// The next connection to evict, and the time from which it can be evicted.
    fn next(&self, now: Instant) -> Option<(Instant, Arc<ConnectionSlot>)> {
        let mut slots: Vec<Arc<ConnectionSlot>> = self.taken.iter().filter_map(Weak::upgrade).collect();
        slots.retain(|slot| !slot.is_evicted());
        let mut counts: HashMap<Source, usize> = HashMap::new();
        slots.iter().for_each(|slot| *counts.entry(slot.source).or_default() += 1);
        let candidates = slots.into_iter().filter_map(|slot| {
            let crowded = counts.get(&slot.source).is_some_and(|count| *count > self.most / 2);
            slot.eviction_order(crowded).map(|order| (order, slot))
        });
        // Connections that can be evicted now do not differ in their time.
        let next = candidates.min_by_key(|(order, _)| EvictionOrder { at: order.at.max(now), ..*order });
        next.map(|(order, slot)| (order.at, slot))
    }
}

#[cfg(test)]
mod tests;
