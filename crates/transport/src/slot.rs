//! The slots of a listener's connections, and which of them is given up when all are taken and somebody waits.
//!
//! A connection has an *owner* once a handler bound something to it, which says whose request it was. An owned connection with a
//! request in flight keeps its slot. Among the others, those of nobody go first, then those that have been quiet for longest. Each
//! is given some time before it may go ([`SILENT_WHEN_FULL`], [`IDLE_WHEN_FULL`], [`UNOWNED_WHEN_FULL`]). If one source has more
//! than half of all slots, its connections are given less ([`CROWDED`]). If more than half of all are connections of nobody, the
//! oldest of these goes at once: then they are a flood, and whoever means to ask does so before so many others have come.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{CROWDED, IDLE_WHEN_FULL, LOOK_AGAIN, Origin, SILENT_WHEN_FULL, UNOWNED_WHEN_FULL};

/// The slot of a connection. It is in the extensions of every request that a [`Listener`](crate::Listener) serves, so that a
/// handler can give the connection an owner.
pub struct ConnectionSlot {
    source: Source,
    accepted: Instant,
    state: Mutex<State>,
    /// The socket takes nothing of what is to be sent.
    sending: AtomicBool,
    leave: Notify,
    /// Connections of the listener without an owner that are not given up.
    unowned: Arc<AtomicUsize>,
}

struct State {
    /// Requests whose answers are still made.
    in_flight: usize,
    /// When the last of them ended, or the connection was accepted.
    quiet_since: Instant,
    asked: bool,
    /// Its owner has as many connections as it may.
    surplus: bool,
    leaves: bool,
    /// Whether it is counted among those without an owner.
    counted: bool,
    owner: Option<Box<dyn Any + Send + Sync>>,
}

/// Whose connections are counted together: a user of this machine, an IPv4 address, a network of IPv6 (64 bits).
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
            asked: false,
            surplus: false,
            leaves: false,
            counted: true,
            owner: None,
        };
        Arc::new(ConnectionSlot {
            source: origin.into(),
            accepted: now,
            state: Mutex::new(state),
            sending: AtomicBool::new(false),
            leave: Notify::new(),
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

    /// Gives the connection an owner, unless it has one: keeps what `claim` gives until the connection ends. Where that fails
    /// the connection is one too many, and the first to go when somebody waits for a slot.
    ///
    /// # Errors
    /// The error of `claim`.
    pub fn own<T: Any + Send + Sync, E>(&self, claim: impl FnOnce() -> Result<T, E>) -> Result<(), E> {
        let mut state = self.state();
        if state.owner.is_none() {
            let claimed = claim();
            state.surplus = claimed.is_err();
            state.owner = Some(Box::new(claimed?));
            self.uncount(&mut state);
        }
        Ok(())
    }

    /// Whether nothing was asked yet.
    pub(crate) fn is_silent(&self) -> bool {
        !self.state().asked
    }

    /// Whether the connection may go on although others wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.state().is_busy(self.is_sending())
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn set_sending(&self, sending: bool) {
        self.sending.store(sending, Ordering::Relaxed);
    }

    fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// A request has come.
    pub(crate) fn asked(self: &Arc<Self>) -> InFlight {
        let mut state = self.state();
        state.asked = true;
        state.in_flight += 1;
        InFlight(self.clone())
    }

    /// Waits until the slot is given up.
    pub(crate) async fn given_up(&self) {
        self.leave.notified().await;
    }

    /// Gives the slot up, unless the connection became busy. Says whether it does.
    fn give_up(&self) -> bool {
        let mut state = self.state();
        let goes = !state.leaves && !state.is_busy(self.is_sending());
        if goes {
            state.leaves = true;
            self.uncount(&mut state);
            self.leave.notify_one();
        }
        goes
    }

    /// It has an owner now, or is given up.
    fn uncount(&self, state: &mut State) {
        if std::mem::take(&mut state.counted) {
            self.unowned.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the slot is given up already.
    fn leaves(&self) -> bool {
        self.state().leaves
    }

    /// From when on the connection may go, if it may at all. `crowded`: most connections are from its source.
    fn due(&self, crowded: bool) -> Option<Due> {
        let state = self.state();
        if state.leaves || state.is_busy(self.is_sending()) {
            return None;
        }
        let owned = state.owner.is_some();
        let patience = match (crowded, state.asked) {
            (true, _) => CROWDED,
            (_, false) => SILENT_WHEN_FULL,
            (_, true) => IDLE_WHEN_FULL,
        };
        let quiet = (state.in_flight == 0).then_some(state.quiet_since + patience);
        let unowned = (!owned).then_some(self.accepted + UNOWNED_WHEN_FULL);
        let at = if state.surplus { Some(state.quiet_since) } else { quiet.into_iter().chain(unowned).min() };
        Some(Due { at: at?, wanted: !state.surplus, owned, quiet_since: state.quiet_since })
    }
}

impl State {
    fn is_busy(&self, sending: bool) -> bool {
        self.owner.is_some() && (self.in_flight > 0 || sending)
    }
}

/// Which of the connections that may go is the next: the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    wanted: bool,
    owned: bool,
    quiet_since: Instant,
}

/// A request that is in flight until this is dropped.
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
    /// At most twice as many as there are connections. Those without an owner are in the order in which they came.
    taken: VecDeque<Weak<ConnectionSlot>>,
    unowned: Arc<AtomicUsize>,
    most: usize,
}

impl ConnectionSlots {
    pub fn new(most: usize) -> ConnectionSlots {
        ConnectionSlots { taken: VecDeque::new(), unowned: Arc::default(), most }
    }

    /// The slot of a new connection.
    pub fn add(&mut self, origin: Origin) -> Arc<ConnectionSlot> {
        if self.taken.len() >= self.most.saturating_mul(2) {
            self.taken.retain(|slot| slot.strong_count() > 0);
        }
        let slot = ConnectionSlot::new(origin, &self.unowned);
        self.taken.push_back(Arc::downgrade(&slot));
        slot
    }

    /// Waits until a connection gives up its slot. Cancelling it changes nothing.
    pub async fn one_is_given_up(&mut self) {
        loop {
            if let Some(slot) = self.oldest_of_flood() {
                if slot.give_up() {
                    return;
                }
                continue;
            }
            let now = Instant::now();
            match self.next(now) {
                Some((due, slot)) if due <= now => {
                    if slot.give_up() {
                        return;
                    }
                }
                Some((due, _)) => tokio::time::sleep_until(due.min(now + LOOK_AGAIN)).await,
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// The oldest connection of nobody, where most are of nobody. It is cheap: there may be thousands of them in a second.
    fn oldest_of_flood(&mut self) -> Option<Arc<ConnectionSlot>> {
        if self.unowned.load(Ordering::Relaxed) <= self.most / 2 {
            return None;
        }
        for _ in 0..self.taken.len() {
            let Some(slot) = self.taken.pop_front()?.upgrade().filter(|slot| !slot.leaves()) else {
                continue;
            };
            if !slot.is_owned() {
                return Some(slot);
            }
            self.taken.push_back(Arc::downgrade(&slot));
        }
        None
    }

    /// The connection that goes next, and the time from which it may go.
    fn next(&self, now: Instant) -> Option<(Instant, Arc<ConnectionSlot>)> {
        let mut slots: Vec<Arc<ConnectionSlot>> = self.taken.iter().filter_map(Weak::upgrade).collect();
        slots.retain(|slot| !slot.leaves());
        let mut of_source: HashMap<Source, usize> = HashMap::new();
        slots.iter().for_each(|slot| *of_source.entry(slot.source).or_default() += 1);
        let may_go = slots.into_iter().filter_map(|slot| {
            let crowded = of_source.get(&slot.source).is_some_and(|count| *count > self.most / 2);
            slot.due(crowded).map(|due| (due, slot))
        });
        // Those that may go now are alike in that.
        let next = may_go.min_by_key(|(due, _)| Due { at: due.at.max(now), ..*due });
        next.map(|(due, slot)| (due.at, slot))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    fn from(last: u8) -> Origin {
        Origin::Tcp(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    fn owned(slot: &ConnectionSlot) {
        slot.own(|| Ok::<_, ()>(())).unwrap();
    }

    async fn later(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    async fn gives_up(slots: &mut ConnectionSlots, expected: &Arc<ConnectionSlot>) {
        slots.one_is_given_up().await;
        assert!(expected.state().leaves);
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_asked_goes_before_who_is_idle_and_nobody_at_work() {
        let mut slots = ConnectionSlots::new(8);
        let [works, idle, silent, other] = [1, 2, 3, 4].map(|source| slots.add(from(source)));
        let work = works.asked();
        drop(idle.asked());
        owned(&works);
        owned(&idle);
        later(60).await;
        gives_up(&mut slots, &silent).await;
        gives_up(&mut slots, &other).await;
        gives_up(&mut slots, &idle).await;
        assert!(slots.next(Instant::now()).is_none());
        works.set_sending(true);
        drop(work);
        assert!(slots.next(Instant::now()).is_none());
        works.set_sending(false);
        let begun = Instant::now();
        gives_up(&mut slots, &works).await;
        assert_eq!(begun.elapsed(), IDLE_WHEN_FULL);
    }

    /// A stranger once could hold all of them with answers that are never taken.
    #[tokio::test(start_paused = true)]
    async fn a_request_of_nobody_keeps_its_connection_for_a_while_only() {
        let mut slots = ConnectionSlots::new(8);
        let [mine, strange] = [1, 2].map(|source| slots.add(from(source)));
        let (_mine, _strange) = (mine.asked(), strange.asked());
        owned(&mine);
        strange.set_sending(true);
        let begun = Instant::now();
        gives_up(&mut slots, &strange).await;
        assert_eq!(begun.elapsed(), UNOWNED_WHEN_FULL);
        assert!(!strange.is_busy() && mine.is_busy());
        // Nor does asking again and again.
        let again = slots.add(from(3));
        let begun = Instant::now();
        while !again.state().leaves {
            drop(again.asked());
            let _ = tokio::time::timeout(Duration::from_secs(1), slots.one_is_given_up()).await;
        }
        assert_eq!(begun.elapsed(), UNOWNED_WHEN_FULL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_most_of_the_slots_gives_them_up_soon() {
        let mut slots = ConnectionSlots::new(8);
        let other = slots.add(from(1));
        drop(other.asked());
        owned(&other);
        later(1).await;
        let crowd: Vec<_> = (0..5).map(|_| slots.add(from(2))).collect();
        crowd.iter().for_each(|slot| owned(slot));
        let begun = Instant::now();
        gives_up(&mut slots, &crowd[0]).await;
        assert_eq!(begun.elapsed(), CROWDED);
        gives_up(&mut slots, &crowd[1]).await;
        assert!(!other.leaves());
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_of_nobody_the_oldest_go_at_once() {
        let mut slots = ConnectionSlots::new(8);
        let idle = slots.add(from(1));
        drop(idle.asked());
        owned(&idle);
        later(1).await;
        let flood: Vec<_> = (0..6).map(|n| slots.add(from(n))).collect();
        let _asked = flood[1].asked();
        let begun = Instant::now();
        gives_up(&mut slots, &flood[0]).await;
        gives_up(&mut slots, &flood[1]).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // The others are no flood.
        gives_up(&mut slots, &flood[2]).await;
        assert_eq!(begun.elapsed(), SILENT_WHEN_FULL);
        assert!(!idle.leaves());
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let source = |text: &str| Source::from(Origin::Tcp(text.parse().unwrap()));
        assert!(source("2001:db8::1") == source("2001:db8::ffff:2"));
        assert!(source("2001:db8::1") != source("2001:db8:0:1::1"));
        assert!(source("192.0.2.1") != source("192.0.2.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_more_than_its_share_goes_first() {
        let mut slots = ConnectionSlots::new(8);
        let _silent = slots.add(from(1));
        let surplus = slots.add(from(2));
        drop(surplus.asked());
        surplus.own(|| Err::<(), _>("too many")).unwrap_err();
        gives_up(&mut slots, &surplus).await;
        // A later request that finds room makes it one like others.
        let [again, silent] = [3, 4].map(|source| slots.add(from(source)));
        drop(again.asked());
        again.own(|| Err::<(), _>("too many")).unwrap_err();
        owned(&again);
        later(60).await;
        gives_up(&mut slots, &_silent).await;
        gives_up(&mut slots, &silent).await;
        gives_up(&mut slots, &again).await;
    }

    #[tokio::test]
    async fn what_is_claimed_is_dropped_with_the_connection() {
        let mut slots = ConnectionSlots::new(1);
        let (slot, value) = (slots.add(from(1)), Arc::new(()));
        slot.own(|| Ok::<_, ()>(value.clone())).unwrap();
        slot.own(|| Err::<(), _>("not asked for")).unwrap();
        assert_eq!(Arc::strong_count(&value), 2);
        drop(slot);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
