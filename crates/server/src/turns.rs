//! Turns to work, which go to principals one after the other: a principal with many requests does not delay others.
//!
//! [`TurnQueue`] is the order without threads. [`Turns`] gives turns to the tasks that wait.

mod queue;
mod yielding;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_runtime::{ErrorKind, RunError};
use queue::{Ticket, TurnQueue};
use tokio::sync::oneshot;

pub(crate) use yielding::Yielding;

/// Turns for one kind of work. The numbers of turns and of waiting requests of each principal are bounded.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Whether a request waits.
    crowded: AtomicBool,
}

struct State {
    queue: TurnQueue,
    /// Waiting requests: exactly the ones in the queue.
    awaiting: HashMap<Ticket, oneshot::Sender<Turn>>,
}

/// A turn of a principal. Dropping it returns it.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    principal: Arc<str>,
    ticket: Ticket,
}

impl Turn {
    /// Whether another principal waits that has fewer turns than this principal would have without this one.
    fn is_wanted(&self) -> bool {
        self.turns.state().queue.is_wanted(&self.principal)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().queue.end(&self.principal);
        self.turns.hand_out();
    }
}

/// A waiting request. Dropping it gives up its place.
struct Waiter {
    turns: Arc<Turns>,
    principal: Arc<str>,
    ticket: Ticket,
    /// Dropped last: this returns a turn that arrived too late.
    turn: oneshot::Receiver<Turn>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.queue.leave(&self.principal, self.ticket);
        state.awaiting.remove(&self.ticket);
        self.turns.count(&state);
    }
}

impl Waiter {
    /// Waits for the turn. Only a turn ends the wait, because each request in the queue has its sender in the map.
    async fn wait(mut self) -> Option<Turn> {
        (&mut self.turn).await.ok()
    }
}

impl Turns {
    /// Creates `most` turns. At most `most_waiting` requests of one principal wait.
    pub fn new(most: usize, most_waiting: usize) -> Arc<Turns> {
        let state = State { queue: TurnQueue::new(most, most_waiting), awaiting: HashMap::new() };
        Arc::new(Turns { state: Mutex::new(state), crowded: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. A caller that stops waiting gives up its place.
    ///
    /// # Errors
    /// Returns an error if the largest number of requests of this principal wait already.
    pub async fn turn(self: &Arc<Self>, principal: &Arc<str>) -> Result<Turn, RunError> {
        let waiter = self.join(principal)?;
        self.hand_out();
        waiter
            .wait()
            .await
            .ok_or(RunError::Internal { what: "a waiting request lost its place in the queue" })
    }

    /// Whether a request waits.
    fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    fn count(&self, state: &State) {
        self.crowded.store(!state.awaiting.is_empty(), Ordering::Relaxed);
    }

    fn join(self: &Arc<Self>, principal: &Arc<str>) -> Result<Waiter, RunError> {
        let (sender, turn) = oneshot::channel();
        let mut state = self.state();
        let Some(ticket) = state.queue.join(principal) else {
            let message =
                format!("too many requests of {principal} wait for their turns here; try again later");
            return Err(RunError::Remote { kind: ErrorKind::Busy, message });
        };
        state.awaiting.insert(ticket, sender);
        self.count(&state);
        drop(state);
        Ok(Waiter { turns: self.clone(), principal: principal.clone(), ticket, turn })
    }

    /// Waits for a turn with the number of a turn that was given up, and so before all later requests of the principal.
    fn join_again(self: &Arc<Self>, principal: &Arc<str>, ticket: Ticket) -> Waiter {
        let (sender, turn) = oneshot::channel();
        let mut state = self.state();
        state.queue.join_again(principal, ticket);
        state.awaiting.insert(ticket, sender);
        self.count(&state);
        drop(state);
        Waiter { turns: self.clone(), principal: principal.clone(), ticket, turn }
    }

    /// Gives all free turns to the next requests.
    fn hand_out(self: &Arc<Self>) {
        let mut handed = Vec::new();
        let mut state = self.state();
        while let Some((principal, ticket)) = state.queue.next() {
            let turn = Turn { turns: self.clone(), principal, ticket };
            handed.push((state.awaiting.remove(&ticket), turn));
        }
        self.count(&state);
        drop(state);
        // This needs no lock: sending wakes a task, and a turn that nobody takes returns itself under the lock.
        for (sender, turn) in handed {
            if let Some(sender) = sender {
                drop(sender.send(turn));
            }
        }
    }

    /// Number of free turns.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.state().queue.free()
    }

    /// Number of waiting requests.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state().awaiting.len()
    }

    /// Takes all turns, each for a principal without other requests.
    #[cfg(test)]
    pub async fn all(self: &Arc<Self>) -> Vec<Turn> {
        let most = self.state().queue.most();
        let mut turns = Vec::new();
        while turns.len() < most {
            let principal = Arc::from(format!("turn {}", turns.len()));
            turns.push(self.turn(&principal).await.unwrap_or_else(|_| unreachable!("one waits at a time")));
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

    fn name(principal: &str) -> Arc<str> {
        principal.into()
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
            .map(|principal| {
                let waiter = turns.join(&principal).unwrap();
                let done = done.clone();
                async move {
                    let mut waiter = waiter;
                    let turn = (&mut waiter.turn).await.unwrap();
                    done.send(turn.principal.clone()).unwrap();
                }
            })
            .collect();
        drop(first);
        join_all(requests).await;
        drop(done);
        let mut came = Vec::new();
        while let Some(principal) = order.recv().await {
            came.push(principal);
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
        let principal = name("who");
        let held = turns.turn(&principal).await.unwrap();
        // This waiter gets a turn and never takes it.
        let waiter = turns.join(&principal).unwrap();
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
                    let principal = name(["a", "b", "c", "d"][n % 4]);
                    if n % 3 == 0 {
                        // This request is dropped after one or two polls.
                        let mut waiting = Box::pin(turns.turn(&principal));
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
                    let turn = turns.turn(&principal).await.unwrap();
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
