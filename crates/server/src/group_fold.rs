//! Passes that the nodes of a file finish together: this node's part, and the requests to other nodes.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_collective::{CollectiveError, Rank};
use gristmill_peers::{MemberAddress, StorageCrew};
use gristmill_runtime::{
    Control, ErrorKind, Group, GroupEnd, GroupJob, HandBack, JoinEnds, Partial, PassOrder, RowCut, RunError,
    ShardEnd, Tally,
};
use gristmill_wire::{FAN_IN, FoldRequest, Frame, NodeShard, TallyFrame};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::runtime::Handle;

use crate::contention::active::Work;
use crate::contention::admitted::Admitted;
use crate::door::Caller;
use crate::error::{Answer, Refusal};
use crate::exchange::{Exchange, as_body};
use crate::frames::FrameSender;
use crate::group_work::Participation;
use crate::hand_off::HandOff;
use crate::limits::ANSWER_STALL;
use crate::own_parts::{check_nodes, granted, node_request};
use crate::permit::Permit;
use crate::shared::Shared;
use crate::turns::Yielding;
use crate::value_answer::ValueAnswer;

/// This node's part of a job, checked and ready to run.
pub(crate) struct GroupFold {
    shared: Arc<Shared>,
    work: GroupJob,
    exchange: Exchange,
    participation: Participation,
    crew: Option<StorageCrew>,
    members: Vec<NodeShard>,
    path: String,
    targets: usize,
    rank: Rank,
    /// The first failure.
    first: Mutex<Option<RunError>>,
    pub control: Arc<Control>,
    /// Control of this node's own part.
    hand_off: Arc<HandOff>,
    /// Principal of the grant.
    principal: Arc<str>,
    admitted: Admitted,
    _held: (Permit, Caller),
}

impl GroupFold {
    /// Checks a request. Blocks: the store is asked for the state of the objects.
    ///
    /// `from`: address that the request comes from. `caller`: account whose memory the request has.
    ///
    /// # Errors
    /// Returns an error if the request or its grant is invalid, if its members do not match the file, or if the node is
    /// busy.
    pub fn new(
        shared: &Arc<Shared>,
        mut request: FoldRequest,
        from: Option<IpAddr>,
        caller: Caller,
    ) -> Answer<GroupFold> {
        let usage = |text: &str| Refusal::new(ErrorKind::Usage, text);
        let (grant, files) = granted(shared, &request)?;
        let together = request.together.take().ok_or_else(|| usage("the request names no members"))?;
        let principal: Arc<str> = grant.principal.as_str().into();
        let rank = together.members.iter().position(|member| member.targets == request.targets);
        let rank = rank.ok_or_else(|| usage("this node is not one of the members"))?;
        check_nodes(files.map(), &together.members)?;
        let job = match (together.job.is_empty(), rank) {
            (true, 0) => draw()?,
            (false, _) => together.job,
            (true, _) => {
                return Err(usage("the request has no job name; send it to the node of rank 0 first"));
            }
        };
        let (run, kernel) = node_request(shared, &files, &request, &caller)?;
        let control = Arc::new(Control::new());
        let hand_off = Arc::new(HandOff::at_passes(&control, shared.pace(&principal)));
        let can_save = run.kernel.spec().can_save;
        let active_work = Work::new(&request, &run, kernel, &grant.principal)?;
        let from = from.filter(|_| request.depth <= 1);
        let active_work = Work { asker: active_work.asker.filter(|_| can_save), from, ..active_work };
        let admitted = shared.contention.admit(active_work, hand_off.clone(), &shared.address)?;
        let work = GroupJob::new(run, request.targets.clone(), request.select.0..request.select.1)?;
        let permit = shared.permit(&shared.group_permits, &principal)?;
        let participation = shared.group_work.begin(&job, &grant.file.id)?;
        let place = |member: &NodeShard| {
            let number = member.targets.first().and_then(|target| files.map().targets.get(*target as usize));
            let number = number.map_or(0, |target| target.number);
            MemberAddress { address: member.address.clone(), node: format!("{number} ({})", member.address) }
        };
        let places = together.members.iter().map(place).collect();
        let rank = Rank::try_from(rank).unwrap_or(Rank::MAX);
        let exchange = Exchange::new(shared.peers.clone(), request.grant.clone(), job, places, rank);
        let rest = std::mem::take(&mut request.rest);
        let (path, targets) = (files.map().path.clone(), files.map().targets.len());
        let crew = (!rest.is_empty()).then(|| StorageCrew::new(shared.peers.clone(), files, request, rest));
        Ok(GroupFold {
            shared: shared.clone(),
            work,
            exchange,
            participation,
            crew,
            members: together.members,
            path,
            targets,
            rank,
            first: Mutex::default(),
            control,
            hand_off,
            principal,
            admitted,
            _held: (permit, caller),
        })
    }

    /// Runs the part and sends frames to `out`. It ends early if the receiver of `out` is dropped; the code that drops
    /// it also stops `control`.
    pub async fn run(self, out: FrameSender) {
        let fold = Arc::new(self);
        let work = async {
            let answer = fold.clone().answer().await?;
            answer.send(&out, &fold.shared.answers, &fold.principal, ANSWER_STALL).await
        };
        tokio::select! {
            () = out.closed() => {
                let text = "the client of the request is gone";
                fold.participation.fail(as_body(&RunError::Remote { kind: ErrorKind::Failed, message: text.into() }));
            }
            result = work => if let Err(error) = result {
                // Sending fails if the client is gone.
                let _ = out.send(Err(error.into())).await;
            },
        }
    }

    async fn answer(self: Arc<Self>) -> Result<ValueAnswer, RunError> {
        let (member, passing) = (self.clone(), self.clone());
        let own = tokio::task::spawn_blocking(move || {
            let end = member.work.run(&*member, &member.hand_off.own);
            end.map_err(|error| member.failed(error))
        });
        let rest =
            tokio::task::spawn_blocking(move || passing.pass_on().map_err(|error| passing.failed(error)));
        // A panic is a failure that was not recorded yet.
        let own = async { own.await.inspect_err(|_| self.failed(RunError::Panicked)) };
        let rest = async { rest.await.inspect_err(|_| self.failed(RunError::Panicked)) };
        let (own, rest) = tokio::join!(own, rest);
        let (Ok(Ok(end)), Ok(Ok(mut tally))) = (own, rest) else {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            return Err(first.unwrap_or(RunError::Internal { what: "a group failed without an error" }));
        };
        // Bytes that nodes send each other are moved between them.
        tally.moved += std::mem::take(&mut tally.sent);
        tally.add(&end.tally);
        let finished = Frame::Finished(TallyFrame::new(&tally));
        if self.rank != 0 {
            return Ok(ValueAnswer { partial: Vec::new(), last: vec![finished], turn: None });
        }
        let GroupEnd { round, shared, whole, handed_back, .. } = end;
        let reached = Frame::Reached(round, shared.to_vec());
        let last = handed_back.into_iter().map(Frame::HandedBack).chain([reached, finished]).collect();
        Ok(ValueAnswer { partial: whole, last, turn: None })
    }

    /// Records that the own part, or the part of a node asked by this one, failed, and stops the rest. Only the first
    /// failure is kept: later ones follow from it.
    fn failed(&self, error: RunError) {
        self.participation.fail(as_body(&error));
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.control.stop();
    }

    /// Sends the request to the nodes that this node must ask.
    fn pass_on(&self) -> Result<Tally, RunError> {
        let Some(crew) = &self.crew else { return Ok(Tally::new(self.targets)) };
        let order = PassOrder { kernel: self.work.kernel(), ctx: self.work.ctx(), control: &self.control };
        let (job, members) = (self.participation.job.clone(), self.members.clone());
        let (_, tally) = crew.finish_passes(&order, gristmill_wire::GroupSpec { job, members }, FAN_IN)?;
        Ok(tally)
    }
}

/// Draws a random name of a job, which cannot be guessed.
fn draw() -> Answer<String> {
    let mut bytes = [0; 16];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| Refusal::new(ErrorKind::Failed, "the system gave no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Group for GroupFold {
    fn allreduce(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError> {
        let mut broken = None;
        let mut operator = |lower: Vec<u8>, higher: Vec<u8>| {
            let joined =
                decode(&lower, self.targets).and_then(|lower| join(lower, decode(&higher, self.targets)?));
            joined.map(|joined| encode(&joined)).map_err(|error| {
                let text = error.to_string();
                broken = Some(error);
                CollectiveError::Operator(text)
            })
        };
        let exchanged =
            self.exchange.allreduce(&self.participation, encode(&end), &mut operator, &self.control);
        match (broken, exchanged) {
            (Some(error), _) | (None, Err(error)) => Err(error),
            (None, Ok(bytes)) => decode(&bytes, self.targets),
        }
    }

    fn handed_back(&self) -> Option<HandBack> {
        let targets = self.members.get(self.rank as usize)?.targets.clone();
        self.hand_off.why().map(|why| HandBack { targets, row_cut: RowCut::default(), why })
    }

    fn fold(&self, work: &mut dyn FnMut() -> Result<ShardEnd, RunError>) -> Result<ShardEnd, RunError> {
        // The turn is for this node's own records only: a request that waits for other nodes has no turn.
        let turn = Handle::current().block_on(self.shared.folds.turn(&self.principal))?;
        let turn = Yielding::new(turn, &Handle::current());
        self.hand_off.pace.set_turn(&turn);
        self.admitted.set_running();
        // Other nodes cannot explain the errors of this node's store.
        let explained = |error| self.shared.explain_run_error(&self.path, error);
        let mut end = work().map_err(explained)?;
        end.failure = end.failure.map(|(at, error)| (at, explained(error)));
        drop(turn);
        Ok(end)
    }
}

/// Encodes a part of a pass: a frame for a failure and a frame for a hand-back, each after its length (u64,
/// little-endian), then the partial. Only the first hand-back is encoded; it has the reason.
fn encode(end: &ShardEnd) -> Vec<u8> {
    let failure = end.failure.as_ref().map(|(at, error)| Frame::Failed(*at, as_body(error)).encode());
    let handed_back = end.handed_back.first().map(|one| Frame::HandedBack(one.clone()).encode());
    let mut out = Vec::new();
    for frame in [failure, handed_back].map(Option::unwrap_or_default) {
        out.extend_from_slice(&(frame.len() as u64).to_le_bytes());
        out.extend_from_slice(&frame);
    }
    end.partial.encode(&mut out);
    out
}

fn decode(bytes: &[u8], targets: usize) -> Result<ShardEnd, RunError> {
    let (failure, rest) = framed(bytes)?;
    let (handed_back, partial) = framed(rest)?;
    let mut end = ShardEnd { partial: Partial::decode(partial)?, ..ShardEnd::new(0, targets) };
    match failure {
        None => {}
        Some(Frame::Failed(at, error)) => end.failure = Some((at, error.into_error())),
        Some(_) => return Err(cut_short()),
    }
    match handed_back {
        None => {}
        Some(Frame::HandedBack(one)) => end.handed_back.push(one),
        Some(_) => return Err(cut_short()),
    }
    Ok(end)
}

/// The frame after its length, `None` if the length is 0, and the bytes after it.
fn framed(bytes: &[u8]) -> Result<(Option<Frame>, &[u8]), RunError> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut_short())?;
    match rest.split_at_checked(length).ok_or_else(cut_short)? {
        ([], rest) => Ok((None, rest)),
        (frame, rest) => Ok((Some(Frame::decode(frame)?), rest)),
    }
}

fn cut_short() -> RunError {
    RunError::BadPartial { why: "a member's value is cut short".into() }
}

#[cfg(test)]
mod tests;
