//! A step of a scrub: `POST /objects/NAME/scrub/BYTE` with a grant to read.

use serde::{Deserialize, Serialize};

/// Longest answer, in bytes.
pub const MAX_SCRUB_BYTES: usize = 64 << 10;

/// What a node found in a stretch of an object that it compared with its checksums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStep {
    /// Where the next step begins; `None` at the end of the object.
    pub next: Option<u64>,
    /// Bytes that are those that were written.
    pub checked: u64,
    /// Bytes of which nothing was known, which are checked from now on.
    pub learnt: u64,
    /// Starts and ends of ranges of the object whose bytes are not those that were written.
    pub damaged: Vec<(u64, u64)>,
}
