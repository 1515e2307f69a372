//! Passes folded on the storage nodes of a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use gristmill_runtime::{
    Control, Crew, ErrorKind, PassOrder, RunError, TakeShard, Tally, UnitEvent, UnitSource,
};
use gristmill_wire::{FAN_IN, FileMap, FoldRequest, Frame, NodeShard};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::bytes::node_name;
use crate::error::unavailable;
use crate::fold::FoldEnd;
use crate::{Peers, groups};

/// How often a value is asked for again when its node cannot be reached: supervised nodes are back soon.
pub(crate) const TRIES: u32 = 3;
pub(crate) const PAUSE: Duration = Duration::from_millis(700);

/// How often somebody who waits looks whether the request was given up.
const LOOK: Duration = Duration::from_millis(50);

/// Frames of rows that are read ahead from a node.
const FRAMES_AHEAD: usize = 2;

/// Has passes folded where a file lies.
pub struct StorageCrew {
    peers: Peers,
    file: FileMap,
    /// What is the same in every request.
    request: FoldRequest,
    nodes: Vec<NodeShard>,
}

impl StorageCrew {
    /// Has these nodes fold. `request` says all but targets and pass; its depth is that of whoever asks.
    pub fn new(peers: Peers, file: FileMap, request: FoldRequest, nodes: Vec<NodeShard>) -> StorageCrew {
        StorageCrew { peers, file, request, nodes }
    }

    fn requests(&self, order: &PassOrder<'_>) -> Vec<(String, String, FoldRequest)> {
        let mut request = self.request.clone();
        request.round = order.ctx.round;
        request.set_shared(&order.ctx.shared);
        request.select = (order.ctx.extent.start, order.ctx.extent.end);
        request.depth += 1;
        let ask = |(node, rest): (NodeShard, Vec<NodeShard>)| {
            let number = node.targets.first().and_then(|target| self.file.targets.get(*target as usize));
            let name = node_name(number.map_or(0, |target| target.number), &node.address);
            let mut request = request.clone();
            (request.targets, request.rest) = (node.targets, rest);
            (node.address, name, request)
        };
        groups(self.nodes.clone(), FAN_IN).into_iter().map(ask).collect()
    }
}

/// Ends tasks whose answers nobody waits for any more; their streams are closed, which stops the nodes.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Crew for StorageCrew {
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError> {
        let requests = self.requests(order);
        let mut waiting = requests.len();
        // One message a request.
        let (sender, heard) = channel();
        let done = Arc::new(AtomicU64::new(0));
        let mut shown = 0;
        let mut tasks = Tasks(Vec::new());
        let targets = self.file.targets.len();
        for (address, node, request) in requests {
            let (peers, sender, done) = (self.peers.clone(), sender.clone(), done.clone());
            tasks.0.push(self.peers.runtime().spawn(async move {
                let mut told = 0;
                let mut progress = |now: u64| {
                    done.fetch_add(now.saturating_sub(told), Ordering::Relaxed);
                    told = told.max(now);
                };
                let end = ask_again(&peers, &address, &node, &request, targets, &mut progress).await;
                // Nobody listens any more once enough is known.
                let _ = sender.send(end);
            }));
        }
        drop(sender);
        while waiting > 0 {
            let end = hear(&heard, order.control)?;
            let now = done.load(Ordering::Relaxed);
            order.control.folded(now - shown);
            shown = now;
            let Some(end) = end else { continue };
            waiting -= 1;
            let FoldEnd { mut end, received } = end?;
            end.tally.sent = end.tally.sent.saturating_add(received);
            if !take(end)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn rows<'o>(&'o self, order: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError> {
        let targets = self.file.targets.len();
        let mut sources: Vec<Box<dyn UnitSource + 'o>> = Vec::new();
        for (address, node, request) in self.requests(order) {
            let (sender, frames) = mpsc::channel(FRAMES_AHEAD);
            let (peers, name) = (self.peers.clone(), node.clone());
            let task = self.peers.runtime().spawn(async move {
                let mut stream = match peers.fold(&address, &name, &request).await {
                    Ok(stream) => stream,
                    Err(error) => return drop(sender.send(Err(error)).await),
                };
                loop {
                    let next = match stream.next().await {
                        Ok(Some(frame)) => Ok(frame),
                        Ok(None) => return,
                        Err(error) => Err(error),
                    };
                    let last = next.is_err();
                    if sender.send(next).await.is_err() || last {
                        return;
                    }
                }
            });
            sources.push(Box::new(RemoteUnits {
                frames,
                control: order.control,
                node,
                targets,
                told: 0,
                received: 0,
                _task: Tasks(vec![task]),
            }));
        }
        Ok(sources)
    }
}

/// Asks for a value, again where the node could not be reached or died: nothing is counted twice, since an answer
/// that is not complete is thrown away.
async fn ask_again(
    peers: &Peers,
    address: &str,
    node: &str,
    request: &FoldRequest,
    targets: usize,
    progress: &mut impl FnMut(u64),
) -> Result<FoldEnd, RunError> {
    let mut tries = 1;
    loop {
        let begun = tokio::time::Instant::now();
        let end = peers.fold_value(address, node, request, targets, &mut *progress).await;
        match end {
            // One that stands still would only stand still again.
            Err(error)
                if error.kind() == ErrorKind::Unavailable
                    && tries < TRIES
                    && begun.elapsed() < peers.stall =>
            {
                tokio::time::sleep(PAUSE).await;
                tries += 1;
            }
            end => return end,
        }
    }
}

/// The next end, or nothing for a while.
fn hear(
    heard: &Receiver<Result<FoldEnd, RunError>>,
    control: &Control,
) -> Result<Option<Result<FoldEnd, RunError>>, RunError> {
    match heard.recv_timeout(LOOK) {
        Ok(end) => Ok(Some(end)),
        Err(RecvTimeoutError::Timeout) if control.stopped() => Err(given_up()),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(RunError::Panicked),
    }
}

fn given_up() -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: "the request was given up before its answer".into() }
}

/// The units of one node.
struct RemoteUnits<'o> {
    frames: mpsc::Receiver<Result<(Frame, usize), RunError>>,
    control: &'o Control,
    node: String,
    targets: usize,
    told: u64,
    received: u64,
    _task: Tasks,
}

impl UnitSource for RemoteUnits<'_> {
    fn received(&self) -> u64 {
        self.received
    }

    fn next(&mut self) -> Result<UnitEvent, RunError> {
        loop {
            if self.control.stopped() {
                return Err(given_up());
            }
            let Some(frame) = self.frames.blocking_recv() else {
                return Err(unavailable(&self.node, "it was cut off before its rows were complete"));
            };
            let (frame, bytes) = frame?;
            self.received += bytes as u64;
            return Ok(match frame {
                Frame::Progress(done) => {
                    self.control.folded(done.saturating_sub(self.told));
                    self.told = self.told.max(done);
                    continue;
                }
                Frame::Begin(at) => UnitEvent::Begin(at),
                Frame::Rows(batch) => UnitEvent::Rows(batch),
                Frame::End(end) => UnitEvent::End(end),
                Frame::Failed(_, error) => UnitEvent::Failed(error.into_error()),
                Frame::Finished(tally) => {
                    // To the end of the stream, which would else be reset.
                    while self.frames.blocking_recv().is_some() {}
                    let tally: Tally = tally.tally(self.targets);
                    UnitEvent::Finished(tally)
                }
                Frame::Partial(_) => {
                    return Err(unavailable(&self.node, "it sent a value where rows were asked for"));
                }
            });
        }
    }
}
