//! A member of a group of servers: one collective after the other, and nobody waits for ever.
//!
//! A member that waits for another asks it now and then whether it is still there. One that gave up answers why; one
//! that gives no answer is given up. Who waits for whom is never a circle and at most a few members long (a member at
//! some step waits for one at an earlier step), so a loss is known everywhere within [`Limits::stall`] and one
//! [`Limits::ask_every`] for each link of such a chain, of which there are at most ⌈log2 n⌉ + 2 in a collective.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Collective, CollectiveError, Execution, Operator, Outcome, Rank, Size};

/// How often a member that waits asks whether the other is there, in milliseconds.
pub const ASK_EVERY: u64 = 1_000;

/// How long a member that is waited for may give no sign of life, in milliseconds.
pub const STALL: u64 = 10_000;

/// Bounds of waiting, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often a member that waits asks.
    pub ask_every: u64,
    /// How long one that is waited for may be silent, or not know of the request yet.
    pub stall: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { ask_every: ASK_EVERY, stall: STALL }
    }
}

/// What a member wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hand this value to another member. It must arrive, or [`Member::lost`] be told.
    Send {
        /// To whom.
        to: Rank,
        /// Number of the collective.
        number: u64,
        /// What.
        value: Vec<u8>,
    },
    /// Ask another member whether it is there, and tell [`Member::heard`] what it says, if anything.
    Ask(Rank),
}

/// What a server says of a request that somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is at work.
    Here,
    /// It knows of no such request: not yet, or not any more since it was started again.
    Unknown,
    /// It gave up, and why.
    Gone(String),
}

/// Whom a member waits for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    from: Rank,
    heard: u64,
    asked: u64,
}

/// A member of a group that does one collective after the other, all members the same ones.
#[derive(Debug)]
pub struct Member {
    rank: Rank,
    size: Size,
    limits: Limits,
    /// Number of the collective that is under way, or comes next.
    number: u64,
    current: Option<Execution>,
    /// Messages of the collective after the one under way: somebody is ahead. Nobody can be further ahead.
    next: BTreeMap<Rank, Vec<u8>>,
    waiting: Option<Waiting>,
    /// Who was ever heard of: if such a one knows of nothing, it was started again.
    known: BTreeSet<Rank>,
    failed: Option<CollectiveError>,
}

impl Member {
    /// A member that has done nothing yet.
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

    /// Begins the next collective with a value of one's own. `now` is in milliseconds since anything.
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
        self.go_on(now, operator)
    }

    /// Takes a message of the collective of that number. An error is of the message; the member goes on.
    ///
    /// # Errors
    /// A message that was taken already (which may happen where its receipt was lost) or that makes no sense.
    pub fn deliver(
        &mut self,
        now: u64,
        number: u64,
        from: Rank,
        value: Vec<u8>,
        operator: &mut dyn Operator,
    ) -> Result<Vec<Action>, CollectiveError> {
        let disorder = |why| Err(CollectiveError::Disorder { from, why });
        if from >= self.size || from == self.rank {
            return disorder("there is no such other member");
        }
        self.known.insert(from);
        match (&mut self.current, number.checked_sub(self.number)) {
            (Some(execution), Some(0)) => {
                execution.deliver(from, value)?;
                Ok(self.go_on(now, operator))
            }
            (None, Some(0)) | (Some(_), Some(1)) => match self.next.insert(from, value) {
                None => Ok(Vec::new()),
                Some(_) => disorder("it came twice"),
            },
            (_, None) => disorder("its collective is over"),
            (_, Some(_)) => disorder("its collective is too far ahead"),
        }
    }

    fn go_on(&mut self, now: u64, operator: &mut dyn Operator) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(execution) = &mut self.current else { return actions };
        let number = self.number;
        let gone_on = execution.advance(operator, |to, value| {
            actions.push(Action::Send { to, number, value: value.to_vec() });
        });
        if let Err(error) = gone_on {
            self.failed.get_or_insert(error);
        }
        let awaits = execution.awaits().filter(|_| self.failed.is_none());
        if self.waiting.map(|waiting| waiting.from) != awaits {
            self.waiting = awaits.map(|from| Waiting { from, heard: now, asked: now });
        }
        actions
    }

    /// Time has passed. To be called at least every [`Limits::ask_every`] while the member waits.
    pub fn tick(&mut self, now: u64) -> Vec<Action> {
        let Some(waiting) = &mut self.waiting else { return Vec::new() };
        let silent = now.saturating_sub(waiting.heard);
        if silent >= self.limits.stall {
            let (rank, seconds) = (waiting.from, silent / 1000);
            self.fail(CollectiveError::Silent { rank, seconds });
            return Vec::new();
        }
        if now.saturating_sub(waiting.asked) < self.limits.ask_every {
            return Vec::new();
        }
        waiting.asked = now;
        vec![Action::Ask(waiting.from)]
    }

    /// Another member has answered.
    pub fn heard(&mut self, now: u64, from: Rank, reply: Reply) {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.from == from) else { return };
        match reply {
            Reply::Here => {
                waiting.heard = now;
                self.known.insert(from);
            }
            // Word of the request may be on its way to it, for as long as a member may be silent.
            Reply::Unknown if !self.known.contains(&from) => {}
            Reply::Unknown => {
                let why = format!("member {from} lost its part of the request: it was started again");
                self.fail(CollectiveError::Abandoned { rank: from, why });
            }
            Reply::Gone(why) => self.fail(CollectiveError::Abandoned { rank: from, why }),
        }
    }

    /// What this member says if asked.
    pub fn reply(&self) -> Reply {
        match &self.failed {
            None => Reply::Here,
            Some(error) => Reply::Gone(error.to_string()),
        }
    }

    /// A message could not be handed over, or this member's own work failed.
    pub fn lost(&mut self, why: CollectiveError) {
        self.fail(why);
    }

    fn fail(&mut self, error: CollectiveError) {
        self.failed.get_or_insert(error);
        self.waiting = None;
    }

    /// Number of the collective that is under way or comes next.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The outcome of a collective that is done. It is given once. `None` while the collective is under way.
    ///
    /// # Errors
    /// The error says why this member gave up. It comes at every call from then on.
    pub fn outcome(&mut self) -> Option<Result<Outcome, CollectiveError>> {
        if let Some(error) = &self.failed {
            return Some(Err(error.clone()));
        }
        let done = self.current.take_if(|execution| execution.is_done())?;
        self.number += 1;
        Some(Ok(done.outcome()))
    }
}
