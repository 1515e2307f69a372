//! Passes folded on the storage nodes of a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use gristmill_runtime::{
    Control, Crew, ErrorKind, PassOrder, RunError, TakeShard, Tally, TogetherEnd, UnitEvent, UnitSource,
};
use gristmill_wire::{FAN_IN, FileMap, FoldRequest, Frame, NodeShard, Together};
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
        self.requests_of(self.request.clone(), order, FAN_IN)
    }

    /// Has all nodes finish the passes among themselves, and waits for those that were asked here. Of the end nobody but
    /// the node asked first tells.
    pub fn finish(
        &self,
        order: &PassOrder<'_>,
        together: Together,
        fan_in: usize,
    ) -> Result<(Option<TogetherEnd>, Tally), RunError> {
        let again = together.job.is_empty();
        let mut request = self.request.clone();
        request.together = Some(together);
        let requests = self.requests_of(request, order, fan_in);
        let mut waiting = requests.len();
        let (sender, heard) = channel();
        let done = Arc::new(AtomicU64::new(0));
        let mut shown = 0;
        let mut tasks = Tasks(Vec::new());
        let targets = self.file.targets.len();
        for (address, node, request) in requests {
            let (peers, sender, done) = (self.peers.clone(), sender.clone(), done.clone());
            tasks.0.push(self.peers.runtime().spawn(async move {
                // Every pass counts from the beginning again.
                let progress = |now: u64| done.store(now, Ordering::Relaxed);
                let mut tries = if again { 1 } else { TRIES };
                let end = loop {
                    let begun = tokio::time::Instant::now();
                    match peers.fold_together(&address, &node, &request, targets, progress).await {
                        Ok(end) => break Ok(end),
                        Err(error) => match once_more(error, &mut tries, begun, peers.stall).await {
                            Ok(()) => {}
                            Err(error) => break Err(error),
                        },
                    }
                };
                // Nobody listens any more once one has failed.
                let _ = sender.send(end);
            }));
        }
        drop(sender);
        let (mut reached, mut tally) = (None, Tally::new(targets));
        while waiting > 0 {
            let end = hear(&heard, order.control)?;
            let now = done.load(Ordering::Relaxed);
            order.control.folded(now.saturating_sub(shown));
            shown = now;
            let Some(end) = end else { continue };
            waiting -= 1;
            let (end, part) = end?;
            tally.add(&part);
            reached = reached.or(end);
        }
        Ok((reached, tally))
    }

    fn requests_of(
        &self,
        mut request: FoldRequest,
        order: &PassOrder<'_>,
        fan_in: usize,
    ) -> Vec<(String, String, FoldRequest)> {
        request.round = order.ctx.round;
        request.set_shared(&order.ctx.shared);
        request.last = order.ctx.last;
        request.select = (order.ctx.extent.start, order.ctx.extent.end);
        request.depth += 1;
        let ask = |(node, rest): (NodeShard, Vec<NodeShard>)| {
            let number = node.targets.first().and_then(|target| self.file.targets.get(*target as usize));
            let name = node_name(number.map_or(0, |target| target.number), &node.address);
            let mut request = request.clone();
            (request.targets, request.rest) = (node.targets, rest);
            (node.address, name, request)
        };
        groups(self.nodes.clone(), fan_in).into_iter().map(ask).collect()
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

    fn together(&self, order: &PassOrder<'_>) -> Result<Option<TogetherEnd>, RunError> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let together = Together { job: String::new(), members: self.nodes.clone() };
        let (end, tally) = self.finish(order, together, 1)?;
        let end =
            end.ok_or_else(|| unavailable(&self.nodes[0].address, "it told nothing of what it reached"))?;
        Ok(Some(TogetherEnd { tally, ..end }))
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
        match peers.fold_value(address, node, request, targets, &mut *progress).await {
            Err(error) => once_more(error, &mut tries, begun, peers.stall).await?,
            end => return end,
        }
    }
}

/// Waits for the next try where a node could not be reached or died, unless it stood still: it would only do so again.
async fn once_more(
    error: RunError,
    tries: &mut u32,
    begun: tokio::time::Instant,
    stall: Duration,
) -> Result<(), RunError> {
    if error.kind() != ErrorKind::Unavailable || *tries >= TRIES || begun.elapsed() >= stall {
        return Err(error);
    }
    tokio::time::sleep(PAUSE).await;
    *tries += 1;
    Ok(())
}

/// The next end, or nothing for a while.
fn hear<T>(
    heard: &Receiver<Result<T, RunError>>,
    control: &Control,
) -> Result<Option<Result<T, RunError>>, RunError> {
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
                Frame::Partial(_) | Frame::Reached(..) => {
                    return Err(unavailable(&self.node, "it sent a value where rows were asked for"));
                }
            });
        }
    }
}
