//! Order of turns between principals, without threads or clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::limits::PLACES_FOR_EACH_FREE;

/// Number of a waiting request.
pub(crate) type Ticket = u64;

/// Requests of several principals that wait for turns.
///
/// The next turn goes to the waiting principal with the fewest turns. Among equals it goes to the principal whose last
/// turn began first, and among requests of one principal to the first that arrived. A principal has at most
/// [`PLACES_FOR_EACH_FREE`] turns for each free one, so that a new principal finds one. A principal without requests is
/// forgotten, and a new one counts as served just now. So a new name gains nothing, and a waiting principal is next
/// after each of the others had one turn.
pub(crate) struct TurnQueue {
    most: usize,
    /// Largest number of waiting requests of one principal.
    most_waiting: usize,
    at_work: usize,
    /// Principals with requests that wait or have turns.
    principals: HashMap<Arc<str>, PrincipalState>,
    /// Principals with waiting requests, by their number of turns and the time of their last turn.
    order: BTreeMap<(usize, u64), Arc<str>>,
    /// Counter of events: each event has its own time.
    clock: u64,
}

/// Requests of a principal.
struct PrincipalState {
    at_work: usize,
    /// Time of its last turn, or of its arrival.
    served: u64,
    waiting: BTreeSet<Ticket>,
}

impl PrincipalState {
    fn rank(&self) -> (usize, u64) {
        (self.at_work, self.served)
    }

    fn is_idle(&self) -> bool {
        self.at_work == 0 && self.waiting.is_empty()
    }
}

impl TurnQueue {
    /// Creates a queue for `most` turns. At most `most_waiting` requests of one principal wait.
    pub fn new(most: usize, most_waiting: usize) -> TurnQueue {
        let (principals, order) = (HashMap::new(), BTreeMap::new());
        TurnQueue { most, most_waiting, at_work: 0, principals, order, clock: 0 }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Adds a waiting request. `None` if the largest number of requests of this principal wait already.
    pub fn join(&mut self, principal: &Arc<str>) -> Option<Ticket> {
        let (ticket, now) = (self.tick(), self.tick());
        let new = || PrincipalState { at_work: 0, served: now, waiting: BTreeSet::new() };
        let state = self.principals.entry(principal.clone()).or_insert_with(new);
        if state.waiting.len() < self.most_waiting {
            state.waiting.insert(ticket);
            self.order.insert(state.rank(), principal.clone());
            return Some(ticket);
        }
        self.forget_if_idle(principal);
        None
    }

    /// Adds a request that gave up its turn, with the same number. The bound does not apply to it.
    pub fn join_again(&mut self, principal: &Arc<str>, ticket: Ticket) {
        let now = self.tick();
        let new = || PrincipalState { at_work: 0, served: now, waiting: BTreeSet::new() };
        let state = self.principals.entry(principal.clone()).or_insert_with(new);
        // Its place is behind the principals with as many turns.
        self.order.remove(&state.rank());
        state.served = now;
        state.waiting.insert(ticket);
        self.order.insert(state.rank(), principal.clone());
    }

    /// Whether another principal waits that has fewer turns than this principal would have with one less.
    pub fn is_wanted(&self, principal: &str) -> bool {
        let own = self.principals.get(principal).map_or(0, |state| state.at_work);
        self.order.first_key_value().is_some_and(|((least, _), first)| &**first != principal && *least < own)
    }

    /// Removes a waiting request. Nothing happens if it has its turn already.
    pub fn leave(&mut self, principal: &str, ticket: Ticket) {
        let Some(state) = self.principals.get_mut(principal) else { return };
        if state.waiting.remove(&ticket) && state.waiting.is_empty() {
            self.order.remove(&state.rank());
            self.forget_if_idle(principal);
        }
    }

    /// Gives a free turn to the next request, if there is one.
    pub fn next(&mut self) -> Option<(Arc<str>, Ticket)> {
        let free = self.most.saturating_sub(self.at_work);
        // The first principal has the fewest turns. If it may have no more, no principal may.
        let (least, _) = *self.order.first_key_value()?.0;
        if least >= free.saturating_mul(PLACES_FOR_EACH_FREE) {
            return None;
        }
        let now = self.tick();
        let (_, principal) = self.order.pop_first()?;
        let state = self.principals.get_mut(&principal)?;
        let ticket = state.waiting.pop_first()?;
        (state.at_work, state.served) = (state.at_work + 1, now);
        if !state.waiting.is_empty() {
            self.order.insert(state.rank(), principal.clone());
        }
        self.at_work += 1;
        Some((principal, ticket))
    }

    /// Ends a turn of this principal.
    pub fn end(&mut self, principal: &str) {
        let Some(state) = self.principals.get_mut(principal) else { return };
        let waits = self.order.remove(&state.rank());
        state.at_work = state.at_work.saturating_sub(1);
        if let Some(principal) = waits {
            self.order.insert(state.rank(), principal);
        }
        self.at_work = self.at_work.saturating_sub(1);
        self.forget_if_idle(principal);
    }

    fn forget_if_idle(&mut self, principal: &str) {
        if self.principals.get(principal).is_some_and(PrincipalState::is_idle) {
            self.principals.remove(principal);
        }
    }
}

#[cfg(test)]
impl TurnQueue {
    pub fn most(&self) -> usize {
        self.most
    }

    pub fn free(&self) -> usize {
        self.most - self.at_work
    }

    pub fn is_empty(&self) -> bool {
        self.principals.is_empty() && self.order.is_empty() && self.at_work == 0
    }
}

#[cfg(test)]
mod tests;
