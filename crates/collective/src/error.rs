//! Why a collective came to nothing.

use crate::Rank;

/// Why a member gave up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// Somebody who is waited for gave no sign of life.
    #[error("member {rank} gave no sign of life for {seconds} s")]
    Silent {
        /// Who.
        rank: Rank,
        /// For how long.
        seconds: u64,
    },
    /// Another member gave up, and said why.
    #[error("{why}")]
    Abandoned {
        /// Who it was heard from.
        rank: Rank,
        /// What the first to give up said.
        why: String,
    },
    /// A message that has no place in the collective.
    #[error("member {from} sent a message that makes no sense ({why}); do all members run the same version?")]
    Disorder {
        /// Whose message.
        from: Rank,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two values could not be combined.
    #[error("{0}")]
    Operator(String),
    /// Ranks that cannot be.
    #[error("{size} members, and one with rank {rank}; 1 to {max} are possible, ranks from 0")]
    Ranks {
        /// The rank.
        rank: Rank,
        /// Members.
        size: u32,
        /// Most members.
        max: u32,
    },
}
