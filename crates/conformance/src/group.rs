//! Members in memory that finish several passes among themselves, each on a thread of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_collective::{Collective, CollectiveError, Execution, Rank, Size};
use gristmill_runtime::{
    Control, ErrorKind, Group, JoinEnds, Partial, RunError, ShardEnd, Together, TogetherEnd,
};

/// Number of the exchange, whose it is, and what.
type Message = (u64, Rank, Vec<u8>);

/// The failure of an exchange at the lowest position: errors cannot be copied, so it goes another way than values.
type Failure = Mutex<Option<(u64, RunError)>>;

struct Threads<'a> {
    rank: Rank,
    to: Vec<Sender<Message>>,
    from: Mutex<(Receiver<Message>, Vec<Message>, u64)>,
    failure: &'a Failure,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All of them, to the end: what the first one reached, or the failure at the lowest position.
pub(crate) fn finish(members: &[Together]) -> Result<TogetherEnd, RunError> {
    let failure = Failure::default();
    let (to, from): (Vec<_>, Vec<_>) = members.iter().map(|_| channel()).unzip();
    let groups = (0..).zip(from).map(|(rank, from)| {
        let from = Mutex::new((from, Vec::new(), 0));
        Threads { rank, to: to.clone(), from, failure: &failure }
    });
    let groups: Vec<Threads<'_>> = groups.collect();
    drop(to);
    let ends: Vec<Result<TogetherEnd, RunError>> = std::thread::scope(|scope| {
        let run = |(member, group): (&'_ Together, Threads<'_>)| member.run(&group, &Control::new());
        let threads: Vec<_> = members.iter().zip(groups).map(|pair| scope.spawn(move || run(pair))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(RunError::Panicked))).collect()
    });
    let failure = locked(&failure).take();
    let mut ends = ends.into_iter();
    match (failure, ends.next()) {
        (_, Some(Ok(end))) => {
            // All reached the same.
            let same = |other: Result<TogetherEnd, RunError>| {
                other.is_ok_and(|other| {
                    (other.round, &other.shared, &other.whole) == (end.round, &end.shared, &end.whole)
                })
            };
            if ends.all(same) { Ok(end) } else { Err(broken("members reached different ends")) }
        }
        (Some((_, error)), Some(Err(_))) => Err(error),
        (None, Some(Err(error))) => Err(error),
        (_, None) => Err(broken("there are no members")),
    }
}

fn broken(message: &str) -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: message.into() }
}

impl Group for Threads<'_> {
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
        let failed = |error: CollectiveError| broken(&error.to_string());
        let mut execution =
            Execution::new(Collective::Allreduce, self.rank, size, bytes(&partial)).map_err(failed)?;
        loop {
            let send = |to: Rank, value: &[u8]| {
                // Who is gone has failed, and says so.
                let _ = self.to[to as usize].send((*number, self.rank, value.to_vec()));
            };
            execution.advance(&mut operator, send).map_err(failed)?;
            if execution.is_done() {
                break;
            }
            let now = early.iter().position(|(of, ..)| of == number);
            let (of, rank, value) = match now {
                Some(at) => early.swap_remove(at),
                None => receiver.recv().map_err(|_| broken("all others are gone"))?,
            };
            if of == *number {
                execution.deliver(rank, value).map_err(failed)?;
            } else {
                early.push((of, rank, value));
            }
        }
        *number += 1;
        let mut whole = part(&execution.outcome().value)?;
        // Everybody put theirs in before this exchange was over. The position is enough to end all of them.
        if let Some((at, error)) = locked(self.failure).as_ref() {
            whole.failure = Some((*at, broken(&error.to_string())));
        }
        Ok(whole)
    }
}
