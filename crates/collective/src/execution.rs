//! One member's part in one collective, driven by messages.

use std::collections::{BTreeMap, VecDeque};

use crate::schedule::{Collective, Step, steps};
use crate::{CollectiveError, MAX_SIZE, Rank, Size};

/// Operation that combines the value of lower ranks with the value of the ranks that follow them. It must be
/// associative. It need not be commutative. All members that combine the same values combine them in the same order.
pub trait Operator {
    /// Combines two values.
    ///
    /// # Errors
    /// The error is [`CollectiveError::Operator`] if the two values cannot be combined.
    fn combine(&mut self, lower: Vec<u8>, higher: Vec<u8>) -> Result<Vec<u8>, CollectiveError>;
}

impl<F: FnMut(Vec<u8>, Vec<u8>) -> Result<Vec<u8>, CollectiveError>> Operator for F {
    fn combine(&mut self, lower: Vec<u8>, higher: Vec<u8>) -> Result<Vec<u8>, CollectiveError> {
        self(lower, higher)
    }
}

/// Result of one member at the end of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The result. After a broadcast, it is the value of the root. After an allreduce, and at the root after a reduce,
    /// it is the combined value of all members. Otherwise it is an intermediate value.
    pub value: Vec<u8>,
    /// Combined value of all lower ranks after an exclusive scan. `None` at rank 0 and in other collectives.
    pub prefix: Option<Vec<u8>>,
}

/// One member's part in one collective.
///
/// It does not send or wait. [`advance`](Execution::advance) gives the messages to send.
/// [`deliver`](Execution::deliver) takes messages that have arrived, in any order.
/// [`awaits`](Execution::awaits) returns the member whose message comes next.
#[derive(Debug)]
pub struct Execution {
    rank: Rank,
    size: Size,
    steps: VecDeque<Step>,
    value: Vec<u8>,
    prefix: Option<Vec<u8>>,
    /// Messages that arrived before their step. There is at most one of each rank that is still awaited.
    early: BTreeMap<Rank, Vec<u8>>,
}

impl Execution {
    /// Creates the part of `rank` among `size` members. The member contributes `value`.
    ///
    /// # Errors
    /// The error is [`CollectiveError::InvalidRank`] if `size` is 0 or more than [`MAX_SIZE`], or if `rank` or the root
    /// is not below `size`.
    pub fn new(
        collective: Collective,
        rank: Rank,
        size: Size,
        value: Vec<u8>,
    ) -> Result<Execution, CollectiveError> {
        let root = match collective {
            Collective::Broadcast { root } | Collective::Reduce { root } => root,
            Collective::Allreduce | Collective::ExclusiveScan => 0,
        };
        if size == 0 || size > MAX_SIZE || rank >= size || root >= size {
            return Err(CollectiveError::InvalidRank { rank: rank.max(root), size, max: MAX_SIZE });
        }
        let steps = steps(collective, rank, size).into();
        Ok(Execution { rank, size, steps, value, prefix: None, early: BTreeMap::new() })
    }

    /// Takes a message. Keeps it if its step has not come yet.
    ///
    /// # Errors
    /// The error is [`CollectiveError::UnexpectedMessage`] if no remaining step awaits a message of `from`, or if a
    /// message of `from` is kept already.
    pub fn deliver(&mut self, from: Rank, value: Vec<u8>) -> Result<(), CollectiveError> {
        if !self.steps.iter().any(|step| step.awaits() == Some(from)) {
            return Err(CollectiveError::UnexpectedMessage { from, why: "the member does not wait for it" });
        }
        match self.early.insert(from, value) {
            None => Ok(()),
            Some(_) => Err(CollectiveError::UnexpectedMessage { from, why: "it arrived twice" }),
        }
    }

    /// Carries out steps until one needs a message that has not arrived. `send` gets the receiver and the value of each
    /// message.
    ///
    /// # Errors
    /// The error is the one of the first [`Operator::combine`] that fails. The value of the member is then lost.
    pub fn advance(
        &mut self,
        operator: &mut dyn Operator,
        mut send: impl FnMut(Rank, &[u8]),
    ) -> Result<(), CollectiveError> {
        while let Some(step) = self.steps.front().copied() {
            let got = match step.awaits() {
                None => Vec::new(),
                Some(from) => match self.early.remove(&from) {
                    Some(value) => value,
                    None => return Ok(()),
                },
            };
            self.steps.pop_front();
            let own = std::mem::take(&mut self.value);
            self.value = match step {
                Step::Send(to) => {
                    send(to, &own);
                    own
                }
                Step::CombineLower(_) => operator.combine(got, own)?,
                Step::CombineHigher(_) => operator.combine(own, got)?,
                Step::Replace(_) => got,
                Step::CombinePrefix(_) => {
                    self.prefix = Some(match self.prefix.take() {
                        None => got.clone(),
                        Some(prefix) => operator.combine(got.clone(), prefix)?,
                    });
                    operator.combine(got, own)?
                }
            };
        }
        Ok(())
    }

    /// Sender of the next message that the member needs; `None` if it needs no more.
    pub fn awaits(&self) -> Option<Rank> {
        self.steps.iter().find_map(|step| step.awaits())
    }

    /// Whether all steps are done.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// Rank of the member, and the number of members.
    pub fn rank_and_size(&self) -> (Rank, Size) {
        (self.rank, self.size)
    }

    /// The result. It is valid once [`is_done`](Execution::is_done) returns true.
    pub fn outcome(self) -> Outcome {
        Outcome { value: self.value, prefix: self.prefix }
    }
}
