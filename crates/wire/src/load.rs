//! The load that a node reports: `GET /load/KERNEL` with a grant.

use serde::{Deserialize, Serialize};

/// Longest answer, in bytes.
pub const MAX_LOAD_BYTES: usize = 64 << 10;

/// Speed and work of a node, as it reports them. A reader bounds these values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Number of its target.
    pub target: u32,
    /// Processors that active work may use now; 0: active work is refused.
    pub cores: f64,
    /// Threads of a fold.
    pub lanes: u32,
    /// Bytes per second that one processor folds with the kernel of the request.
    pub rate: f64,
    /// Whether the rate was measured. If not, it is the initial estimate.
    pub measured: bool,
    /// Bytes per second of its link to clients.
    pub link: f64,
    /// Whether the speed of the link was measured lately. If not, it is an estimate.
    #[serde(default)]
    pub link_measured: bool,
    /// Seconds that the link needs for the parts that were handed back.
    pub link_busy: f64,
    /// Number of active requests.
    pub active: u64,
    /// Number of active requests that are running.
    pub running: u64,
    /// Number of normal reads and writes that are being served.
    #[serde(default)]
    pub normal: u64,
    /// Seconds for which the processors have active work.
    pub queued: f64,
    /// Share of all processors that is used, 0 to 1.
    pub cpu: f64,
    /// Share of all processors that is used by other than active work, 0 to 1.
    pub others: f64,
    /// Bytes of available memory and of all memory, if known.
    #[serde(default)]
    pub memory: Option<(u64, u64)>,
    /// Share of the last ten seconds in which some process waited for I/O, 0 to 1, if known.
    #[serde(default)]
    pub io: Option<f64>,
    /// The processors that it runs on, if known.
    #[serde(default)]
    pub processors: Option<Processors>,
    /// Bytes per second that one processor reads and sends; 0: unknown.
    #[serde(default)]
    pub sends: f64,
}

/// The processors that a process runs on. Other processes may run on them too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    /// Name of the processors, the same for all processes on them; see [`is_processors_name`].
    pub name: String,
    /// Number of processors for all processes together.
    pub cores: f64,
    /// Number of these that active work of the process may use if no other process uses any.
    pub most: f64,
    /// Number of these that its active work used lately.
    pub used: f64,
}

/// Digits of the name of processors.
const NAME_DIGITS: usize = 16;

/// Whether the text is a name of processors: 16 hexadecimal digits, a digest that tells only which processors are the
/// same.
pub fn is_processors_name(name: &str) -> bool {
    name.len() == NAME_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
