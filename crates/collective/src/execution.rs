//! One member's part in one collective, driven by messages.

use std::collections::{BTreeMap, VecDeque};

use crate::schedule::{Collective, Step, steps};
use crate::{CollectiveError, MAX_SIZE, Rank, Size};

/// Combines the value of lower ranks with that of the ranks that follow them. Must be associative, and need not be
/// commutative. Every member that combines the same values does it in the same order.
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

/// What a member has when the collective is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The value: of a broadcast that of the root; of an allreduce, and of a reduce at the root, that of all members;
    /// otherwise whatever is left of it.
    pub value: Vec<u8>,
    /// Of an exclusive scan: the values of all lower ranks. `None` at rank 0 and in other collectives.
    pub before: Option<Vec<u8>>,
}

/// One member's part in one collective.
///
/// Nothing here sends or waits: [`advance`](Execution::advance) says what is to be sent, [`deliver`](Execution::deliver)
/// takes what has come, in any order, and [`awaits`](Execution::awaits) says for whom the member waits.
#[derive(Debug)]
pub struct Execution {
    rank: Rank,
    size: Size,
    steps: VecDeque<Step>,
    value: Vec<u8>,
    before: Option<Vec<u8>>,
    /// Messages whose step has not come yet. At most one of each rank that is still awaited.
    early: BTreeMap<Rank, Vec<u8>>,
}

impl Execution {
    /// The part of `rank` among `size` members, which brings `value`.
    ///
    /// # Errors
    /// The error is [`CollectiveError::Ranks`] if `size` is 0 or more than [`MAX_SIZE`], or if `rank` or the root is
    /// not below `size`.
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
            return Err(CollectiveError::Ranks { rank: rank.max(root), size, max: MAX_SIZE });
        }
        let steps = steps(collective, rank, size).into();
        Ok(Execution { rank, size, steps, value, before: None, early: BTreeMap::new() })
    }

    /// Takes a message. It waits here if its step has not come yet.
    ///
    /// # Errors
    /// The error is [`CollectiveError::Disorder`] if no step that is left awaits a message of `from`, or if such a
    /// message waits here already.
    pub fn deliver(&mut self, from: Rank, value: Vec<u8>) -> Result<(), CollectiveError> {
        if !self.steps.iter().any(|step| step.awaits() == Some(from)) {
            return Err(CollectiveError::Disorder { from, why: "nobody waits for it" });
        }
        match self.early.insert(from, value) {
            None => Ok(()),
            Some(_) => Err(CollectiveError::Disorder { from, why: "it came twice" }),
        }
    }

    /// Goes as far as it can without another message. `send` gets the receiver and the value of each message.
    ///
    /// # Errors
    /// The error is that of the first [`Operator::combine`] that fails. The value of the member is lost then.
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
                Step::Below(_) => operator.combine(got, own)?,
                Step::Above(_) => operator.combine(own, got)?,
                Step::Adopt(_) => got,
                Step::Before(_) => {
                    self.before = Some(match self.before.take() {
                        None => got.clone(),
                        Some(before) => operator.combine(got.clone(), before)?,
                    });
                    operator.combine(got, own)?
                }
            };
        }
        Ok(())
    }

    /// Whose message comes next; `None` when the member is done.
    pub fn awaits(&self) -> Option<Rank> {
        self.steps.iter().find_map(|step| step.awaits())
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// The rank and how many members there are.
    pub fn place(&self) -> (Rank, Size) {
        (self.rank, self.size)
    }

    /// What came out, once [`is_done`](Execution::is_done).
    pub fn outcome(self) -> Outcome {
        Outcome { value: self.value, before: self.before }
    }
}
