//! Work that is handed back: a node stops to fold the records of some targets at a record, and the client goes on from
//! there.
//!
//! A state is a few bytes at any record boundary, so no record is folded twice and no record is lost. By the laws of a
//! kernel the answer has the same bits. For a value the partial tells which records are folded. Rows come in ascending
//! order, so one position tells it, together with the state of the unit that was cut.

use std::ops::Range;
use std::time::Duration;

use gristmill_layout::TargetIndex;

/// The part of a shard that is handed back, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandBack {
    /// The targets whose records are folded no further where they lie.
    pub targets: Vec<TargetIndex>,
    /// For rows: the place where they were cut.
    pub row_cut: RowCut,
    /// The reason, in one sentence.
    pub why: String,
}

/// The place where rows were cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowCut {
    /// Position of the first record that is not folded.
    pub from: u64,
    /// Records of the unit that was begun, up to `from`, and the state after them. The end of this unit was not sent.
    pub begun: Option<(Range<u64>, Vec<u8>)>,
}

/// A changed decision about the place where records are folded, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The targets whose records are folded somewhere else.
    pub targets: Vec<TargetIndex>,
    /// Time since the request began.
    pub after: Duration,
    /// The reason, in one sentence.
    pub why: String,
}
