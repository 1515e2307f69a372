//! What a collective costs, in theory.

use crate::{Collective, Size};

/// Rounds and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Rounds of messages: with equal delays, and members that send and take one message after the other, how many
    /// delays it takes.
    pub rounds: u64,
    /// Messages of all members.
    pub messages: u64,
}

/// What a collective of `size` members (at least 1) costs, by the formulas of the textbook.
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
