//! What a node says of its load: `GET /load/KERNEL` with a grant.

use serde::{Deserialize, Serialize};

/// Longest answer, in bytes.
pub const MAX_LOAD_BYTES: usize = 64 << 10;

/// What a node can do and has to do. Whoever reads it believes it within bounds only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Number of its target.
    pub target: u32,
    /// Processors that active work may use now; 0: it takes none.
    pub cores: f64,
    /// Threads of a fold.
    pub lanes: u32,
    /// Bytes a second that one processor folds with the kernel that was asked about.
    pub rate: f64,
    /// Whether that was measured, or is what is said of every kernel at first.
    pub measured: bool,
    /// Bytes a second of its link to clients.
    pub link: f64,
    /// Whether that was measured lately by what is sent over it, or is what is said of it.
    #[serde(default)]
    pub link_measured: bool,
    /// Seconds for which the link has to send what was handed back.
    pub link_busy: f64,
    /// Active requests, and of them those at work.
    pub active: u64,
    /// See [`active`](NodeLoad::active).
    pub running: u64,
    /// Normal reads and writes that are being served.
    #[serde(default)]
    pub normal: u64,
    /// Seconds for which these processors have active work.
    pub queued: f64,
    /// Share of all its processors that is used, 0 to 1, and of that what is not active work.
    pub cpu: f64,
    /// See [`cpu`](NodeLoad::cpu).
    pub others: f64,
    /// Bytes of memory that can be had, and all of them, if it knows.
    #[serde(default)]
    pub memory: Option<(u64, u64)>,
    /// Share of the last ten seconds in which something waited for I/O, 0 to 1, if it knows.
    #[serde(default)]
    pub io: Option<f64>,
    /// The processors that it runs on, if it can tell.
    #[serde(default)]
    pub processors: Option<Processors>,
    /// Bytes that one processor sends in a second, reading them included; 0: it does not say.
    #[serde(default)]
    pub sends: f64,
}

/// The processors that a process runs on, which others may run on too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    /// The same for all that run on them; see [`names_processors`].
    pub name: String,
    /// How many there are for all of these together, whatever they do.
    pub cores: f64,
    /// Of these, what active work of the process may use if nobody else uses any.
    pub most: f64,
    /// Of these, what its active work used lately.
    pub used: f64,
}

/// Digits of the name of some processors.
const NAME_DIGITS: usize = 16;

/// Whether processors may be named so: 16 hexadecimal digits, a digest that tells nothing but which are the same.
pub fn names_processors(name: &str) -> bool {
    name.len() == NAME_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
