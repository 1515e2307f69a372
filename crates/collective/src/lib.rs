//! Collectives between the servers that work on one request: broadcast, reduce, allreduce, gather, exclusive scan.
//!
//! Without collectives a client would have to coordinate the servers pass by pass. The operator is the merge of partial
//! results. Everything here is a state machine without sockets, threads or a clock of its own. So the same code runs
//! between real servers and in a simulator with a thousand of them.
//!
//! - [`Execution`] is one member's part in one collective.
//! - [`Member`] takes part in one collective after the other. It notices when a member that it waits for is lost, and
//!   tells the others. So no member waits for ever.
//! - [`simulate`] runs members with delays, crashes and reordered messages that are drawn from a seed.
//!
//! Three members add numbers, and the example passes the messages on:
//! ```
//! use gristmill_collective::{Collective, CollectiveError, Execution, cost};
//!
//! let mut add = |a: Vec<u8>, b: Vec<u8>| Ok::<_, CollectiveError>(vec![a[0] + b[0]]);
//! let mut members = (0..3)
//!     .map(|rank| Execution::new(Collective::Allreduce, rank, 3, vec![10 * (rank as u8 + 1)]))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let mut messages = 0;
//! while !members.iter().all(Execution::is_done) {
//!     for rank in 0..3 {
//!         let mut sent = Vec::new();
//!         members[rank].advance(&mut add, |to, value| sent.push((to, value.to_vec())))?;
//!         for (to, value) in sent {
//!             messages += 1;
//!             members[to as usize].deliver(rank as u32, value)?;
//!         }
//!     }
//! }
//! assert!(members.into_iter().all(|member| member.outcome().value == [60]));
//! assert_eq!(messages, cost(Collective::Allreduce, 3).messages);
//! # Ok::<(), CollectiveError>(())
//! ```

mod cost;
mod error;
mod execution;
mod member;
mod schedule;
pub mod simulate;

pub use cost::{Cost, cost};
pub use error::CollectiveError;
pub use execution::{Execution, Operator, Outcome};
pub use member::{ASK_EVERY, Action, Limits, Member, Reply, STALL};
pub use schedule::Collective;

/// Number of a member, from 0.
pub type Rank = u32;

/// Number of members.
pub type Size = u32;

/// Most members of a collective.
pub const MAX_SIZE: Size = 1 << 16;
