//! Theoretical cost of a collective.

use crate::{Collective, Size};

/// Number of rounds and messages of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Rounds of messages: the duration in delays, if all delays are equal and members send and receive one message
    /// after the other.
    pub rounds: u64,
    /// Messages of all members.
    pub messages: u64,
}

/// Computes the cost of a collective of `size` members (at least 1) by the formulas of the textbook.
pub fn cost(collective: Collective, size: Size) -> Cost {
    let n = u64::from(size.max(1));
    let ceil = u64::from(n.next_power_of_two().trailing_zeros());
    match collective {
        Collective::Broadcast { .. } => Cost { rounds: ceil, messages: n - 1 },
        Collective::Reduce { root } => {
            let last = u64::from(root != 0);
            Cost { rounds: ceil + last, messages: n - 1 + last }
        }
        Collective::Allreduce => {
            let doublings = u64::from(n.ilog2());
            let power = 1 << doublings;
            let outer = if power < n { 2 } else { 0 };
            Cost { rounds: doublings + outer, messages: power * doublings + 2 * (n - power) }
        }
        Collective::ExclusiveScan => {
            let messages = (0..ceil).map(|i| n - (1 << i)).sum();
            Cost { rounds: ceil, messages }
        }
    }
}
