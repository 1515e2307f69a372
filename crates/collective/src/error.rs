//! Reasons why a collective fails.

use crate::Rank;

/// Reason why a member gave up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// A member gave no sign of life while this one waited for it.
    #[error("member {rank} gave no sign of life for {seconds} s")]
    Silent {
        /// Rank of the silent member.
        rank: Rank,
        /// Length of the silence, in seconds.
        seconds: u64,
    },
    /// Another member gave up, and reported the reason.
    #[error("{why}")]
    Abandoned {
        /// The member that reported the reason.
        rank: Rank,
        /// Reason of the member that gave up first.
        why: String,
    },
    /// A message does not belong to the collective.
    #[error("member {from} sent an unexpected message ({why}); check that all members run the same version")]
    UnexpectedMessage {
        /// Sender of the message.
        from: Rank,
        /// Reason why the message was not expected.
        why: &'static str,
    },
    /// Two values could not be combined.
    #[error("{0}")]
    Operator(String),
    /// A rank or a number of members is out of range.
    #[error(
        "rank {rank} of {size} members is not possible; use 1 to {max} members and number the ranks from 0"
    )]
    InvalidRank {
        /// The rank.
        rank: Rank,
        /// Number of members.
        size: u32,
        /// Largest possible number of members.
        max: u32,
    },
}
