//! Requests to several nodes at once, and their answers in the order of arrival.

use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::FoldRequest;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::Peers;

/// Number of times that a node is asked if it cannot be reached. Supervised nodes are back soon.
pub(crate) const MAX_TRIES: u32 = 3;
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(700);

/// Time between two checks whether the request was stopped, during a wait for answers.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A request for one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRequest {
    pub address: String,
    /// The name of the node in errors.
    pub node: String,
    pub request: FoldRequest,
}

/// Tasks that end when this is dropped. Their streams are closed then, which stops the nodes.
pub(crate) struct AbortOnDrop(pub Vec<JoinHandle<()>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// A promised answer. If it is dropped without one, the answer is an error: nobody waits for ever.
pub(crate) struct Promise<T>(Option<Sender<Result<T, RunError>>>);

impl<T> Promise<T> {
    /// Gives the answer.
    pub fn give(mut self, answer: Result<T, RunError>) {
        if let Some(sender) = self.0.take() {
            // The receiver is gone once enough is known or one request has failed.
            let _ = sender.send(answer);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ =
                sender.send(Err(RunError::Internal { what: "a request to a node ended without an answer" }));
        }
    }
}

/// The answers of several nodes, one message each.
pub(crate) struct Answers<T> {
    sender: Sender<Result<T, RunError>>,
    receiver: Receiver<Result<T, RunError>>,
    /// Number of promised answers that did not arrive yet.
    waiting: usize,
    _tasks: AbortOnDrop,
}

impl<T: Send + 'static> Answers<T> {
    /// Asks all nodes at once.
    pub fn ask_all<F>(
        peers: &Peers,
        requests: Vec<NodeRequest>,
        ask: impl Fn(Peers, NodeRequest) -> F,
    ) -> Answers<T>
    where
        F: Future<Output = Result<T, RunError>> + Send + 'static,
    {
        let (sender, receiver) = channel();
        let waiting = requests.len();
        let task = |request| {
            let (answer, promise) = (ask(peers.clone(), request), Promise(Some(sender.clone())));
            peers.runtime().spawn(async move { promise.give(answer.await) })
        };
        let tasks = AbortOnDrop(requests.into_iter().map(task).collect());
        Answers { sender, receiver, waiting, _tasks: tasks }
    }

    /// Promises one more answer.
    pub fn promise(&mut self) -> Promise<T> {
        self.waiting += 1;
        Promise(Some(self.sender.clone()))
    }

    /// The next answer, or `None` after the last. `on_poll` is called at short intervals.
    pub fn next(&mut self, control: &Control, on_poll: &mut dyn FnMut()) -> Result<Option<T>, RunError> {
        while self.waiting > 0 {
            let received = self.receiver.recv_timeout(POLL_INTERVAL);
            on_poll();
            match received {
                Ok(answer) => {
                    self.waiting -= 1;
                    return answer.map(Some);
                }
                Err(RecvTimeoutError::Timeout) if control.stopped() => return Err(RunError::given_up()),
                Err(RecvTimeoutError::Timeout) => {}
                // It cannot happen: a sender is kept here.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Internal {
                        what: "the answers of nodes ended before the last one",
                    });
                }
            }
        }
        Ok(None)
    }
}

/// Waits before the next try if a node could not be reached or died. Returns the error after the last try, and for a node
/// that was silent: it would be silent again.
pub(crate) async fn wait_to_retry(
    error: RunError,
    tries: &mut u32,
    begun: Instant,
    stall: Duration,
) -> Result<(), RunError> {
    if error.kind() != ErrorKind::Unavailable || *tries >= MAX_TRIES || begun.elapsed() >= stall {
        return Err(error);
    }
    tokio::time::sleep(RETRY_PAUSE).await;
    *tries += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_dropped_is_an_error() {
        let (sender, receiver) = channel();
        let mut answers = Answers { sender, receiver, waiting: 0, _tasks: AbortOnDrop(Vec::new()) };
        let (kept, dropped) = (answers.promise(), answers.promise());
        kept.give(Ok(7));
        drop(dropped);
        let mut next = || answers.next(&Control::new(), &mut || {});
        assert!(matches!(next(), Ok(Some(7))));
        assert!(matches!(next(), Err(RunError::Internal { .. })));
        assert!(matches!(next(), Ok(None)));
    }
}
