//! Turns to work that go to principals one after the other, so that nobody who asks for much keeps others waiting.
//!
//! [`TurnQueue`] is the rule alone and knows no threads; [`Turns`] gives turns to those who await them.

mod queue;
mod yielding;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_runtime::{ErrorKind, RunError};
use queue::{Ticket, TurnQueue};
use tokio::sync::oneshot;

pub(crate) use yielding::Yielding;

/// Turns of a kind: so many at once, and a bounded number of each principal that wait.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Whether anybody waits.
    crowded: AtomicBool,
}

struct State {
    queue: TurnQueue,
    /// Those who await their turns. All are in the queue, and nobody else is.
    awaiting: HashMap<Ticket, oneshot::Sender<Turn>>,
}

/// A turn of a principal; given back when dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    who: Arc<str>,
    ticket: Ticket,
}

impl Turn {
    /// Whether somebody waits who has less at work than this principal would have without this turn.
    fn is_wanted(&self) -> bool {
        self.turns.state().queue.is_wanted(&self.who)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().queue.end(&self.who);
        self.turns.hand_out();
    }
}

/// One who waits. Its place is given up when it is dropped.
struct Waiter {
    turns: Arc<Turns>,
    who: Arc<str>,
    ticket: Ticket,
    /// Dropped last: a turn that came too late for anybody is given back then.
    turn: oneshot::Receiver<Turn>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.queue.leave(&self.who, self.ticket);
        state.awaiting.remove(&self.ticket);
        self.turns.count(&state);
    }
}

impl Waiter {
    /// The turn, once it comes. Nothing but a turn ends the wait: who is in the queue has its sender in the map.
    async fn turn_of(mut self) -> Option<Turn> {
        (&mut self.turn).await.ok()
    }
}

impl Turns {
    /// So many turns at once. Of one principal at most `most_waiting` wait.
    pub fn new(most: usize, most_waiting: usize) -> Arc<Turns> {
        let state = State { queue: TurnQueue::new(most, most_waiting), awaiting: HashMap::new() };
        Arc::new(Turns { state: Mutex::new(state), crowded: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. Whoever stops waiting gives its place up.
    ///
    /// # Errors
    /// As many requests of this principal wait as may.
    pub async fn turn(self: &Arc<Self>, who: &Arc<str>) -> Result<Turn, RunError> {
        let waiter = self.join(who)?;
        self.hand_out();
        waiter.turn_of().await.ok_or(RunError::Panicked)
    }

    /// Whether anybody waits.
    fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    fn count(&self, state: &State) {
        self.crowded.store(!state.awaiting.is_empty(), Ordering::Relaxed);
    }

    fn join(self: &Arc<Self>, who: &Arc<str>) -> Result<Waiter, RunError> {
        let (sender, turn) = oneshot::channel();
        let mut state = self.state();
        let Some(ticket) = state.queue.join(who) else {
            let message = format!("too many requests of {who} wait for their turns here; try again later");
            return Err(RunError::Remote { kind: ErrorKind::Busy, message });
        };
        state.awaiting.insert(ticket, sender);
        self.count(&state);
        drop(state);
        Ok(Waiter { turns: self.clone(), who: who.clone(), ticket, turn })
    }

    /// Waits for a turn with the number of one that was given up, so before all others of the principal that came later.
    fn join_again(self: &Arc<Self>, who: &Arc<str>, ticket: Ticket) -> Waiter {
        let (sender, turn) = oneshot::channel();
        let mut state = self.state();
        state.queue.join_again(who, ticket);
        state.awaiting.insert(ticket, sender);
        self.count(&state);
        drop(state);
        Waiter { turns: self.clone(), who: who.clone(), ticket, turn }
    }

    /// Gives all turns that are free to those who are next.
    fn hand_out(self: &Arc<Self>) {
        // A turn that nobody takes is given back when it is dropped, which needs the lock: after it was let go.
        let mut left = Vec::new();
        let mut state = self.state();
        while let Some((who, ticket)) = state.queue.next() {
            let turn = Turn { turns: self.clone(), who, ticket };
            match state.awaiting.remove(&ticket) {
                Some(sender) => left.extend(sender.send(turn).err()),
                None => left.push(turn),
            }
        }
        self.count(&state);
        drop(state);
    }

    /// Turns that nobody has.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.state().queue.free()
    }

    /// Those who wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state().awaiting.len()
    }

    /// Takes all turns as soon as they are to be had, for principals of no other request.
    #[cfg(test)]
    pub async fn all(self: &Arc<Self>) -> Vec<Turn> {
        let most = self.state().queue.most();
        let mut turns = Vec::new();
        while turns.len() < most {
            let who = Arc::from(format!("turn {}", turns.len()));
            turns.push(self.turn(&who).await.unwrap_or_else(|_| unreachable!("one waits at a time")));
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::{Future, poll_fn};
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll};

    use futures_util::future::join_all;
    use tokio::sync::mpsc;

    use super::*;

    fn name(who: &str) -> Arc<str> {
        who.into()
    }

    #[tokio::test]
    async fn a_flood_keeps_another_waiting_for_one_turn_only() {
        const FLOOD: usize = 500;
        let turns = Turns::new(1, FLOOD);
        let (done, mut order) = mpsc::unbounded_channel();
        let (flood, other) = (name("flood"), name("other"));
        let first = turns.turn(&flood).await.unwrap();
        let requests = std::iter::repeat_n(flood, FLOOD).chain(std::iter::repeat_n(other.clone(), 3));
        let requests: Vec<_> = requests
            .map(|who| {
                let waiter = turns.join(&who).unwrap();
                let done = done.clone();
                async move {
                    let mut waiter = waiter;
                    let turn = (&mut waiter.turn).await.unwrap();
                    done.send(turn.who.clone()).unwrap();
                }
            })
            .collect();
        drop(first);
        join_all(requests).await;
        drop(done);
        let mut came = Vec::new();
        while let Some(who) = order.recv().await {
            came.push(who);
        }
        assert_eq!(came.len(), FLOOD + 3);
        let at: Vec<usize> = (0..came.len()).filter(|n| came[*n] == other).collect();
        assert!(at.iter().enumerate().all(|(n, at)| *at <= 2 * n + 1), "{at:?}");
    }

    #[tokio::test]
    async fn beyond_the_bound_nobody_waits() {
        let turns = Turns::new(1, 2);
        let (one, other) = (name("one"), name("other"));
        let held = turns.turn(&one).await.unwrap();
        let waiting = [turns.join(&one).unwrap(), turns.join(&one).unwrap()];
        let Err(error) = turns.turn(&one).await else { unreachable!("two wait") };
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("one"), "{error}");
        assert!(turns.join(&other).is_ok());
        drop(waiting);
        assert!(turns.join(&one).is_ok());
        drop(held);
        assert_eq!(turns.free(), 1);
    }

    #[tokio::test]
    async fn a_turn_that_comes_while_its_waiter_goes_is_given_on() {
        let turns = Turns::new(1, 8);
        let who = name("who");
        let held = turns.turn(&who).await.unwrap();
        // Given a turn that it never looks at.
        let waiter = turns.join(&who).unwrap();
        let next = turns.join(&name("next")).unwrap();
        drop(held);
        drop(waiter);
        let mut next = next;
        drop((&mut next.turn).await.unwrap());
        assert_eq!(turns.free(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_turn_is_lost_or_given_twice_among_many_that_come_and_go() {
        const MOST: usize = 3;
        let turns = Turns::new(MOST, 1000);
        let (at_work, served) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..600)
            .map(|n| {
                let (turns, at_work, served) = (turns.clone(), at_work.clone(), served.clone());
                tokio::spawn(async move {
                    let who = name(["a", "b", "c", "d"][n % 4]);
                    if n % 3 == 0 {
                        // Goes after it was polled once or twice.
                        let mut waiting = Box::pin(turns.turn(&who));
                        for _ in 0..n % 2 + 1 {
                            let polled =
                                |cx: &mut Context<'_>| Poll::Ready(waiting.as_mut().poll(cx).is_ready());
                            if poll_fn(polled).await {
                                return;
                            }
                            tokio::task::yield_now().await;
                        }
                        return;
                    }
                    let turn = turns.turn(&who).await.unwrap();
                    assert!(at_work.fetch_add(1, Ordering::SeqCst) < MOST);
                    for _ in 0..n % 5 {
                        tokio::task::yield_now().await;
                    }
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    served.fetch_add(1, Ordering::SeqCst);
                    drop(turn);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!((served.load(Ordering::SeqCst), turns.free()), (400, MOST));
        let state = turns.state();
        assert!(state.awaiting.is_empty() && state.queue.is_empty());
    }
}
