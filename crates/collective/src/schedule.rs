//! Message schedules: each collective as a list of steps for one rank.
//!
//! With n members and p the largest power of two not above n:
//!
//! | Collective | Rounds | Messages | Algorithm |
//! |---|---|---|---|
//! | broadcast | ⌈log2 n⌉ | n − 1 | binomial tree |
//! | reduce, gather | ⌈log2 n⌉, one more to a root other than 0 | n − 1, one more to a root other than 0 | binomial tree |
//! | allreduce | log2 p, two more if p < n | p log2 p + 2 (n − p) | recursive doubling |
//! | exclusive scan | ⌈log2 n⌉ | Σ (n − 2^i) over 2^i < n | Hillis and Steele |
//!
//! (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005; Hillis, Steele:
//! Data Parallel Algorithms, 1986.) Within one collective, a rank never gets two messages from the same other rank. So
//! the sender's rank identifies the step of a message. Values are combined only with values of adjacent ranks, the lower
//! ranks on the left. So the operator need not be commutative.

use crate::{Rank, Size};

/// Operation among all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// All members get the root's value.
    Broadcast {
        /// The member that has the value.
        root: Rank,
    },
    /// The root gets the values of all members, combined in the order of their ranks. With an operator that appends,
    /// this is a gather.
    Reduce {
        /// The member that gets the value.
        root: Rank,
    },
    /// All members get the values of all members, combined in the order of their ranks.
    Allreduce,
    /// Each member gets the values of all lower ranks, combined in their order. Rank 0 gets nothing.
    ExclusiveScan,
}

/// One step of a rank. A rank does its steps in order. A step that receives waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send the value.
    Send(Rank),
    /// Receive a value of lower ranks and combine it on the left.
    CombineLower(Rank),
    /// Receive a value of higher ranks and combine it on the right.
    CombineHigher(Rank),
    /// Receive a value and replace the own value by it.
    Replace(Rank),
    /// Receive a value of lower ranks. Combine it on the left of the value, and on the left of the prefix.
    CombinePrefix(Rank),
}

impl Step {
    /// The rank whose message the step waits for.
    pub fn awaits(self) -> Option<Rank> {
        match self {
            Step::Send(_) => None,
            Step::CombineLower(from)
            | Step::CombineHigher(from)
            | Step::Replace(from)
            | Step::CombinePrefix(from) => Some(from),
        }
    }
}

/// Lists the steps of one rank among `size`.
pub(crate) fn steps(collective: Collective, rank: Rank, size: Size) -> Vec<Step> {
    let mut steps = Vec::new();
    match collective {
        Collective::Broadcast { root } => broadcast(root, rank, size, &mut steps),
        Collective::Reduce { root } => reduce(root, rank, size, &mut steps),
        Collective::Allreduce => allreduce(rank, size, &mut steps),
        Collective::ExclusiveScan => scan(rank, size, &mut steps),
    }
    steps
}

/// Powers of two below `size`, ascending.
fn strides(size: Size) -> impl DoubleEndedIterator<Item = Rank> {
    (0..size.next_power_of_two().trailing_zeros()).map(|bit| 1 << bit)
}

fn broadcast(root: Rank, rank: Rank, size: Size, steps: &mut Vec<Step>) {
    // Ranks are counted from the root. A member gets the value from the rank without its lowest bit. It sends the value
    // to the ranks that have one more bit, below its lowest bit.
    let own = (rank + size - root) % size;
    let absolute = |relative: Rank| (relative + root) % size;
    let lowest = if own == 0 { size.next_power_of_two() } else { 1 << own.trailing_zeros() };
    if own != 0 {
        steps.push(Step::Replace(absolute(own - lowest)));
    }
    let below = strides(size).rev().filter(|stride| *stride < lowest && own + stride < size);
    steps.extend(below.map(|stride| Step::Send(absolute(own + stride))));
}

fn reduce(root: Rank, rank: Rank, size: Size, steps: &mut Vec<Step>) {
    // Values go towards rank 0 for every root, so that combined ranks are adjacent.
    for stride in strides(size) {
        if rank & stride != 0 {
            steps.push(Step::Send(rank - stride));
            break;
        }
        if rank + stride < size {
            steps.push(Step::CombineHigher(rank + stride));
        }
    }
    if root != 0 && rank == 0 {
        steps.push(Step::Send(root));
    }
    if root != 0 && rank == root {
        steps.push(Step::Replace(0));
    }
}

fn allreduce(rank: Rank, size: Size, steps: &mut Vec<Step>) {
    let power = 1 << size.ilog2();
    let extra = size - power;
    // The first 2 x extra ranks form pairs. The odd rank of each pair represents both.
    if rank < 2 * extra && rank.is_multiple_of(2) {
        steps.extend([Step::Send(rank + 1), Step::Replace(rank + 1)]);
        return;
    }
    let paired = rank < 2 * extra;
    if paired {
        steps.push(Step::CombineLower(rank - 1));
    }
    let own = if paired { rank / 2 } else { rank - extra };
    let absolute = |representative: Rank| {
        if representative < extra { 2 * representative + 1 } else { representative + extra }
    };
    for stride in strides(power) {
        let partner = own ^ stride;
        let at = absolute(partner);
        steps.extend([
            Step::Send(at),
            if partner < own { Step::CombineLower(at) } else { Step::CombineHigher(at) },
        ]);
    }
    if paired {
        steps.push(Step::Send(rank - 1));
    }
}

fn scan(rank: Rank, size: Size, steps: &mut Vec<Step>) {
    for stride in strides(size) {
        if rank + stride < size {
            steps.push(Step::Send(rank + stride));
        }
        if rank >= stride {
            steps.push(Step::CombinePrefix(rank - stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_send_has_one_receive() {
        for size in 1..70 {
            let kinds = (0..size)
                .flat_map(|root| [Collective::Broadcast { root }, Collective::Reduce { root }])
                .chain([Collective::Allreduce, Collective::ExclusiveScan]);
            for collective in kinds {
                let mut sent = Vec::new();
                let mut awaited = Vec::new();
                for rank in 0..size {
                    for step in steps(collective, rank, size) {
                        match step {
                            Step::Send(to) => sent.push((rank, to)),
                            other => awaited.extend(other.awaits().map(|from| (from, rank))),
                        }
                    }
                }
                sent.sort_unstable();
                awaited.sort_unstable();
                assert_eq!(sent, awaited, "{collective:?} of {size}");
                let count = sent.len();
                sent.dedup();
                assert_eq!(
                    sent.len(),
                    count,
                    "{collective:?} of {size}: two messages from one rank to another"
                );
            }
        }
    }
}
