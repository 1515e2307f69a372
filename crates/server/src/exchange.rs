//! One member's side of an exchange: its messages over the network, its waiting bounded.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_collective::{Action, Collective, CollectiveError, Limits, Member, Operator, Rank, Reply};
use gristmill_peers::{MemberPlace, MemberReply, Peers, of_reason, reason};
use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::ErrorBody;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::error::Refusal;
use crate::group_work::Inbox;
use crate::limits::{MEMBER_TICK, TELL_AGAIN};

/// What a member needs to talk to the others.
pub(crate) struct Exchange {
    peers: Peers,
    grant: String,
    job: String,
    /// Where the others are, by rank.
    places: Vec<MemberPlace>,
    rank: Rank,
    member: Mutex<Member>,
    started: Instant,
}

/// What came of a message or a question.
enum Heard {
    Told(Result<(), RunError>),
    Answered(Rank, Option<Reply>),
}

impl Exchange {
    pub fn new(peers: Peers, grant: String, job: String, places: Vec<MemberPlace>, rank: Rank) -> Exchange {
        let size = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let member = Mutex::new(Member::new(rank, size, Limits::default()));
        Exchange { peers, grant, job, places, rank, member, started: Instant::now() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// All members' values combined in the order of their ranks.
    pub async fn allreduce(
        &self,
        inbox: &Inbox,
        value: Vec<u8>,
        operator: &mut dyn Operator,
        control: &Control,
    ) -> Result<Vec<u8>, RunError> {
        // Nobody else has it: a member does one thing after the other.
        let mut member = self.member.lock().await;
        let mut under_way = JoinSet::new();
        let mut refused: Option<RunError> = None;
        let mut actions = member.start(self.now(), Collective::Allreduce, value, operator);
        let mut done = None;
        loop {
            for action in actions.drain(..) {
                self.carry_out(action, &mut under_way);
            }
            if done.is_none() {
                done = member.outcome();
            }
            match &done {
                Some(Err(error)) => return Err(refused.unwrap_or_else(|| self.explained(error))),
                // What was sent must have arrived: others wait for it.
                Some(Ok(_)) if under_way.is_empty() => break,
                _ => {}
            }
            if control.stopped() {
                return Err(RunError::Remote {
                    kind: ErrorKind::Failed,
                    message: "the request was given up".into(),
                });
            }
            tokio::select! {
                () = inbox.arrived.notified() => {
                    for message in inbox.take() {
                        let (number, from) = (message.number, message.from);
                        // What came twice, because its receipt was lost, is refused and forgotten.
                        if let Ok(more) = member.deliver(self.now(), number, from, message.value, operator) {
                            actions.extend(more);
                        }
                    }
                }
                Some(heard) = under_way.join_next() => match heard {
                    Ok(Heard::Told(Ok(()))) => {}
                    Ok(Heard::Told(Err(error))) if done.is_none() => {
                        member.lost(CollectiveError::Operator(error.to_string()));
                        refused.get_or_insert(error);
                    }
                    Ok(Heard::Told(Err(error))) => return Err(error),
                    Ok(Heard::Answered(from, reply)) => {
                        reply.into_iter().for_each(|reply| member.heard(self.now(), from, reply));
                    }
                    Err(_) => return Err(RunError::Panicked),
                },
                () = tokio::time::sleep(MEMBER_TICK) => actions = member.tick(self.now()),
            }
        }
        match done {
            Some(Ok(outcome)) => Ok(outcome.value),
            _ => Err(RunError::Panicked),
        }
    }

    fn carry_out(&self, action: Action, under_way: &mut JoinSet<Heard>) {
        let (peers, grant) = (self.peers.clone(), self.grant.clone());
        match action {
            Action::Send { to, number, value } => {
                let Some(place) = self.places.get(to as usize).cloned() else { return };
                let path = format!("/collectives/{}/{number}/{}", self.job, self.rank);
                under_way.spawn(async move {
                    Heard::Told(tell(&peers, &place, &path, &grant, value.into()).await)
                });
            }
            Action::Ask(to) => {
                let Some(place) = self.places.get(to as usize).cloned() else { return };
                let path = format!("/collectives/{}", self.job);
                under_way.spawn(async move {
                    let reply = match peers.ask_member(&place, &path, &grant).await {
                        Ok(MemberReply::Here) => Some(Reply::Here),
                        Ok(MemberReply::Unknown) => Some(Reply::Unknown),
                        Ok(MemberReply::Gone(error)) => Some(Reply::Gone(reason(&Refusal::from(error).0))),
                        // Silence: it is asked again until it was silent for too long.
                        Err(_) => None,
                    };
                    Heard::Answered(to, reply)
                });
            }
        }
    }

    /// Why the member gave up, with the names of nodes and what to do.
    fn explained(&self, error: &CollectiveError) -> RunError {
        let unavailable = |rank: &Rank, why: String| {
            let node = self.places.get(*rank as usize).map_or("?", |place| place.node.as_str());
            gristmill_peers::unavailable(node, why)
        };
        match error {
            CollectiveError::Silent { rank, seconds } => {
                unavailable(rank, format!("no sign of life for {seconds} s"))
            }
            CollectiveError::Abandoned { rank, why } => match of_reason(why) {
                Some(error) => error,
                None => unavailable(rank, "it was started again in the middle of the request".into()),
            },
            other => RunError::Remote { kind: ErrorKind::Failed, message: other.to_string() },
        }
    }
}

/// Hands a value over, again and again while the other knows nothing of the work yet, or cannot be reached.
async fn tell(
    peers: &Peers,
    place: &MemberPlace,
    path: &str,
    grant: &str,
    value: Bytes,
) -> Result<(), RunError> {
    let until = Instant::now() + Duration::from_millis(Limits::default().stall);
    loop {
        let told = match peers.tell_member(place, path, grant, value.clone()).await {
            Ok(MemberReply::Here) => return Ok(()),
            Ok(MemberReply::Gone(error)) => return Err(error),
            Ok(MemberReply::Unknown) => gristmill_peers::unavailable(
                &place.node,
                "it does not know of the request; it was started again",
            ),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Busy) => error,
            Err(error) => return Err(error),
        };
        if Instant::now() >= until {
            return Err(told);
        }
        tokio::time::sleep(TELL_AGAIN).await;
    }
}

/// An error as others are told of it.
pub(crate) fn as_body(error: &RunError) -> ErrorBody {
    ErrorBody::new(error.kind(), error.to_string())
}
