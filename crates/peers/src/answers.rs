//! Nodes that were asked at once, and their answers as they come.

use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::FoldRequest;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::Peers;

/// How often something is asked for again when its node cannot be reached: supervised nodes are back soon.
pub(crate) const TRIES: u32 = 3;
pub(crate) const PAUSE: Duration = Duration::from_millis(700);

/// How often somebody who waits looks whether the request was given up.
const LOOK: Duration = Duration::from_millis(50);

/// A request for one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRequest {
    pub address: String,
    /// How errors name the node.
    pub node: String,
    pub request: FoldRequest,
}

/// Ends tasks whose answers nobody waits for any more; their streams are closed, which stops the nodes.
pub(crate) struct Tasks(pub Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// What several nodes answer, one message each.
pub(crate) struct Answers<T> {
    heard: Receiver<Result<T, RunError>>,
    waiting: usize,
    _tasks: Tasks,
}

impl<T: Send + 'static> Answers<T> {
    /// Asks all of them at once.
    pub fn of<F>(
        peers: &Peers,
        requests: Vec<NodeRequest>,
        ask: impl Fn(Peers, NodeRequest) -> F,
    ) -> Answers<T>
    where
        F: Future<Output = Result<T, RunError>> + Send + 'static,
    {
        let (sender, heard) = channel();
        let waiting = requests.len();
        let task = |request| {
            let (answer, sender) = (ask(peers.clone(), request), sender.clone());
            peers.runtime().spawn(async move {
                // Nobody listens any more once enough is known, or one has failed.
                let _ = sender.send(answer.await);
            })
        };
        let tasks = Tasks(requests.into_iter().map(task).collect());
        Answers { heard, waiting, _tasks: tasks }
    }

    /// The next answer; `None` after the last. `look` is called every now and then.
    pub fn next(&mut self, control: &Control, look: &mut dyn FnMut()) -> Result<Option<T>, RunError> {
        while self.waiting > 0 {
            let heard = self.heard.recv_timeout(LOOK);
            look();
            match heard {
                Ok(answer) => {
                    self.waiting -= 1;
                    return answer.map(Some);
                }
                Err(RecvTimeoutError::Timeout) if control.stopped() => return Err(given_up()),
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

/// Waits for the next try where a node could not be reached or died, unless it stood still: it would only do so again.
pub(crate) async fn once_more(
    error: RunError,
    tries: &mut u32,
    begun: Instant,
    stall: Duration,
) -> Result<(), RunError> {
    if error.kind() != ErrorKind::Unavailable || *tries >= TRIES || begun.elapsed() >= stall {
        return Err(error);
    }
    tokio::time::sleep(PAUSE).await;
    *tries += 1;
    Ok(())
}

pub(crate) fn given_up() -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: "the request was given up before its answer".into() }
}
