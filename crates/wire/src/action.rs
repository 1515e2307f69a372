//! Management of files: the bodies of Flight actions, as JSON. Requests go to the entry node, except where the
//! documentation says otherwise.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounded::at_most;
use crate::{ErrorBody, FileMap, MAX_FILE_TARGETS, MAX_REQUEST_BYTES, TreeSource, WireError};

/// Names of the actions.
pub mod names {
    /// [`Open`](super::Open) to [`Opened`](super::Opened): opens a file and gives a grant to read it.
    pub const OPEN: &str = "open";
    /// [`Batch`](super::Batch) of [`Open`](super::Open) to as many outcomes: opens several files.
    pub const OPEN_MANY: &str = "open-many";
    /// [`Create`](super::Create) to [`Created`](super::Created): begins a put.
    pub const CREATE: &str = "create";
    /// [`Commit`](super::Commit) to [`FileInfo`](super::FileInfo): makes a written file visible.
    pub const COMMIT: &str = "commit";
    /// [`Batch`](super::Batch) of [`Create`](super::Create) to as many outcomes: begins the puts of small files.
    pub const CREATE_MANY: &str = "create-many";
    /// [`Batch`](super::Batch) of [`Commit`](super::Commit) to as many outcomes: makes several files visible.
    pub const COMMIT_MANY: &str = "commit-many";
    /// [`Attempt`](super::Attempt) to nothing: extends the lease of a put.
    pub const RENEW: &str = "renew";
    /// [`Attempt`](super::Attempt) to nothing: gives up a put.
    pub const ABANDON: &str = "abandon";
    /// [`PathRequest`](super::PathRequest) to [`FileInfo`](super::FileInfo).
    pub const STAT: &str = "stat";
    /// [`List`](super::List) to [`Listing`](super::Listing).
    pub const LIST: &str = "list";
    /// [`List`](super::List) to [`Listing`](super::Listing): files on all levels below a directory. Their names are paths
    /// below it. A directory in the answer was not entered, so another list gives its files.
    pub const LIST_BELOW: &str = "list-below";
    /// [`PathRequest`](super::PathRequest) to nothing.
    pub const REMOVE: &str = "remove";
    /// [`PathRequest`](super::PathRequest) to [`Amount`](super::Amount): removes a file, or all files in a directory.
    pub const REMOVE_ALL: &str = "remove-all";
    /// [`Rename`](super::Rename) to [`Renamed`](super::Renamed): changes the path of a file or a directory.
    pub const RENAME: &str = "rename";
    /// [`PathRequest`](super::PathRequest) to [`Amount`](super::Amount): the size of a file, or of all files in a
    /// directory.
    pub const USAGE: &str = "usage";
    /// [`SetMode`](super::SetMode) to nothing.
    pub const CHMOD: &str = "chmod";
    /// [`Attach`](super::Attach) to [`Tree`](super::Tree): a folder outside the cluster appears under a path.
    pub const ATTACH: &str = "attach";
    /// [`PathRequest`](super::PathRequest) to nothing: an attached tree disappears. Its files stay where they are.
    pub const DETACH: &str = "detach";
    /// Nothing to [`Trees`](super::Trees).
    pub const TREES: &str = "trees";
    /// [`SeeTree`](super::SeeTree) to [`SeenTree`](super::SeenTree), of the entry node to a storage node: whether it
    /// reaches a tree.
    pub const SEE_TREE: &str = "see-tree";
    /// Nothing to [`Nodes`](super::Nodes).
    pub const NODES: &str = "nodes";
    /// [`Join`](super::Join) to [`Joined`](super::Joined): registers a storage node.
    pub const JOIN: &str = "join";
    /// Nothing to nothing: the shortest request. Every node answers it.
    pub const PING: &str = "ping";
}

/// Most requests of one [`Batch`].
pub const MAX_BATCH: usize = 256;

/// Requests, or their answers, in one message, at most [`MAX_BATCH`]. Each request is answered separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Batch<T> {
    /// The requests in order, or the answers in the same order.
    #[serde(deserialize_with = "at_most::<_, _, MAX_BATCH>")]
    pub each: Vec<T>,
}

/// The answer to one request of a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome<T> {
    /// The result.
    Done(T),
    /// The error.
    Error(ErrorBody),
}

/// A request about a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRequest {
    /// Absolute path.
    pub path: String,
}

/// A request to open a file for reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Absolute path.
    pub path: String,
    /// The records of a file to which programs append. Without it, a file that grows during a request is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing: Option<Growing>,
}

impl Open {
    /// A request for a file that does not grow.
    pub fn new(path: impl Into<String>) -> Open {
        Open { path: path.into(), growing: None }
    }
}

/// The records of a file that grows. Only whole ones are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growing {
    /// Bytes before the first record.
    pub header: u64,
    /// Bytes of a record. `None`: lines.
    pub record: Option<u64>,
}

/// Information about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Its location.
    pub file: FileMap,
    /// Its owner.
    pub owner: String,
    /// Permission bits, `0o644`; `"644"` in JSON.
    #[serde(with = "crate::mode")]
    pub mode: u16,
    /// The time when it became visible, in seconds since 1970; 0 for a file of an attached tree.
    pub created: u64,
}

/// A file that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Information about it.
    pub info: FileInfo,
    /// The sealed grant to read it.
    pub grant: String,
}

/// A request to begin a put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Absolute path.
    pub path: String,
    /// Stripe unit in bytes, before rounding to records.
    pub unit: u64,
    /// Record size to round to.
    #[serde(default)]
    pub record: Option<u64>,
    /// Number of targets; `None`: all targets of the cluster.
    #[serde(default)]
    pub targets: Option<u32>,
    /// Numbers of the targets, in the order of the stripes.
    #[serde(default)]
    pub on: Option<Vec<u32>>,
    /// Permission bits, `"644"` in JSON; `None`: the bits of the file that is replaced, or `0o644`.
    #[serde(default, with = "crate::mode::optional")]
    pub mode: Option<u16>,
    /// Whether it becomes a segments file, whose pieces are made by the nodes that fold. Stripe unit and record are
    /// those of the input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
}

/// A put that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// Where to write. Versions and length are not known yet.
    pub file: FileMap,
    /// The sealed grant to write.
    pub grant: String,
    /// Number of seconds within which the client must renew the put.
    pub lease_seconds: u64,
}

/// A request about a put, by the id of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Id of the file.
    pub id: String,
}

/// A request to make a file visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Id of the file.
    pub id: String,
    /// Bytes of the file.
    pub length: u64,
    /// The receipts of the nodes for the objects, in the order of the layout; `None` for a target that has no bytes of
    /// the file.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub receipts: Vec<Option<Receipt>>,
}

/// A node's signed statement that an object is complete and durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Bytes of the object.
    pub length: u64,
    /// Bytes of the file in the object, if these are fewer: in a segments file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<u64>,
    /// Version of the object.
    pub version: u64,
    /// CRC-32C of the bytes that the node received; `None` for an object that the node made itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<u32>,
    /// Signature with the key of the cluster.
    pub seal: String,
}

impl Receipt {
    /// The text that is signed. `id`: the id of the file. `number`: the number of the target.
    pub fn signed_text(&self, id: &str, number: u32) -> String {
        let Receipt { length, version, data, sum, .. } = self;
        let data = data.map_or_else(String::new, |data| format!(" {data}"));
        let sum = sum.map_or_else(String::new, |sum| format!(" crc {sum:08x}"));
        format!("receipt {id} {number} {length} {version}{data}{sum}")
    }
}

/// A request for the names in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The directory.
    pub path: String,
    /// Only names after this one are listed.
    #[serde(default)]
    pub after: Option<String>,
    /// The list goes on from this place, the [`next`](Listing::next) of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Names in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Entries in ascending order of their names. In an attached tree the order is that of its storage.
    pub entries: Vec<Entry>,
    /// Whether there are more names.
    pub more: bool,
    /// The place where the next page begins, in an attached tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the list may lack names: web servers do not promise to list all files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_lack_names: bool,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The last component of the path; in the list of all levels below a directory, the path below it.
    pub name: String,
    /// Information about the file; `None` for a directory. A file of an attached tree is listed without the place where it
    /// lies, and only [`Open`] gives its map.
    pub info: Option<FileInfo>,
    /// The reason why it is neither file nor directory: a link that leads nowhere, a pipe. `info` is `None` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A request to attach a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// Absolute path under which the files appear.
    pub path: String,
    /// The tree.
    pub source: TreeSource,
    /// Permission bits of all its files, `"644"` in JSON. Only the bits for reading count.
    #[serde(with = "crate::mode")]
    pub mode: u16,
}

/// An attached tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The path under which its files appear.
    pub path: String,
    /// The tree.
    pub source: TreeSource,
    /// The owner of all its files: the user who attached it.
    pub owner: String,
    /// Permission bits of all its files, `"644"` in JSON.
    #[serde(with = "crate::mode")]
    pub mode: u16,
    /// The time when it was attached, in seconds since 1970.
    pub attached: u64,
    /// The targets whose nodes reach it.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub seen_by: Vec<u32>,
    /// The reason why the entry node does not reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The attached trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// Trees in the order of their paths.
    pub trees: Vec<Tree>,
}

/// Most names that the entry node asks about in [`SeeTree`].
pub const MAX_SEEN_NAMES: usize = 16;

/// A question of the entry node: whether a storage node reaches a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeeTree {
    /// The tree.
    pub source: TreeSource,
    /// Some names in the root of the tree, which the node must find too.
    #[serde(deserialize_with = "at_most::<_, _, MAX_SEEN_NAMES>")]
    pub names: Vec<String>,
    /// The time of the question, in seconds since 1970. Nodes refuse old questions.
    pub at: u64,
    /// Signature of the other fields with the key of the cluster.
    pub seal: String,
}

impl SeeTree {
    /// The text that is signed.
    ///
    /// # Errors
    /// The error is [`WireError::Malformed`] if the fields cannot be written as JSON.
    pub fn signed_text(&self) -> Result<Vec<u8>, WireError> {
        encode(&("see-tree", &self.source, &self.names, self.at))
    }
}

/// The answer to [`SeeTree`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTree {
    /// The reason why the node does not reach the tree; `None` if it does.
    pub why_not: Option<String>,
}

/// Number and size of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Number of files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The time when the newest file became visible, in seconds since 1970.
    pub changed: u64,
    /// Whether the path is a directory.
    pub directory: bool,
    /// Number of files and directories of an attached tree that may not be read, and are not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A request to change the path of a file, or of all files in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Absolute path. With a slash at its end it is only a directory.
    pub from: String,
    /// Absolute path. If it is an existing directory or ends with a slash, the old name is kept within it.
    pub to: String,
}

/// The result of a [`Rename`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    /// The new path.
    pub path: String,
    /// Number of files whose path changed.
    pub files: u64,
}

/// A request to change permission bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMode {
    /// Absolute path.
    pub path: String,
    /// The bits, `0o600`; `"600"` in JSON.
    #[serde(with = "crate::mode")]
    pub mode: u16,
}

/// A request of a storage node to join the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Id of its target, 32 hexadecimal digits.
    pub target: String,
    /// The address on which it listens.
    pub address: String,
    /// Whether the node holds no files of the cluster, and only reads attached trees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_store: bool,
    /// The time of the request, in seconds since 1970. The entry node refuses old requests.
    pub at: u64,
    /// Signature of the other fields with the key of the cluster.
    pub seal: String,
}

impl Join {
    /// The text that is signed.
    pub fn signed_text(&self) -> String {
        let store = if self.without_store { " without store" } else { "" };
        format!("join {} {} {}{store}", self.target, self.address, self.at)
    }
}

/// The answer to a node that joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Number of its target in the cluster.
    pub number: u32,
}

/// The storage nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// Nodes in the order of their numbers.
    pub nodes: Vec<Node>,
}

/// One storage node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of its target.
    pub number: u32,
    /// Id of its target.
    pub target: String,
    /// The address on which it listens.
    pub address: String,
    /// Whether the node holds no files of the cluster, and only reads attached trees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_store: bool,
}

/// Reads the body of an action. An empty body counts as `null`.
///
/// # Errors
/// The error is [`WireError::TooLong`] if the body is longer than [`MAX_REQUEST_BYTES`], and [`WireError::Malformed`]
/// if it is not JSON of this type.
pub fn decode<T: DeserializeOwned>(what: &'static str, body: &[u8]) -> Result<T, WireError> {
    if body.len() > MAX_REQUEST_BYTES {
        return Err(WireError::TooLong { what, bytes: body.len(), max: MAX_REQUEST_BYTES });
    }
    let body = if body.is_empty() { b"null" } else { body };
    serde_json::from_slice(body).map_err(|e| WireError::Malformed { what, why: e.to_string() })
}

/// Writes the body of an action.
///
/// # Errors
/// The error is [`WireError::Malformed`] if the value cannot be written as JSON.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    serde_json::to_vec(value).map_err(|e| WireError::Malformed { what: "message", why: e.to_string() })
}
