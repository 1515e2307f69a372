//! What can be asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Command {
    Floor(Scan),
    Plain(Scan),
    Run(Run),
    Put(Put),
}

/// Reading a plain file without the runtime.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    pub path: PathBuf,
    pub lanes: usize,
}

/// A request to the runtime; what is left out has the runtime's default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub kernel: String,
    pub path: PathBuf,
    #[serde(default, rename = "type")]
    pub element: Option<String>,
    #[serde(default)]
    pub lines: bool,
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    pub lanes: Option<usize>,
    /// Bytes of a block.
    pub block: Option<usize>,
    /// Bytes of a unit.
    pub unit: Option<u64>,
    #[serde(default)]
    pub rows: Rows,
}

/// What becomes of the rows of an answer.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    #[default]
    Discard,
    /// Their positions and bytes are kept in memory, as a reader that wants arrays would.
    Collect,
}

/// Striping a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    pub source: PathBuf,
    /// The layout file, `*.grist`.
    pub path: PathBuf,
    pub targets: Vec<PathBuf>,
    /// Bytes of a stripe.
    pub stripe: u64,
}
