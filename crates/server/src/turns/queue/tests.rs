//! Tests of the order of turns.
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
