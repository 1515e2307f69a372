//! One member's side of an exchange: its messages over the network, with bounded waits.

use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_collective::{Action, Collective, CollectiveError, Limits, Member, Operator, Rank, Reply};
use gristmill_peers::{MemberAddress, MemberReply, Peers, decode_reason, encode_reason};
use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::ErrorBody;

use crate::error::Refusal;
use crate::group_work::{Event, Message, Participation};
use crate::limits::{MEMBER_TICK, TELL_AGAIN, VALUE_TIME};

/// Connections and job of a member.
pub(crate) struct Exchange {
    peers: Peers,
    grant: String,
    job: String,
    /// Addresses of all members, by rank.
    places: Vec<MemberAddress>,
    rank: Rank,
    member: Mutex<Member>,
    started: Instant,
}

impl Exchange {
    pub fn new(peers: Peers, grant: String, job: String, places: Vec<MemberAddress>, rank: Rank) -> Exchange {
        let size = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let member = Mutex::new(Member::new(rank, size, Limits::default()));
        Exchange { peers, grant, job, places, rank, member, started: Instant::now() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Combines all members' values in the order of their ranks. Blocks. It uses no timers of the network's runtime,
    /// which may be shut down meanwhile.
    pub fn allreduce(
        &self,
        participation: &Participation,
        value: Vec<u8>,
        operator: &mut dyn Operator,
        control: &Control,
    ) -> Result<Vec<u8>, RunError> {
        // No other thread has this queue: a member takes part in one exchange at a time.
        let mut member = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        let happened = participation.happened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut refused: Option<RunError> = None;
        let mut actions = member.start(self.now(), Collective::Allreduce, value, operator);
        let (mut done, mut sending) = (None, 0);
        loop {
            for action in actions.drain(..) {
                sending += u32::from(matches!(action, Action::Send { .. }));
                self.carry_out(action, participation.inbox.events.clone());
            }
            if done.is_none() {
                done = member.outcome();
            }
            match done {
                Some(Err(error)) => return Err(refused.unwrap_or_else(|| self.explained(&error))),
                // The sent values must have arrived: other members wait for them.
                Some(Ok(outcome)) if sending == 0 => return Ok(outcome.value),
                _ => {}
            }
            if control.stopped() {
                return Err(RunError::given_up());
            }
            match happened.recv_timeout(MEMBER_TICK) {
                Ok(Event::Arrived(message)) => {
                    participation.inbox.taken();
                    let Message { number, from, value, .. } = message;
                    // A value that arrived twice, because its receipt was lost, is refused and dropped.
                    actions = member.deliver(self.now(), number, from, value, operator).unwrap_or_default();
                }
                Ok(Event::Sent(Ok(()))) => sending -= 1,
                Ok(Event::Sent(Err(error))) if done.is_some() => return Err(error),
                Ok(Event::Sent(Err(error))) => {
                    sending -= 1;
                    member.give_up(CollectiveError::Operator(error.to_string()));
                    refused.get_or_insert(error);
                }
                Ok(Event::Answered(from, reply)) => {
                    reply.into_iter().for_each(|reply| member.take_reply(self.now(), from, reply));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Internal {
                        what: "the messages of a collective ended before it did",
                    });
                }
            }
            actions.extend(member.tick(self.now()));
        }
    }

    /// Sends or asks in the background. The outcome is an event.
    fn carry_out(&self, action: Action, events: Sender<Event>) {
        let (peers, grant) = (self.peers.clone(), self.grant.clone());
        let runtime = self.peers.runtime();
        // The event is dropped if the work has ended.
        match action {
            Action::Send { to, number, value } => {
                let Some(place) = self.places.get(to as usize).cloned() else { return };
                let path = format!("/collectives/{}/{number}/{}", self.job, self.rank);
                runtime.spawn(async move {
                    let _ = events.send(Event::Sent(tell(&peers, &place, &path, &grant, value.into()).await));
                });
            }
            Action::Ask(to) => {
                let Some(place) = self.places.get(to as usize).cloned() else { return };
                let path = format!("/collectives/{}", self.job);
                runtime.spawn(async move {
                    let reply = match peers.ask_member(&place, &path, &grant).await {
                        Ok(MemberReply::Working) => Some(Reply::Working),
                        Ok(MemberReply::Unknown) => Some(Reply::Unknown),
                        Ok(MemberReply::GaveUp(error)) => {
                            Some(Reply::GaveUp(encode_reason(&Refusal::from(error).0)))
                        }
                        // A silent member is asked again until the limit.
                        Err(_) => None,
                    };
                    let _ = events.send(Event::Answered(to, reply));
                });
            }
        }
    }

    /// The error of a member that gave up, with the names of nodes and the advice.
    fn explained(&self, error: &CollectiveError) -> RunError {
        let unavailable = |rank: &Rank, why: String| {
            let node = self.places.get(*rank as usize).map_or("?", |place| place.node.as_str());
            gristmill_peers::unavailable(node, why)
        };
        match error {
            CollectiveError::Silent { rank, seconds } => {
                unavailable(rank, format!("no sign of life for {seconds} s"))
            }
            CollectiveError::Abandoned { rank, why } => match decode_reason(why) {
                Some(error) => error,
                None => unavailable(rank, "it was started again in the middle of the request".into()),
            },
            other => RunError::Remote { kind: ErrorKind::Failed, message: other.to_string() },
        }
    }
}

/// Sends a value to a member. It repeats this while the member does not know the job yet, or cannot be reached.
async fn tell(
    peers: &Peers,
    place: &MemberAddress,
    path: &str,
    grant: &str,
    value: Bytes,
) -> Result<(), RunError> {
    let stall = Duration::from_millis(Limits::default().stall);
    let (begun, mut alive) = (Instant::now(), Instant::now());
    loop {
        let failure = match peers.send_to_member(place, path, grant, value.clone()).await {
            Ok(MemberReply::Working) => return Ok(()),
            Ok(MemberReply::GaveUp(error)) => return Err(error),
            Ok(MemberReply::Unknown) => gristmill_peers::unavailable(
                &place.node,
                "it does not know of the request; it was started again",
            ),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Busy) => error,
            Err(error) => return Err(error),
        };
        // A node without memory for the value is alive, and takes other values meanwhile.
        if failure.kind() == ErrorKind::Busy {
            alive = Instant::now();
        }
        if alive.elapsed() >= stall || begun.elapsed() >= VALUE_TIME {
            return Err(failure);
        }
        tokio::time::sleep(TELL_AGAIN).await;
    }
}

/// An error as it is sent to other members.
pub(crate) fn as_body(error: &RunError) -> ErrorBody {
    ErrorBody::from(error)
}
