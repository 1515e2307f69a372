//! What can be asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gristmill_peers::Question;
use gristmill_wire::{FoldPlace, InputSpec};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Command {
    Floor(Scan),
    Plain(Scan),
    Run(Run),
    Put(Put),
    Ping(Ping),
    Ask(Ask),
    Program(Program),
    Upload(Upload),
    Download(Download),
    PutMany(PutMany),
    FoldMany(FoldMany),
    Copies(Copies),
    Tcp(Tcp),
    Echo(Echo),
    Feed(Feed),
    Drain(Drain),
}

/// Reading plain files without the runtime.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    pub path: PathBuf,
    /// Files to be read besides.
    #[serde(default)]
    pub also: Vec<PathBuf>,
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
    /// Their bytes are hashed and not kept.
    Digest,
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

/// Storage nodes, and who asks them.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Address of the entry node.
    pub address: String,
    /// Certificate authority, PEM.
    pub ca: Option<PathBuf>,
    pub token: Option<String>,
}

/// The shortest request, so many times on one connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    pub cluster: Entry,
    pub count: usize,
}

/// What is asked of a file of storage nodes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub kernel: String,
    #[serde(rename = "type")]
    pub element: Option<String>,
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Bytes of a record.
    pub record: Option<u64>,
    /// First byte and length.
    pub range: Option<(u64, u64)>,
    /// Threads that fold at the client.
    pub lanes: Option<usize>,
    pub place: FoldPlace,
    #[serde(default)]
    pub rows: Rows,
}

impl Asked {
    pub fn question(&self) -> Question {
        let input = InputSpec { dtype: self.element.clone(), record: self.record, ..InputSpec::default() };
        let params = self.params.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let range = self.range.map(|(start, length)| (start, Some(length)));
        Question { kernel: self.kernel.clone(), params, input, range, array: None }
    }
}

/// One rank of a parallel program that reads a file of storage nodes into memory and folds it there. Its records are of a
/// fixed size, and its answer is a value; `place`, `range` and `rows` of what is asked count for nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub cluster: Entry,
    pub file: String,
    pub what: Asked,
    pub rank: u32,
    pub ranks: u32,
    /// Where rank 0 listens for the others.
    pub root: String,
}

/// A request to storage nodes, so many times from each of so many clients with connections of their own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub cluster: Entry,
    pub file: String,
    pub what: Asked,
    #[serde(default = "one")]
    pub count: usize,
    #[serde(default = "one")]
    pub clients: usize,
}

/// Copying a file to storage nodes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    pub cluster: Entry,
    pub source: PathBuf,
    pub file: String,
    pub targets: Option<u32>,
    /// These targets, in this order.
    pub on: Option<Vec<u32>>,
    /// Bytes of a stripe.
    pub stripe: u64,
}

/// Copying a file from storage nodes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    pub cluster: Entry,
    pub file: String,
    pub destination: PathBuf,
}

/// Copying all files of a directory to storage nodes, each to one target.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutMany {
    pub cluster: Entry,
    pub source: PathBuf,
    /// Directory on the storage nodes.
    pub folder: String,
}

/// One request to each file of a directory on storage nodes, on so many threads over one connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldMany {
    pub cluster: Entry,
    pub folder: String,
    pub what: Asked,
    pub threads: usize,
}

/// Durable copies of all files of a directory to another one, on so many threads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copies {
    pub source: PathBuf,
    pub folder: PathBuf,
    pub threads: usize,
}

/// A file through TCP connections of this machine into files of a directory, one for each connection, made durable.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    pub source: PathBuf,
    pub folder: PathBuf,
    pub streams: usize,
}

/// A byte to and fro over a TCP connection of this machine, so many times.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Echo {
    pub count: usize,
}

/// Waits for one TCP connection and sends it a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    pub listen: String,
    pub source: PathBuf,
}

/// Connects and reads until the other side has sent all, and does nothing with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    pub from: String,
}

fn one() -> usize {
    1
}
