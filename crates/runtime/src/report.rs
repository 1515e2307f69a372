//! What a request reports about itself.

use std::time::Duration;

/// Where and how an answer was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Wall-clock time from the first read to the answer.
    pub elapsed: Duration,
    /// Passes over the records.
    pub rounds: u32,
    /// Threads that folded.
    pub lanes: usize,
    /// Bytes that folds were given, read where they lie, in all passes. What is read besides, because it lies between
    /// them, is not counted.
    pub bytes_read: u64,
    /// Bytes that one target pulled from another.
    pub bytes_moved: u64,
    /// Messages between targets that this took.
    pub messages: u64,
    /// Bytes that came over a network to whoever asked: answers of storage nodes, or all that was read.
    pub bytes_to_client: u64,
    /// Bytes that a plain read over a network would have moved besides; 0 where there is no network.
    pub bytes_not_moved: u64,
    /// One entry a target.
    pub places: Vec<PlaceReport>,
}

/// What happened at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceReport {
    /// `storage` or `client`.
    pub place: &'static str,
    /// The target.
    pub node: String,
    /// Records folded there in one pass; `None` for lines, which are not counted unless that is the question.
    pub records: Option<u64>,
    /// Bytes read there, in all passes.
    pub bytes: u64,
    /// Why the folds ran there.
    pub why: &'static str,
}
