//! Work that is handed back: whoever folds the records of some targets stops at a record, and whoever asked goes on
//! from there.
//!
//! A state is a few bytes at any record boundary, so nothing is folded twice and nothing is lost; by the laws of a
//! kernel the answer has the same bits. Of a value the partial says what is folded. Rows come in ascending order, so
//! one position says it, and the state of the unit that was cut goes along.

use std::ops::Range;
use std::time::Duration;

use gristmill_layout::TargetIndex;

/// What is left of a shard, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandBack {
    /// The targets whose records nobody folds any further where they lie.
    pub targets: Vec<TargetIndex>,
    /// For rows: the unit that was cut or not begun.
    pub left: Left,
    /// Why, in one sentence.
    pub why: String,
}

/// Where rows were cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Nothing is folded from this position on.
    pub from: u64,
    /// Records of the unit that was begun, up to `from`, and the state after them. Its end was not told.
    pub begun: Option<(Range<u64>, Vec<u8>)>,
}

/// A change of where records are folded, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The targets concerned.
    pub targets: Vec<TargetIndex>,
    /// How long after the request began.
    pub after: Duration,
    /// Why, in one sentence.
    pub why: String,
}
