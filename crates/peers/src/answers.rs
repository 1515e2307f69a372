//! Requests to several nodes at once, and their answers in the order of arrival.

use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
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

/// The answers of several nodes, one message each.
pub(crate) struct Answers<T> {
    receiver: Receiver<Result<T, RunError>>,
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
            let (answer, sender) = (ask(peers.clone(), request), sender.clone());
            peers.runtime().spawn(async move {
                // The receiver is gone once enough is known or one request has failed.
                let _ = sender.send(answer.await);
            })
        };
        let tasks = AbortOnDrop(requests.into_iter().map(task).collect());
        Answers { receiver, waiting, _tasks: tasks }
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
