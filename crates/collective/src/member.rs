//! A member of a group of servers. It does one collective after the other, and never waits for ever.
//!
//! A member that waits for another asks it at intervals whether it still works. A member that gave up answers with the
//! reason. A member that does not answer is lost. Members that wait for each other form a chain and never a circle,
//! because a member at some step waits for a member at an earlier step. A chain has at most ⌈log2 n⌉ + 2 links in a
//! collective. So all members know of a loss after [`Limits::stall`] and one [`Limits::ask_every`] for each link.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Collective, CollectiveError, Execution, Operator, Outcome, Rank, Size};

/// Milliseconds between two questions of a member that waits.
pub const ASK_EVERY: u64 = 1_000;

/// Longest silence of a member while another waits for it, in milliseconds.
pub const STALL: u64 = 10_000;

/// Bounds of waiting, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time between two questions of a member that waits.
    pub ask_every: u64,
    /// Longest time for which the other member may be silent, or not know of the request yet.
    pub stall: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { ask_every: ASK_EVERY, stall: STALL }
    }
}

/// Task that a member gives to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this value to another member. If it cannot arrive, call [`Member::give_up`].
    Send {
        /// Rank of the receiver.
        to: Rank,
        /// Number of the collective.
        number: u64,
        /// The value.
        value: Vec<u8>,
    },
    /// Ask another member whether it works, and give its answer to [`Member::take_reply`].
    Ask(Rank),
}

/// Answer of a server to the question whether it works on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It works on the request.
    Working,
    /// It does not know the request: not yet, or no longer because it was started again.
    Unknown,
    /// It gave up for this reason.
    GaveUp(String),
}

/// The member that this one waits for. Times are in milliseconds of the caller's clock.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    from: Rank,
    last_sign: u64,
    last_asked: u64,
}

/// A member of a group. All members do the same collectives, one after the other.
#[derive(Debug)]
pub struct Member {
    rank: Rank,
    size: Size,
    limits: Limits,
    /// Number of the current or the next collective.
    number: u64,
    current: Option<Execution>,
    /// Messages of the next collective, from members that are ahead. No member can be further ahead.
    next: BTreeMap<Rank, Vec<u8>>,
    waiting: Option<Waiting>,
    /// Members that knew the request. If one of them does not know it later, it was started again.
    known: BTreeSet<Rank>,
    failed: Option<CollectiveError>,
}

impl Member {
    /// Creates a member before its first collective.
    pub fn new(rank: Rank, size: Size, limits: Limits) -> Member {
        Member {
            rank,
            size,
            limits,
            number: 0,
            current: None,
            next: BTreeMap::new(),
            waiting: None,
            known: BTreeSet::new(),
            failed: None,
        }
    }

    /// Begins the next collective with the member's own value. `now` is in milliseconds since any fixed time.
    pub fn start(
        &mut self,
        now: u64,
        collective: Collective,
        value: Vec<u8>,
        operator: &mut dyn Operator,
    ) -> Vec<Action> {
        if self.failed.is_some() {
            return Vec::new();
        }
        let begun = Execution::new(collective, self.rank, self.size, value).and_then(|mut execution| {
            for (from, value) in std::mem::take(&mut self.next) {
                execution.deliver(from, value)?;
            }
            Ok(execution)
        });
        match begun {
            Ok(execution) => self.current = Some(execution),
            Err(error) => self.failed = Some(error),
        }
        self.proceed(now, operator)
    }

    /// Takes a message of the collective `number`. An error concerns the message only, and the member continues.
    ///
    /// # Errors
    /// The message is refused if it was taken already, which happens if its receipt was lost, or if the member does not
    /// expect it.
    pub fn deliver(
        &mut self,
        now: u64,
        number: u64,
        from: Rank,
        value: Vec<u8>,
        operator: &mut dyn Operator,
    ) -> Result<Vec<Action>, CollectiveError> {
        let unexpected = |why| Err(CollectiveError::UnexpectedMessage { from, why });
        if from >= self.size || from == self.rank {
            return unexpected("no other member has this rank");
        }
        self.known.insert(from);
        match (&mut self.current, number.checked_sub(self.number)) {
            (Some(execution), Some(0)) => {
                execution.deliver(from, value)?;
                Ok(self.proceed(now, operator))
            }
            (None, Some(0)) | (Some(_), Some(1)) => match self.next.insert(from, value) {
                None => Ok(Vec::new()),
                Some(_) => unexpected("it arrived twice"),
            },
            (_, None) => unexpected("its collective is over"),
            (_, Some(_)) => unexpected("its collective is too far ahead"),
        }
    }

    fn proceed(&mut self, now: u64, operator: &mut dyn Operator) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(execution) = &mut self.current else { return actions };
        let number = self.number;
        let advanced = execution.advance(operator, |to, value| {
            actions.push(Action::Send { to, number, value: value.to_vec() });
        });
        if let Err(error) = advanced {
            self.failed.get_or_insert(error);
        }
        let awaits = execution.awaits().filter(|_| self.failed.is_none());
        if self.waiting.map(|waiting| waiting.from) != awaits {
            self.waiting = awaits.map(|from| Waiting { from, last_sign: now, last_asked: now });
        }
        actions
    }

    /// Tells the member the time. Call it at least every [`Limits::ask_every`] while the member waits.
    pub fn tick(&mut self, now: u64) -> Vec<Action> {
        let Some(waiting) = &mut self.waiting else { return Vec::new() };
        let silence = now.saturating_sub(waiting.last_sign);
        if silence >= self.limits.stall {
            let (rank, seconds) = (waiting.from, silence / 1000);
            self.fail(CollectiveError::Silent { rank, seconds });
            return Vec::new();
        }
        if now.saturating_sub(waiting.last_asked) < self.limits.ask_every {
            return Vec::new();
        }
        waiting.last_asked = now;
        vec![Action::Ask(waiting.from)]
    }

    /// Takes the answer of another member to a question.
    pub fn take_reply(&mut self, now: u64, from: Rank, reply: Reply) {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.from == from) else { return };
        match reply {
            Reply::Working => {
                waiting.last_sign = now;
                self.known.insert(from);
            }
            // The request may not have reached it yet. The limit of silence bounds this time too.
            Reply::Unknown if !self.known.contains(&from) => {}
            Reply::Unknown => {
                let why = format!("member {from} lost its part of the request: it was started again");
                self.fail(CollectiveError::Abandoned { rank: from, why });
            }
            Reply::GaveUp(why) => self.fail(CollectiveError::Abandoned { rank: from, why }),
        }
    }

    /// Answer of this member to the question of another.
    pub fn reply(&self) -> Reply {
        match &self.failed {
            None => Reply::Working,
            Some(error) => Reply::GaveUp(error.to_string()),
        }
    }

    /// Makes the member give up, because a message could not be sent or the member's own work failed.
    pub fn give_up(&mut self, why: CollectiveError) {
        self.fail(why);
    }

    fn fail(&mut self, error: CollectiveError) {
        self.failed.get_or_insert(error);
        self.waiting = None;
    }

    /// Number of the current or the next collective.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Result of a collective that is done. It is returned once. `None` while the collective runs.
    ///
    /// # Errors
    /// The error is the reason why this member gave up. Each later call returns it too.
    pub fn outcome(&mut self) -> Option<Result<Outcome, CollectiveError>> {
        if let Some(error) = &self.failed {
            return Some(Err(error.clone()));
        }
        let done = self.current.take_if(|execution| execution.is_done())?;
        self.number += 1;
        Some(Ok(done.outcome()))
    }
}
