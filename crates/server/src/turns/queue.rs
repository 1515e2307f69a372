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
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// Step of a test: a request of a principal joins, or the request at an index leaves or ends.
    #[derive(Clone, Debug)]
    enum Step {
        Join(usize),
        Leave(usize),
        End(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0usize..5).prop_map(Step::Join),
            1 => any::<usize>().prop_map(Step::Leave),
            2 => any::<usize>().prop_map(Step::End),
        ];
        prop::collection::vec(step, 0..200)
    }

    fn name(principal: usize) -> Arc<str> {
        ["a", "b", "c", "d", "e"][principal].into()
    }

    /// The same order as simple searches through lists.
    #[derive(Default)]
    struct Model {
        waiting: Vec<(Arc<str>, Ticket)>,
        working: Vec<Arc<str>>,
        served: HashMap<Arc<str>, usize>,
        step: usize,
    }

    impl Model {
        fn count(&self, principal: &Arc<str>) -> usize {
            self.working.iter().filter(|one| *one == principal).count()
        }

        fn next(&mut self, most: usize) -> Option<(Arc<str>, Ticket)> {
            let free = most - self.working.len();
            let rank = |(principal, ticket): &(Arc<str>, Ticket)| {
                (self.count(principal), self.served[principal], *ticket)
            };
            let next = self.waiting.iter().min_by_key(|one| rank(one)).cloned()?;
            if self.count(&next.0) >= 3 * free {
                return None;
            }
            self.waiting.retain(|one| *one != next);
            self.working.push(next.0.clone());
            self.step += 1;
            self.served.insert(next.0.clone(), self.step);
            Some(next)
        }

        fn forget(&mut self) {
            let (waiting, working) = (&self.waiting, &self.working);
            self.served.retain(|principal, _| {
                waiting.iter().any(|one| one.0 == *principal) || working.contains(principal)
            });
        }
    }

    proptest! {
        #[test]
        fn turns_go_as_the_rule_says(most in 1usize..12, most_waiting in 1usize..6, steps in steps()) {
            let (mut queue, mut model) = (TurnQueue::new(most, most_waiting), Model::default());
            for step in steps {
                match step {
                    Step::Join(principal) => {
                        let principal = name(principal);
                        let ticket = queue.join(&principal);
                        let many = model.waiting.iter().filter(|one| one.0 == principal).count();
                        prop_assert_eq!(ticket.is_some(), many < most_waiting);
                        if let Some(ticket) = ticket {
                            model.step += 1;
                            model.served.entry(principal.clone()).or_insert(model.step);
                            model.waiting.push((principal, ticket));
                        }
                    }
                    Step::Leave(at) if !model.waiting.is_empty() => {
                        let (principal, ticket) = model.waiting.remove(at % model.waiting.len());
                        queue.leave(&principal, ticket);
                    }
                    Step::End(at) if !model.working.is_empty() => {
                        let principal = model.working.remove(at % model.working.len());
                        queue.end(&principal);
                    }
                    Step::Leave(_) | Step::End(_) => {}
                }
                model.forget();
                // All free turns are given at once.
                loop {
                    let (next, expected) = (queue.next(), model.next(most));
                    prop_assert_eq!(&next, &expected);
                    if next.is_none() {
                        break;
                    }
                }
                prop_assert_eq!(queue.free(), most - model.working.len());
                prop_assert!(model.waiting.is_empty() || queue.free() <= most / 4);
            }
            for principal in model.working {
                queue.end(&principal);
            }
            for (principal, ticket) in model.waiting {
                queue.leave(&principal, ticket);
            }
            prop_assert!(queue.is_empty());
        }

        #[test]
        fn who_waits_is_served_before_anybody_else_is_served_twice(
            before in 0usize..5,
            ends in prop::collection::vec(any::<usize>(), 1..60),
        ) {
            // The other principals always have waiting requests, and new principals arrive.
            let mut queue = TurnQueue::new(1, 1000);
            let mut at_work = Vec::new();
            for principal in 0..=before {
                let _ = queue.join(&name(principal.min(3)));
            }
            at_work.extend(queue.next());
            let waits: Arc<str> = "waits".into();
            let ticket = queue.join(&waits).unwrap();
            let mut served: HashMap<Arc<str>, usize> = HashMap::new();
            for (n, end) in ends.into_iter().enumerate() {
                let _ = queue.join(&name(end % 4));
                let _ = queue.join(&Arc::from(format!("new {n}")));
                at_work.drain(..).for_each(|(principal, _): (Arc<str>, Ticket)| queue.end(&principal));
                let (principal, number) = queue.next().unwrap();
                if principal == waits {
                    prop_assert_eq!(number, ticket);
                    return Ok(());
                }
                prop_assert!(!principal.starts_with("new"));
                let times = served.entry(principal.clone()).or_default();
                *times += 1;
                prop_assert!(*times < 2, "{} is served again", principal);
                at_work.push((principal, number));
            }
        }
    }
}
