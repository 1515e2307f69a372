//! Folding this node's part of a request, and passing on what other nodes make of theirs.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use gristmill_peers::{ON_STORAGE, Question, StorageCrew, file_parts};
use gristmill_runtime::{
    Control, Crew, ErrorKind, PassOrder, RunError, Selection, Shard, ShardEnd, ShardJob, StorePart, Tally,
    UnitEvent, merge_units,
};
use gristmill_store::{ObjectId, StoreError, Version};
use gristmill_wire::{FileMap, FoldRequest, Frame, Grant, MAX_PARTIAL_BYTES, NodeShard, Rights, TallyFrame};
use tokio::sync::{Semaphore, mpsc};

use crate::error::{Answer, Refusal};
use crate::limits::{ANSWER_STALL, MAX_MAX_RECORD};
use crate::node::Shared;
use crate::objects::elsewhere;
use crate::seat::Seat;
use crate::units::{EventOutput, EventSource, FrameOutput};
use crate::value_answer::{Turn, ValueAnswer};

/// Where frames go.
pub(crate) type Frames = mpsc::Sender<Result<Frame, Refusal>>;

/// Units that a node's own fold may be ahead of what is sent, where other nodes' rows come between.
const EVENTS_AHEAD: usize = 4;

/// A fold that was checked and can run.
pub(crate) struct Fold {
    shared: Arc<Shared>,
    job: ShardJob,
    path: String,
    file: FileMap,
    /// Nodes that are to be asked in turn.
    crew: Option<StorageCrew>,
    /// How many nodes have passed the request on.
    depth: usize,
    pub control: Arc<Control>,
    /// Given back when the last thread that works at this is done.
    _seat: Seat,
}

impl Fold {
    /// Checks a request. Blocks: the store is asked for the state of the objects.
    pub fn new(shared: &Arc<Shared>, request: FoldRequest) -> Answer<Fold> {
        let grant = shared.grant(&request.grant, Rights::Read)?;
        let run = node_request(shared, &grant, &request)?;
        let shard = Shard {
            targets: request.targets.clone(),
            round: request.round,
            shared: request.shared()?.into(),
            last: request.last,
            select: request.select.0..request.select.1,
        };
        let job = ShardJob::new(run, shard)?;
        let seats = if job.gives_rows() { &shared.row_folds } else { &shared.value_folds };
        let seat = seats.take(&shared.address)?;
        let rest = request.rest.clone();
        check_rest(&grant.file, &request.targets, &rest)?;
        let file = grant.file;
        let depth = request.depth as usize;
        let crew =
            (!rest.is_empty()).then(|| StorageCrew::new(shared.peers.clone(), file.clone(), request, rest));
        let path = file.path.clone();
        let control = Arc::new(Control::new());
        Ok(Fold { shared: shared.clone(), job, path, file, crew, depth, control, _seat: seat })
    }

    /// Runs to the end; frames go to `out`. Ends early when nobody listens: whoever drops the other end of `out` stops
    /// `control` too.
    pub async fn run(self, out: Frames) {
        let fold = Arc::new(self);
        let work = async {
            if fold.job.gives_rows() {
                let out = out.clone();
                return fold.on_thread(None, move |fold, _| fold.rows(&out)).await;
            }
            fold.values().await?.send(&out, &fold.shared.answers, ANSWER_STALL).await
        };
        tokio::select! {
            () = out.closed() => {}
            result = work => if let Err(error) = result {
                // Nobody listens if the client is gone.
                let _ = out.send(Err(fold.refusal(error))).await;
            },
        }
    }

    fn refusal(&self, error: RunError) -> Refusal {
        match error {
            RunError::Store(error) => self.shared.of_store(&self.path, error),
            other => other.into(),
        }
    }

    fn order(&self) -> PassOrder<'_> {
        PassOrder { kernel: self.job.kernel(), ctx: self.job.ctx(), control: &self.control }
    }

    /// Does what blocks on a thread of its own; with `turns`, once one of them is free, which the work then has for as
    /// long as it keeps it.
    async fn on_thread<T: Send + 'static>(
        self: &Arc<Fold>,
        turns: Option<&Arc<Semaphore>>,
        work: impl FnOnce(&Fold, Turn) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let turn = match turns {
            Some(turns) => Some(turns.clone().acquire_owned().await.map_err(|_| RunError::Panicked)?),
            None => None,
        };
        let fold = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&fold, turn));
        done.await.map_err(|_| RunError::Panicked)?
    }

    async fn values(self: &Arc<Fold>) -> Result<ValueAnswer, RunError> {
        let turns = Some(&self.shared.folds);
        if self.crew.is_none() {
            let work = |fold: &Fold, turn| fold.answer(fold.job.values(&fold.control)?, turn);
            return self.on_thread(turns, work).await;
        }
        // Held until both parts are joined, so that only so many wait in memory for their other part.
        let _relay = match self.shared.relays.get(self.depth) {
            Some(relays) => Some(relays.clone().acquire_owned().await.map_err(|_| RunError::Panicked)?),
            None => None,
        };
        // Who waits for other nodes has no turn of the folds, or nodes could wait for each other's for ever.
        let own = self.on_thread(turns, |fold, _turn| fold.job.values(&fold.control));
        let rest = self.on_thread(None, |fold, _turn| fold.rest());
        let both = async { tokio::try_join!(own, rest) }.await;
        // Where one failed, nobody needs the other's part any more.
        let (mut end, rest) = both.inspect_err(|_| self.control.stop())?;
        let joined = move |fold: &Fold, turn| {
            fold.join(&mut end, rest)?;
            fold.answer(end, turn)
        };
        self.on_thread(turns, joined).await
    }

    /// What a fold for values ends with.
    fn answer(&self, end: ShardEnd, turn: Turn) -> Result<ValueAnswer, RunError> {
        let ShardEnd { partial: end, failure, tally } = end;
        let mut partial = Vec::new();
        end.encode(&mut partial);
        if partial.len() > MAX_PARTIAL_BYTES {
            let message = format!(
                "the partial result of {} on one storage node has {} bytes, more than {MAX_PARTIAL_BYTES}; \
                 put the file again with a larger stripe unit",
                self.path,
                partial.len()
            );
            return Err(RunError::Remote { kind: ErrorKind::Data, message });
        }
        let failed = failure.map(|(at, error)| Frame::Failed(at, self.refusal(error).0));
        let last = failed.into_iter().chain([Frame::Finished(TallyFrame::of(&tally))]).collect();
        Ok(ValueAnswer { partial, last, turn })
    }

    /// What the nodes asked in turn made of theirs.
    fn rest(&self) -> Result<ShardEnd, RunError> {
        let mut all = ShardEnd::new(self.job.ctx().round, self.file.targets.len());
        let Some(crew) = &self.crew else { return Ok(all) };
        crew.values(&self.order(), &mut |end| self.join(&mut all, end).map(|()| true))?;
        // What nodes send each other crosses the network between them.
        all.tally.moved += std::mem::take(&mut all.tally.sent);
        Ok(all)
    }

    fn join(&self, all: &mut ShardEnd, other: ShardEnd) -> Result<(), RunError> {
        all.join(&**self.job.kernel(), self.job.ctx(), other)
    }

    fn rows(&self, out: &Frames) -> Result<(), RunError> {
        let mut output = FrameOutput { out };
        let Some(crew) = &self.crew else {
            let tally = self.job.rows(&mut output, &self.control)?;
            return output.send(Frame::Finished(TallyFrame::of(&tally)));
        };
        let mut tally = Tally::new(self.file.targets.len());
        std::thread::scope(|scope| {
            let (sender, events) = sync_channel(EVENTS_AHEAD);
            scope.spawn(move || {
                let mut own = EventOutput { out: &sender };
                let last = match self.job.rows(&mut own, &self.control) {
                    Ok(tally) => UnitEvent::Finished(tally),
                    Err(error) => UnitEvent::Failed(error),
                };
                // Nobody listens once enough is known.
                let _ = sender.send(last);
            });
            let order = self.order();
            let mut sources = crew.rows(&order)?;
            sources.push(Box::new(EventSource { events }));
            merge_units(sources, &mut output, &mut tally)
        })?;
        tally.moved += std::mem::take(&mut tally.sent);
        output.send(Frame::Finished(TallyFrame::of(&tally)))
    }
}

/// What this node runs for a request.
pub(crate) fn node_request(
    shared: &Arc<Shared>,
    grant: &Grant,
    request: &FoldRequest,
) -> Answer<gristmill_runtime::Request> {
    if request.max_record > MAX_MAX_RECORD {
        let text = format!(
            "lines of up to {} bytes are more than a node takes, {MAX_MAX_RECORD}; lower --max-record or use --place client",
            request.max_record
        );
        return Err(Refusal::new(ErrorKind::Usage, text));
    }
    let question = Question {
        kernel: request.kernel.clone(),
        params: request.params.clone(),
        input: request.input.clone(),
        range: None,
    };
    let options = shared.options(request.max_record);
    let opened = opened(grant, request);
    let mut run = question.request(&shared.peers, &opened, ON_STORAGE, options).map_err(Refusal::from)?;
    run.file = own_parts(shared, grant, request)?;
    run.selection = Selection { skip: request.input.skip, range: None };
    Ok(run)
}

/// Nodes to be asked in turn must be where the grant has them: nobody makes a node call on strangers.
fn check_rest(file: &FileMap, own: &[u32], rest: &[NodeShard]) -> Answer<()> {
    let named = own.iter().chain(rest.iter().flat_map(|shard| &shard.targets));
    check_once(named)?;
    check_places(file, rest)
}

/// The same for all nodes of a group.
pub(crate) fn check_nodes(file: &FileMap, nodes: &[NodeShard]) -> Answer<()> {
    check_rest(file, &[], nodes)
}

fn check_once<'a>(targets: impl Iterator<Item = &'a u32>) -> Answer<()> {
    let mut named: Vec<u32> = targets.copied().collect();
    let count = named.len();
    named.sort_unstable();
    named.dedup();
    if named.len() < count {
        return Err(Refusal::new(ErrorKind::Usage, "a target is named twice; name each once"));
    }
    Ok(())
}

fn check_places(file: &FileMap, rest: &[NodeShard]) -> Answer<()> {
    let known = |shard: &NodeShard, target: &u32| {
        file.targets.get(*target as usize).is_some_and(|place| place.address == shard.address)
    };
    match rest.iter().find(|shard| shard.targets.is_empty() || !shard.targets.iter().all(|t| known(shard, t)))
    {
        None => Ok(()),
        Some(shard) => {
            let text = format!("{} is no node of these targets; open the file again", shard.address);
            Err(Refusal::new(ErrorKind::Denied, text))
        }
    }
}

fn opened(grant: &Grant, request: &FoldRequest) -> gristmill_wire::action::Opened {
    let info = gristmill_wire::action::FileInfo {
        file: grant.file.clone(),
        owner: grant.principal.clone(),
        mode: 0,
        created: 0,
    };
    gristmill_wire::action::Opened { info, grant: request.grant.clone() }
}

/// The file as this node sees it: its own targets in its store, those of others over the network.
fn own_parts(
    shared: &Arc<Shared>,
    grant: &Grant,
    request: &FoldRequest,
) -> Answer<gristmill_runtime::FileParts> {
    let number = shared.number()?;
    let sealed: Arc<str> = request.grant.as_str().into();
    let mut file = file_parts(&shared.peers, &grant.file, &sealed, ON_STORAGE)?;
    let object = ObjectId::new(&grant.file.object()).map_err(StoreError::from)?;
    for target in &request.targets {
        let at = *target as usize;
        let place = grant.file.targets.get(at).filter(|place| place.number == number);
        let (Some(place), Some(part)) = (place, file.parts.get_mut(at)) else {
            return Err(elsewhere(&shared.address));
        };
        if file.layout.bytes_on(*target, 0..file.length) == 0 {
            continue;
        }
        let node = format!("{number} ({})", shared.address);
        let own = StorePart::open_at(shared.store.clone(), object.clone(), Version(place.version), node);
        let own = own.map_err(|error| match error {
            RunError::Store(error) => shared.of_store(&grant.file.path, error),
            other => other.into(),
        })?;
        let expected = file.layout.bytes_on(*target, 0..file.length);
        if own.length() != expected {
            let text = format!(
                "storage node {number} ({}) has {} bytes of {} instead of {expected}: its object is damaged; \
                 put the file again from its source",
                shared.address,
                own.length(),
                grant.file.path
            );
            return Err(Refusal::new(ErrorKind::Failed, text));
        }
        *part = Arc::new(own);
    }
    Ok(file)
}
