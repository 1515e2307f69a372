//! Choice of the lanes that may work. During reads and writes one processor is left to each of them. Under a cap as
//! many lanes work as the cap has processors.
//!
//! A low priority of lanes is not enough. A fair scheduler gives even the thread of lowest priority a whole time slice
//! now and then, which is longer than a read. So lanes wait at the ends of their blocks. Under a cap, lanes that take
//! turns block by block find the data of other lanes in the caches; a few lanes with longer turns do the same work in
//! half the time. Otherwise all lanes work.
//!
//! The next turn goes to a lane of the principal with the fewest lanes at work. So a small request of one principal
//! does not wait for all lanes of another.
//!
//! Lanes that have an allotment ([`super::lane_allotments`]) take no turns and are not counted here.
//!
//! The caller passes the time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a lane works before a waiting lane has its turn.
const TURN: Duration = Duration::from_millis(50);

/// Time that a lane works while another principal without a lane at work waits: a small request needs a few turns on
/// each node.
const SHORT_TURN: Duration = Duration::from_millis(10);

/// Time without a call after which a lane no longer counts as at work: it waits for something other than a processor.
pub(super) const AWAY: Duration = Duration::from_millis(100);

/// Largest number of principals that are remembered without lanes at work or waiting.
const MOST_SERVED: usize = 64;

/// Number of a lane.
pub(super) type Lane = u64;

/// Lanes at work, and waiting lanes in the order of their arrival, each with its principal.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    lanes: HashMap<Lane, Turn>,
    queue: VecDeque<(Lane, Arc<str>)>,
    /// Number of the last turn of each principal.
    served: HashMap<Arc<str>, u64>,
    turns: u64,
}

#[derive(Debug)]
struct Turn {
    principal: Arc<str>,
    begun: Instant,
    last_call: Instant,
}

/// Largest number of lanes that may work: at least one, or `None` for all. `normal`: reads and writes under way.
/// `rate`: cap in seconds of processor time per second, infinite without a cap.
pub(super) fn max_lanes(cores: f64, normal: u64, rate: f64) -> Option<usize> {
    let beside_reads = (normal > 0).then(|| (cores.ceil() - normal as f64).max(1.0) as usize);
    let capped = rate.is_finite().then(|| rate.ceil().max(1.0) as usize);
    match (beside_reads, capped) {
        (Some(beside_reads), Some(capped)) => Some(beside_reads.min(capped)),
        (beside_reads, capped) => beside_reads.or(capped),
    }
}

impl LaneQueue {
    /// Whether a lane of a principal may work now. Lanes call this when they begin, after each block, and while they
    /// wait. A lane that may not work is in the queue afterwards and calls again.
    pub fn may_work(&mut self, lane: Lane, principal: &Arc<str>, now: Instant, most: Option<usize>) -> bool {
        let turn = self.lanes.remove(&lane);
        let others = self.working(now);
        let allowed = match (most, &turn) {
            (None, _) => true,
            (Some(most), Some(turn)) => {
                let worked = now.saturating_duration_since(turn.begun);
                let over = worked >= TURN && !self.queue.is_empty()
                    || worked >= SHORT_TURN && self.another_waits(&turn.principal, now);
                others < most && !(over && others + 1 == most)
            }
            (Some(most), None) => {
                self.join(lane, principal);
                let before = self.waiting(now).iter().position(|other| *other == lane);
                others.saturating_add(before.unwrap_or(0)) < most
            }
        };
        if !allowed {
            self.join(lane, principal);
            return false;
        }
        self.queue.retain(|(other, _)| *other != lane);
        if turn.is_none() {
            self.serve(principal);
        }
        let begun = turn.map_or(now, |turn| turn.begun);
        self.lanes.insert(lane, Turn { principal: principal.clone(), begun, last_call: now });
        true
    }

    /// Whether a lane of another principal without lanes at work waits.
    fn another_waits(&self, principal: &Arc<str>, now: Instant) -> bool {
        let at_work: HashSet<&str> = self.at_work(now).map(|turn| &*turn.principal).collect();
        self.queue.iter().any(|(_, other)| other != principal && !at_work.contains(&**other))
    }

    /// Records a turn of a principal.
    fn serve(&mut self, principal: &Arc<str>) {
        self.turns += 1;
        self.served.insert(principal.clone(), self.turns);
        if self.served.len() > MOST_SERVED {
            let (lanes, queue) = (&self.lanes, &self.queue);
            self.served.retain(|principal, _| {
                lanes.values().any(|turn| turn.principal == *principal)
                    || queue.iter().any(|(_, other)| other == principal)
            });
        }
    }

    /// Puts a lane at the end of the queue, unless the queue contains it.
    fn join(&mut self, lane: Lane, principal: &Arc<str>) {
        if self.queue.iter().all(|(other, _)| *other != lane) {
            self.queue.push_back((lane, principal.clone()));
        }
    }

    /// Whether this lane is at work, as far as its last call shows.
    pub fn works(&self, lane: Lane) -> bool {
        self.lanes.contains_key(&lane)
    }

    /// Removes a lane that ends or no longer waits.
    pub fn leave(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
        self.queue.retain(|(other, _)| *other != lane);
    }

    /// Whether a lane waits.
    pub fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Number of waiting lanes.
    pub fn count(&self) -> usize {
        self.queue.len()
    }

    /// Waiting lanes in the order of their turns: first by the number of lanes of the same principal at work or before
    /// the lane, then by the last turn of the principal, then by arrival.
    pub fn waiting(&self, now: Instant) -> Vec<Lane> {
        let mut of_principal: HashMap<&str, usize> = HashMap::new();
        self.at_work(now).for_each(|turn| *of_principal.entry(&*turn.principal).or_default() += 1);
        let mut ranked = Vec::with_capacity(self.queue.len());
        for (lane, principal) in self.queue.iter() {
            let before = of_principal.entry(&**principal).or_default();
            ranked.push((*before, self.served.get(principal).copied().unwrap_or(0), *lane));
            *before += 1;
        }
        ranked.sort_by_key(|(before, served, _)| (*before, *served));
        ranked.into_iter().map(|(_, _, lane)| lane).collect()
    }

    /// Number of lanes at work.
    fn working(&self, now: Instant) -> usize {
        self.at_work(now).count()
    }

    /// Lanes at work.
    fn at_work(&self, now: Instant) -> impl Iterator<Item = &Turn> {
        self.lanes.values().filter(move |turn| now.saturating_duration_since(turn.last_call) < AWAY)
    }
}

#[cfg(test)]
mod tests;
