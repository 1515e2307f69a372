//! A group of members in memory. Each member runs on its own thread, and they do several passes without the client.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_collective::{Collective, CollectiveError, Execution, Rank, Size};
use gristmill_runtime::{
    Control, ErrorKind, Group, GroupEnd, GroupJob, JoinEnds, Partial, RunError, ShardEnd,
};

/// Number of the exchange, sender and value.
type Message = (u64, Rank, Vec<u8>);

/// The failure at the lowest position, shared by all members. Errors cannot be copied, so they do not travel as values.
type Failure = Mutex<Option<(u64, RunError)>>;

struct ThreadGroup<'a> {
    rank: Rank,
    /// Senders to the other members. Without its own, a member that waits for others that ended gets an error.
    to: Vec<Option<Sender<Message>>>,
    from: Mutex<(Receiver<Message>, Vec<Message>, u64)>,
    failure: &'a Failure,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all members to their end. Returns the end of the first member, or the failure at the lowest position.
pub(crate) fn finish(members: &[GroupJob]) -> Result<GroupEnd, RunError> {
    let failure = Failure::default();
    let (to, from): (Vec<_>, Vec<_>) = members.iter().map(|_| channel()).unzip();
    let groups = (0..).zip(from).map(|(rank, from): (Rank, _)| {
        let from = Mutex::new((from, Vec::new(), 0));
        let to = (0..).zip(&to).map(|(other, to): (Rank, _)| (other != rank).then(|| to.clone())).collect();
        ThreadGroup { rank, to, from, failure: &failure }
    });
    let groups: Vec<ThreadGroup<'_>> = groups.collect();
    drop(to);
    let ends: Vec<Result<GroupEnd, RunError>> = std::thread::scope(|scope| {
        let run = |(member, group): (&'_ GroupJob, ThreadGroup<'_>)| member.run(&group, &Control::new());
        let threads: Vec<_> = members.iter().zip(groups).map(|pair| scope.spawn(move || run(pair))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(RunError::Panicked))).collect()
    });
    let failure = locked(&failure).take();
    let mut ends = ends.into_iter();
    match (failure, ends.next()) {
        (_, Some(Ok(end))) => {
            // All members must reach the same end.
            let same = |other: Result<GroupEnd, RunError>| {
                other.is_ok_and(|other| {
                    (other.round, &other.shared, &other.whole) == (end.round, &end.shared, &end.whole)
                })
            };
            if ends.all(same) { Ok(end) } else { Err(remote_error("the members reached different ends")) }
        }
        (Some((_, error)), Some(Err(_))) => Err(error),
        (None, Some(Err(error))) => Err(error),
        (_, None) => Err(remote_error("there are no members")),
    }
}

fn remote_error(message: &str) -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: message.into() }
}

impl Group for ThreadGroup<'_> {
    fn allreduce(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError> {
        let mut from = locked(&self.from);
        let (receiver, early, number) = &mut *from;
        let ShardEnd { partial, failure, tally, .. } = end;
        if let Some((at, error)) = failure {
            let mut lowest = locked(self.failure);
            if lowest.as_ref().is_none_or(|(before, _)| at < *before) {
                *lowest = Some((at, error));
            }
        }
        let size = Size::try_from(self.to.len()).unwrap_or(Size::MAX);
        let bytes = |partial: &Partial| {
            let mut out = Vec::new();
            partial.encode(&mut out);
            out
        };
        let targets = tally.read.len();
        let part = |bytes: &[u8]| {
            let partial = Partial::decode(bytes)?;
            Ok::<_, RunError>(ShardEnd { partial, ..ShardEnd::new(0, targets) })
        };
        let mut operator = |lower: Vec<u8>, higher: Vec<u8>| {
            let joined = part(&lower).and_then(|lower| join(lower, part(&higher)?));
            joined
                .map(|end| bytes(&end.partial))
                .map_err(|error| CollectiveError::Operator(error.to_string()))
        };
        let failed = |error: CollectiveError| remote_error(&error.to_string());
        let mut execution =
            Execution::new(Collective::Allreduce, self.rank, size, bytes(&partial)).map_err(failed)?;
        loop {
            let send = |to: Rank, value: &[u8]| {
                // A member that ended has failed, and its end has the error.
                if let Some(Some(to)) = self.to.get(to as usize) {
                    let _ = to.send((*number, self.rank, value.to_vec()));
                }
            };
            execution.advance(&mut operator, send).map_err(failed)?;
            if execution.is_done() {
                break;
            }
            let index = early.iter().position(|(message_number, ..)| message_number == number);
            let (message_number, rank, value) = match index {
                Some(index) => early.swap_remove(index),
                None => receiver.recv().map_err(|_| remote_error("all other members have ended"))?,
            };
            if message_number == *number {
                execution.deliver(rank, value).map_err(failed)?;
            } else {
                early.push((message_number, rank, value));
            }
        }
        *number += 1;
        let mut whole = part(&execution.outcome().value)?;
        // Each member stored its failure before this exchange ended. The position is enough to end all members.
        if let Some((at, error)) = locked(self.failure).as_ref() {
            whole.failure = Some((*at, remote_error(&error.to_string())));
        }
        Ok(whole)
    }
}
