//! Order of turns between principals, without threads or clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::limits::PLACES_FOR_EACH_FREE;

/// Number of a waiting request.
pub(crate) type Ticket = u64;

/// Requests of several principals that wait for turns.
///
/// The next turn goes to the principal that waits and has the fewest at work; of several to the one that was served
/// longest ago; of one principal's requests to the one that came first. Nobody has more than [`PLACES_FOR_EACH_FREE`]
/// turns for each that is free, so that somebody who comes finds one. A principal of which nothing is here is
/// forgotten, and one that comes counts as served just now: a new name gains nothing, and whoever waits has the
/// longest time behind it after each of the others was served once.
pub(crate) struct TurnQueue {
    most: usize,
    /// Largest number of waiting requests of one principal.
    most_waiting: usize,
    at_work: usize,
    /// Principals with requests that wait or work.
    principals: HashMap<Arc<str>, PrincipalState>,
    /// Those of whom something waits, by what they have at work and when they were served.
    order: BTreeMap<(usize, u64), Arc<str>>,
    /// Grows with everything that happens, so that no two have the same.
    clock: u64,
}

/// Requests of a principal.
struct PrincipalState {
    at_work: usize,
    /// When it was given its last turn, or came.
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
    /// For so many turns at once, and at most so many of one principal that wait.
    pub fn new(most: usize, most_waiting: usize) -> TurnQueue {
        let (principals, order) = (HashMap::new(), BTreeMap::new());
        TurnQueue { most, most_waiting, at_work: 0, principals, order, clock: 0 }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// One more of this principal waits; `None` if as many do as may.
    pub fn join(&mut self, who: &Arc<str>) -> Option<Ticket> {
        let (ticket, now) = (self.tick(), self.tick());
        let new = || PrincipalState { at_work: 0, served: now, waiting: BTreeSet::new() };
        let state = self.principals.entry(who.clone()).or_insert_with(new);
        if state.waiting.len() < self.most_waiting {
            state.waiting.insert(ticket);
            self.order.insert(state.rank(), who.clone());
            return Some(ticket);
        }
        self.forget_if_idle(who);
        None
    }

    /// One that had its turn and gave it up waits again, with the same number. It was let in before.
    pub fn join_again(&mut self, who: &Arc<str>, ticket: Ticket) {
        let now = self.tick();
        let new = || PrincipalState { at_work: 0, served: now, waiting: BTreeSet::new() };
        let state = self.principals.entry(who.clone()).or_insert_with(new);
        // Behind those who have as many at work.
        self.order.remove(&state.rank());
        state.served = now;
        state.waiting.insert(ticket);
        self.order.insert(state.rank(), who.clone());
    }

    /// Whether somebody waits who has fewer at work than this principal without one of its own.
    pub fn is_wanted(&self, who: &str) -> bool {
        let own = self.principals.get(who).map_or(0, |state| state.at_work);
        self.order.first_key_value().is_some_and(|((least, _), first)| &**first != who && *least < own)
    }

    /// One that waits goes; nothing is done for one that had its turn.
    pub fn leave(&mut self, who: &str, ticket: Ticket) {
        let Some(state) = self.principals.get_mut(who) else { return };
        if state.waiting.remove(&ticket) && state.waiting.is_empty() {
            self.order.remove(&state.rank());
            self.forget_if_idle(who);
        }
    }

    /// Gives a turn that is free to the one that is next, if there is one.
    pub fn next(&mut self) -> Option<(Arc<str>, Ticket)> {
        let free = self.most.saturating_sub(self.at_work);
        // Whoever is first has the fewest: where it may have no more, nobody may.
        let (least, _) = *self.order.first_key_value()?.0;
        if least >= free.saturating_mul(PLACES_FOR_EACH_FREE) {
            return None;
        }
        let now = self.tick();
        let (_, who) = self.order.pop_first()?;
        let state = self.principals.get_mut(&who)?;
        let ticket = state.waiting.pop_first()?;
        (state.at_work, state.served) = (state.at_work + 1, now);
        if !state.waiting.is_empty() {
            self.order.insert(state.rank(), who.clone());
        }
        self.at_work += 1;
        Some((who, ticket))
    }

    /// One of this principal's that had a turn is done with it.
    pub fn end(&mut self, who: &str) {
        let Some(state) = self.principals.get_mut(who) else { return };
        let waits = self.order.remove(&state.rank());
        state.at_work = state.at_work.saturating_sub(1);
        if let Some(who) = waits {
            self.order.insert(state.rank(), who);
        }
        self.at_work = self.at_work.saturating_sub(1);
        self.forget_if_idle(who);
    }

    fn forget_if_idle(&mut self, who: &str) {
        if self.principals.get(who).is_some_and(PrincipalState::is_idle) {
            self.principals.remove(who);
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

    /// What is done to a queue: by a principal, or to the one at this place of all that wait or work.
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

    fn name(who: usize) -> Arc<str> {
        ["a", "b", "c", "d", "e"][who].into()
    }

    /// The rule in the plainest words: lists, looked through from the beginning.
    #[derive(Default)]
    struct Model {
        waiting: Vec<(Arc<str>, Ticket)>,
        working: Vec<Arc<str>>,
        served: HashMap<Arc<str>, usize>,
        step: usize,
    }

    impl Model {
        fn count(&self, who: &Arc<str>) -> usize {
            self.working.iter().filter(|one| *one == who).count()
        }

        fn next(&mut self, most: usize) -> Option<(Arc<str>, Ticket)> {
            let free = most - self.working.len();
            let rank = |(who, ticket): &(Arc<str>, Ticket)| (self.count(who), self.served[who], *ticket);
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
            self.served.retain(|who, _| waiting.iter().any(|one| one.0 == *who) || working.contains(who));
        }
    }

    proptest! {
        #[test]
        fn turns_go_as_the_rule_says(most in 1usize..12, most_waiting in 1usize..6, steps in steps()) {
            let (mut queue, mut model) = (TurnQueue::new(most, most_waiting), Model::default());
            for step in steps {
                match step {
                    Step::Join(who) => {
                        let who = name(who);
                        let ticket = queue.join(&who);
                        let many = model.waiting.iter().filter(|one| one.0 == who).count();
                        prop_assert_eq!(ticket.is_some(), many < most_waiting);
                        if let Some(ticket) = ticket {
                            model.step += 1;
                            model.served.entry(who.clone()).or_insert(model.step);
                            model.waiting.push((who, ticket));
                        }
                    }
                    Step::Leave(at) if !model.waiting.is_empty() => {
                        let (who, ticket) = model.waiting.remove(at % model.waiting.len());
                        queue.leave(&who, ticket);
                    }
                    Step::End(at) if !model.working.is_empty() => {
                        let who = model.working.remove(at % model.working.len());
                        queue.end(&who);
                    }
                    Step::Leave(_) | Step::End(_) => {}
                }
                model.forget();
                // All that are free are given at once, and none else.
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
            for who in model.working {
                queue.end(&who);
            }
            for (who, ticket) in model.waiting {
                queue.leave(&who, ticket);
            }
            prop_assert!(queue.is_empty());
        }

        #[test]
        fn who_waits_is_served_before_anybody_else_is_served_twice(
            before in 0usize..5,
            ends in prop::collection::vec(any::<usize>(), 1..60),
        ) {
            // All others have more than enough that waits, and names that come anew.
            let mut queue = TurnQueue::new(1, 1000);
            let mut at_work = Vec::new();
            for who in 0..=before {
                let _ = queue.join(&name(who.min(3)));
            }
            at_work.extend(queue.next());
            let waits: Arc<str> = "waits".into();
            let ticket = queue.join(&waits).unwrap();
            let mut served: HashMap<Arc<str>, usize> = HashMap::new();
            for (n, end) in ends.into_iter().enumerate() {
                let _ = queue.join(&name(end % 4));
                let _ = queue.join(&Arc::from(format!("new {n}")));
                at_work.drain(..).for_each(|(who, _): (Arc<str>, Ticket)| queue.end(&who));
                let (who, number) = queue.next().unwrap();
                if who == waits {
                    prop_assert_eq!(number, ticket);
                    return Ok(());
                }
                prop_assert!(!who.starts_with("new"));
                let times = served.entry(who.clone()).or_default();
                *times += 1;
                prop_assert!(*times < 2, "{} is served again", who);
                at_work.push((who, number));
            }
        }
    }
}
