//! Folding this node's part of a request, and passing on what other nodes make of theirs.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use gristmill_peers::StorageCrew;
use gristmill_runtime::{
    Control, Crew, ErrorKind, EventOutput, EventSource, HandBack, Left, PassOrder, RowsEnd, RunError, Shard,
    ShardEnd, ShardJob, Tally, UnitEvent, merge_units,
};
use gristmill_wire::action::Receipt;
use gristmill_wire::{FileMap, FoldRequest, Frame, MAX_PARTIAL_BYTES, TallyFrame};

use crate::contention::active::Work;
use crate::contention::admitted::Admitted;
use crate::door::Caller;
use crate::error::{Answer, Refusal};
use crate::frames::Frames;
use crate::hand_off::HandOff;
use crate::keep::Output;
use crate::limits::ANSWER_STALL;
use crate::node::Shared;
use crate::own_parts::{check_rest, granted, node_request};
use crate::permit::Permit;
use crate::turns::Yielding;
use crate::units::FrameOutput;
use crate::value_answer::{Turn, ValueAnswer};

/// Units that a node's own fold may be ahead of what is sent, where other nodes' rows come between.
const EVENTS_AHEAD: usize = 4;

/// A fold that was checked and can run.
pub(crate) struct Fold {
    shared: Arc<Shared>,
    job: ShardJob,
    path: String,
    file: FileMap,
    /// Where the bytes that are made stay, if they do.
    output: Option<Output>,
    /// Nodes that are to be asked in turn.
    crew: Option<StorageCrew>,
    /// How many nodes have passed the request on.
    depth: usize,
    pub control: Arc<Control>,
    /// This node's own part, and the targets it is of.
    hand_off: Arc<HandOff>,
    targets: Vec<u32>,
    /// For whom.
    who: Arc<str>,
    admitted: Admitted,
    /// Given back when the last thread that works at this is done.
    _held: (Permit, Caller),
}

impl Fold {
    /// Checks a request. Blocks: the store is asked for the state of the objects.
    /// `from`: where the request comes from.
    /// `caller`: whose memory the request has.
    pub fn new(
        shared: &Arc<Shared>,
        request: FoldRequest,
        from: Option<IpAddr>,
        caller: Caller,
    ) -> Answer<Fold> {
        let (grant, files) = granted(shared, &request)?;
        let (run, kernel) = node_request(shared, &files, &request, &caller)?;
        let shard = Shard {
            targets: request.targets.clone(),
            round: request.round,
            shared: request.shared()?.into(),
            last: request.last,
            keep: request.output.is_some(),
            select: request.select.0..request.select.1,
        };
        let output = request.output.as_deref();
        let output =
            output.map(|sealed| Output::new(shared, sealed, &grant, &request.targets)).transpose()?;
        let work = Work::of(&request, &run, kernel, &grant.principal)?;
        let job = ShardJob::new(run, shard)?;
        let permits = if job.gives_rows() { &shared.row_folds } else { &shared.value_folds };
        let who: Arc<str> = grant.principal.as_str().into();
        let permit = shared.permit(permits, &who)?;
        let (targets, rest) = (request.targets.clone(), request.rest.clone());
        let movable = output.is_none() && job.can_save();
        // What a node passed on comes from that node, and not from whoever would go on with it.
        let from = from.filter(|_| request.depth <= 1);
        let work = Work { asker: work.asker.filter(|_| movable), from, ..work };
        check_rest(files.map(), &targets, &rest)?;
        let file = files.map().clone();
        let depth = request.depth as usize;
        let crew = (!rest.is_empty()).then(|| StorageCrew::new(shared.peers.clone(), files, request, rest));
        let path = file.path.clone();
        let control = Arc::new(Control::new());
        let hand_off = Arc::new(HandOff::new(&control, shared.pace(&who)));
        let admitted = shared.contention.admit(work, hand_off.clone(), &shared.address)?;
        let shared = shared.clone();
        Ok(Fold {
            shared,
            job,
            path,
            file,
            output,
            crew,
            depth,
            control,
            hand_off,
            targets,
            who,
            admitted,
            _held: (permit, caller),
        })
    }

    /// Runs to the end; frames go to `out`. Ends early when nobody listens: whoever drops the other end of `out` stops
    /// `control` too.
    pub async fn run(self, out: Frames) {
        let fold = Arc::new(self);
        let work = async {
            fold.admitted.decided().await;
            if fold.job.gives_rows() {
                fold.admitted.runs();
                let out = out.clone();
                return fold.on_thread(None, move |fold, _| fold.rows(&out)).await;
            }
            fold.values().await?.send(&out, &fold.shared.answers, &fold.who, ANSWER_STALL).await
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
        self.shared.of_run(&self.path, error).into()
    }

    fn order(&self) -> PassOrder<'_> {
        PassOrder { kernel: self.job.kernel(), ctx: self.job.ctx(), control: &self.control }
    }

    /// Does what blocks on a thread of its own. The work has its turn for as long as it keeps it.
    async fn on_thread<T: Send + 'static>(
        self: &Arc<Fold>,
        turn: Turn,
        work: impl FnOnce(&Fold, Turn) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let fold = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&fold, turn));
        done.await.map_err(|_| RunError::Panicked)?
    }

    async fn turn(&self) -> Result<Turn, RunError> {
        let turn = self.shared.folds.turn(&self.who).await?;
        self.admitted.runs();
        let turn = Yielding::new(turn, self.shared.peers.runtime());
        self.hand_off.pace.has_turn(&turn);
        Ok(Some(turn))
    }

    /// A turn, or none if the work is handed back before there is one.
    async fn turn_unless_handed_off(&self) -> Result<Turn, RunError> {
        tokio::select! {
            biased;
            () = self.hand_off.requested() => Ok(None),
            turn = self.turn() => turn,
        }
    }

    /// This node's own part, and the receipt for what it keeps.
    async fn own(self: &Arc<Fold>) -> Result<(ShardEnd, Option<(u32, Receipt)>), RunError> {
        let Some(output) = &self.output else {
            let turn = self.turn_unless_handed_off().await?;
            return self.on_thread(turn, |fold, turn| Ok((fold.own_values(&turn)?, None))).await;
        };
        let unfinished = output.begin(&self.shared).await?;
        let work = move |fold: &Fold, _turn| {
            let Some(output) = &fold.output else { return Err(RunError::Panicked) };
            let (end, written) = output.keep(&fold.shared, &fold.job, unfinished, &fold.hand_off.own)?;
            Ok((end, Some(written)))
        };
        tokio::select! {
            biased;
            error = output.over(&self.shared) => {
                self.control.stop();
                Err(error)
            }
            kept = async { self.on_thread(self.turn().await?, work).await } => kept,
        }
    }

    /// Folds this node's own part for a value, as far as it is let: not at all without a turn.
    fn own_values(&self, turn: &Turn) -> Result<ShardEnd, RunError> {
        let mut end = match turn {
            Some(_) => self.job.values(&self.hand_off.own)?,
            None => ShardEnd::new(self.job.ctx().round, self.file.targets.len()),
        };
        end.handed_back.extend(self.handed_back(Left::default()));
        Ok(end)
    }

    /// What is left of the own part, if it is handed back.
    fn handed_back(&self, left: Left) -> Option<HandBack> {
        let targets = self.targets.clone();
        self.hand_off.why().map(|why| HandBack { targets, left, why })
    }

    async fn values(self: &Arc<Fold>) -> Result<ValueAnswer, RunError> {
        if self.crew.is_none() && self.output.is_none() {
            let work = |fold: &Fold, turn| fold.answer(fold.own_values(&turn)?, Vec::new(), turn);
            return self.on_thread(self.turn_unless_handed_off().await?, work).await;
        }
        // Held until both parts are joined, so that only so many wait in memory for their other part.
        let _relay = match self.shared.relays.get(self.depth) {
            Some(relays) => Some(relays.turn(&self.who).await?),
            None => None,
        };
        // Who waits for other nodes has no turn of the folds, or nodes could wait for each other's for ever.
        let own = self.own();
        let rest = self.on_thread(None, |fold, _turn| fold.rest());
        let both = async { tokio::try_join!(own, rest) }.await;
        // Where one failed, nobody needs the other's part any more.
        let ((mut end, written), (rest, others)) = both.inspect_err(|_| self.control.stop())?;
        let joined = move |fold: &Fold, turn| {
            fold.join(&mut end, rest)?;
            fold.answer(end, written.into_iter().chain(others).collect(), turn)
        };
        self.on_thread(self.turn().await?, joined).await
    }

    /// What a fold for values ends with.
    fn answer(
        &self,
        end: ShardEnd,
        written: Vec<(u32, Receipt)>,
        turn: Turn,
    ) -> Result<ValueAnswer, RunError> {
        let ShardEnd { partial: end, failure, tally, handed_back } = end;
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
        let written = written.into_iter().map(|(target, receipt)| Frame::Written(target, receipt));
        let left = handed_back.into_iter().map(Frame::HandedBack);
        let end = Frame::Finished(TallyFrame::of(&tally));
        let last = left.chain(failed).chain(written).chain([end]);
        Ok(ValueAnswer { partial, last: last.collect(), turn })
    }

    /// What the nodes asked in turn made of theirs, and the receipts for what they keep.
    fn rest(&self) -> Result<(ShardEnd, Vec<(u32, Receipt)>), RunError> {
        let mut all = ShardEnd::new(self.job.ctx().round, self.file.targets.len());
        let Some(crew) = &self.crew else { return Ok((all, Vec::new())) };
        crew.values(&self.order(), &mut |end| self.join(&mut all, end).map(|()| true))?;
        // What nodes send each other crosses the network between them.
        all.tally.moved += std::mem::take(&mut all.tally.sent);
        Ok((all, crew.written()))
    }

    fn join(&self, all: &mut ShardEnd, other: ShardEnd) -> Result<(), RunError> {
        all.join(&**self.job.kernel(), self.job.ctx(), other)
    }

    fn rows(&self, out: &Frames) -> Result<(), RunError> {
        let runtime = self.shared.peers.runtime();
        let mut output = FrameOutput { out, runtime };
        let Some(crew) = &self.crew else {
            let RowsEnd { tally, left } = self.job.rows(&mut output, &self.hand_off.own)?;
            if let Some(hand_back) = left.and_then(|left| self.handed_back(left)) {
                output.send(Frame::HandedBack(hand_back))?;
            }
            return output.send(Frame::Finished(TallyFrame::of(&tally)));
        };
        let mut tally = Tally::new(self.file.targets.len());
        std::thread::scope(|scope| {
            let (sender, events) = sync_channel(EVENTS_AHEAD);
            scope.spawn(move || {
                let mut own = EventOutput(&sender);
                // Nobody listens once enough is known.
                let _ = match self.job.rows(&mut own, &self.hand_off.own) {
                    Ok(RowsEnd { tally, left }) => {
                        let hand_back = left.and_then(|left| self.handed_back(left));
                        let events = hand_back.map(UnitEvent::HandedBack).into_iter();
                        events.chain([UnitEvent::Finished(tally)]).try_for_each(|event| sender.send(event))
                    }
                    Err(error) => sender.send(UnitEvent::Failed(error)),
                };
            });
            let order = self.order();
            let mut sources = crew.rows(&order)?;
            sources.push(Box::new(EventSource(events)));
            // Whoever asked goes on, with what others hand back too.
            let pass_on = &mut |hand_back| {
                FrameOutput { out, runtime }.send(Frame::HandedBack(hand_back)).map(|()| None)
            };
            merge_units(sources, &mut output, &mut tally, pass_on)
        })?;
        tally.moved += std::mem::take(&mut tally.sent);
        output.send(Frame::Finished(TallyFrame::of(&tally)))
    }
}
