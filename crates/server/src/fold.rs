//! Fold of this node's part of a request. It passes on the results of other nodes' parts.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use gristmill_peers::StorageCrew;
use gristmill_runtime::{
    Control, Crew, ErrorKind, EventOutput, EventSource, HandBack, PassOrder, RowCut, RowsEnd, RunError,
    Shard, ShardEnd, ShardJob, Tally, UnitEvent, merge_units,
};
use gristmill_wire::action::Receipt;
use gristmill_wire::{FileMap, FoldRequest, Frame, MAX_PARTIAL_BYTES, TallyFrame};

use crate::contention::active::Work;
use crate::contention::admitted::Admitted;
use crate::door::Caller;
use crate::error::{Answer, Refusal};
use crate::frames::FrameSender;
use crate::hand_off::HandOff;
use crate::keep::Output;
use crate::limits::ANSWER_STALL;
use crate::own_parts::{check_rest, granted, node_request};
use crate::permit::Permit;
use crate::shared::Shared;
use crate::turns::Yielding;
use crate::units::FrameOutput;
use crate::value_answer::{Turn, ValueAnswer};

/// Units that a node's own fold may be ahead of the sender while it merges rows of other nodes.
const EVENTS_AHEAD: usize = 4;

/// A fold, checked and ready to run.
pub(crate) struct Fold {
    shared: Arc<Shared>,
    job: ShardJob,
    path: String,
    file: FileMap,
    /// Object for the bytes of the fold, if they stay on this node.
    output: Option<Output>,
    /// Nodes that this node must ask.
    crew: Option<StorageCrew>,
    /// Number of nodes that have passed the request on.
    depth: usize,
    pub control: Arc<Control>,
    /// Control of this node's own part.
    hand_off: Arc<HandOff>,
    /// Targets of this node's own part.
    targets: Vec<u32>,
    /// Principal of the grant.
    principal: Arc<str>,
    admitted: Admitted,
    /// Returned when the last thread of the fold is done.
    _held: (Permit, Caller),
}

impl Fold {
    /// Checks a request. Blocks: the store is asked for the state of the objects.
    ///
    /// `from`: address that the request comes from. `caller`: account whose memory the request has.
    ///
    /// # Errors
    /// Returns an error if the request or its grant is invalid, or if the node is busy.
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
        let work = Work::new(&request, &run, kernel, &grant.principal)?;
        let job = ShardJob::new(run, shard)?;
        let permits = if job.gives_rows() { &shared.row_folds } else { &shared.value_folds };
        let principal: Arc<str> = grant.principal.as_str().into();
        let permit = shared.permit(permits, &principal)?;
        let (targets, rest) = (request.targets.clone(), request.rest.clone());
        let movable = output.is_none() && job.can_save();
        // A request that a node passed on comes from that node, not from the client.
        let from = from.filter(|_| request.depth <= 1);
        let work = Work { asker: work.asker.filter(|_| movable), from, ..work };
        check_rest(files.map(), &targets, &rest)?;
        let file = files.map().clone();
        let depth = request.depth as usize;
        let crew = (!rest.is_empty()).then(|| StorageCrew::new(shared.peers.clone(), files, request, rest));
        let path = file.path.clone();
        let control = Arc::new(Control::new());
        let hand_off = Arc::new(HandOff::new(&control, shared.pace(&principal)));
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
            principal,
            admitted,
            _held: (permit, caller),
        })
    }

    /// Runs the fold and sends frames to `out`. It ends early if the receiver of `out` is dropped; the code that drops
    /// it also stops `control`.
    pub async fn run(self, out: FrameSender) {
        let fold = Arc::new(self);
        let work = async {
            fold.admitted.wait_for_decision().await;
            if fold.job.gives_rows() {
                fold.admitted.set_running();
                let out = out.clone();
                return fold.on_thread(None, move |fold, _| fold.rows(&out)).await;
            }
            fold.values().await?.send(&out, &fold.shared.answers, &fold.principal, ANSWER_STALL).await
        };
        tokio::select! {
            () = out.closed() => {}
            result = work => if let Err(error) = result {
                // Sending fails if the client is gone.
                let _ = out.send(Err(fold.refusal(error))).await;
            },
        }
    }

    fn refusal(&self, error: RunError) -> Refusal {
        self.shared.explain_run_error(&self.path, error).into()
    }

    fn order(&self) -> PassOrder<'_> {
        PassOrder { kernel: self.job.kernel(), ctx: self.job.ctx(), control: &self.control }
    }

    /// Runs blocking work on a thread of its own. The work owns its turn.
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
        let turn = self.shared.folds.turn(&self.principal).await?;
        self.admitted.set_running();
        let turn = Yielding::new(turn, self.shared.peers.runtime());
        self.hand_off.pace.set_turn(&turn);
        Ok(Some(turn))
    }

    /// Waits for a turn. `None` if the work is handed back before its turn.
    async fn turn_unless_handed_off(&self) -> Result<Turn, RunError> {
        tokio::select! {
            biased;
            () = self.hand_off.requested() => Ok(None),
            turn = self.turn() => turn,
        }
    }

    /// Folds this node's own part. Returns also the receipt for the bytes that stay on this node.
    async fn own(self: &Arc<Fold>) -> Result<(ShardEnd, Option<(u32, Receipt)>), RunError> {
        let Some(output) = &self.output else {
            let turn = self.turn_unless_handed_off().await?;
            return self.on_thread(turn, |fold, turn| Ok((fold.own_values(&turn)?, None))).await;
        };
        let unfinished = output.begin(&self.shared).await?;
        let work = move |fold: &Fold, _turn| {
            let Some(output) = &fold.output else {
                return Err(RunError::Internal { what: "a fold that keeps its bytes has no output" });
            };
            let (end, written) = output.keep(&fold.shared, &fold.job, unfinished, &fold.hand_off.own)?;
            Ok((end, Some(written)))
        };
        tokio::select! {
            biased;
            error = output.removed(&self.shared) => {
                self.control.stop();
                Err(error)
            }
            kept = async { self.on_thread(self.turn().await?, work).await } => kept,
        }
    }

    /// Folds this node's own part for a value until it is handed back. Without a turn nothing is folded.
    fn own_values(&self, turn: &Turn) -> Result<ShardEnd, RunError> {
        let mut end = match turn {
            Some(_) => self.job.values(&self.hand_off.own)?,
            None => ShardEnd::new(self.job.ctx().round, self.file.targets.len()),
        };
        end.handed_back.extend(self.handed_back(RowCut::default()));
        Ok(end)
    }

    /// The hand-back of the rest of the own part, if it is handed back.
    fn handed_back(&self, row_cut: RowCut) -> Option<HandBack> {
        let targets = self.targets.clone();
        self.hand_off.why().map(|why| HandBack { targets, row_cut, why })
    }

    async fn values(self: &Arc<Fold>) -> Result<ValueAnswer, RunError> {
        if self.crew.is_none() && self.output.is_none() {
            let work = |fold: &Fold, turn| fold.answer(fold.own_values(&turn)?, Vec::new(), turn);
            return self.on_thread(self.turn_unless_handed_off().await?, work).await;
        }
        // Held until both parts are joined. This bounds the number of parts in memory that wait for the other part.
        let _relay = match self.shared.relays.get(self.depth) {
            Some(relays) => Some(relays.turn(&self.principal).await?),
            None => None,
        };
        // A request that waits for other nodes has no turn of the folds, or nodes could wait for each other for ever.
        let own = self.own();
        let rest = self.on_thread(None, |fold, _turn| fold.rest());
        let both = async { tokio::try_join!(own, rest) }.await;
        // If one part failed, the other is no longer needed.
        let ((mut end, written), (rest, others)) = both.inspect_err(|_| self.control.stop())?;
        let joined = move |fold: &Fold, turn| {
            fold.join(&mut end, rest)?;
            fold.answer(end, written.into_iter().chain(others).collect(), turn)
        };
        self.on_thread(self.turn().await?, joined).await
    }

    /// Makes the answer of a fold for a value.
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
        let end = Frame::Finished(TallyFrame::new(&tally));
        let last = left.chain(failed).chain(written).chain([end]);
        Ok(ValueAnswer { partial, last: last.collect(), turn })
    }

    /// Folds the parts of the nodes that this node asks. Returns also the receipts for the bytes that stay on them.
    fn rest(&self) -> Result<(ShardEnd, Vec<(u32, Receipt)>), RunError> {
        let mut all = ShardEnd::new(self.job.ctx().round, self.file.targets.len());
        let Some(crew) = &self.crew else { return Ok((all, Vec::new())) };
        crew.values(&self.order(), &mut |end| self.join(&mut all, end).map(|()| true))?;
        // Bytes that nodes send each other are moved between them.
        all.tally.moved += std::mem::take(&mut all.tally.sent);
        Ok((all, crew.written()))
    }

    fn join(&self, all: &mut ShardEnd, other: ShardEnd) -> Result<(), RunError> {
        all.join(&**self.job.kernel(), self.job.ctx(), other)
    }

    fn rows(&self, out: &FrameSender) -> Result<(), RunError> {
        let runtime = self.shared.peers.runtime();
        let mut output = FrameOutput { out, runtime };
        let Some(crew) = &self.crew else {
            let RowsEnd { tally, row_cut } = self.job.rows(&mut output, &self.hand_off.own)?;
            if let Some(hand_back) = row_cut.and_then(|row_cut| self.handed_back(row_cut)) {
                output.send(Frame::HandedBack(hand_back))?;
            }
            return output.send(Frame::Finished(TallyFrame::new(&tally)));
        };
        let mut tally = Tally::new(self.file.targets.len());
        std::thread::scope(|scope| {
            let (sender, events) = sync_channel(EVENTS_AHEAD);
            scope.spawn(move || {
                let mut own = EventOutput(&sender);
                // Sending fails once enough rows are known.
                let _ = match self.job.rows(&mut own, &self.hand_off.own) {
                    Ok(RowsEnd { tally, row_cut }) => {
                        let hand_back = row_cut.and_then(|row_cut| self.handed_back(row_cut));
                        let events = hand_back.map(UnitEvent::HandedBack).into_iter();
                        events.chain([UnitEvent::Finished(tally)]).try_for_each(|event| sender.send(event))
                    }
                    Err(error) => sender.send(UnitEvent::Failed(error)),
                };
            });
            let order = self.order();
            let mut sources = crew.rows(&order)?;
            sources.push(Box::new(EventSource(events)));
            // The client also continues the parts that other nodes hand back.
            let pass_on = &mut |hand_back| {
                FrameOutput { out, runtime }.send(Frame::HandedBack(hand_back)).map(|()| None)
            };
            merge_units(sources, &mut output, &mut tally, pass_on)
        })?;
        tally.moved += std::mem::take(&mut tally.sent);
        output.send(Frame::Finished(TallyFrame::new(&tally)))
    }
}
