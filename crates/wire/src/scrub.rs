//! The answer to a step of a scrub: `POST /objects/NAME/scrub/BYTE` with a grant to read.

use serde::{Deserialize, Serialize};

/// Longest answer, in bytes.
pub const MAX_SCRUB_BYTES: usize = 64 << 10;

/// Result of the comparison of a part of an object with its checksums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStep {
    /// Where the next step begins; `None` at the end of the object.
    pub next: Option<u64>,
    /// Number of bytes that fit their checksums.
    pub checked: u64,
    /// Number of bytes that had no checksum. They have one from now on.
    pub learnt: u64,
    /// Starts and ends of the ranges of the object whose bytes do not fit their checksums.
    pub damaged: Vec<(u64, u64)>,
}
