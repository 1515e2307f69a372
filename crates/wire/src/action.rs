//! What manages files: the bodies of Flight actions, as JSON. Requests go to the entry node unless said otherwise.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounded::at_most;
use crate::{ErrorBody, FileMap, MAX_FILE_TARGETS, MAX_REQUEST_BYTES, WireError};

/// Names of the actions.
pub mod names {
    /// [`Open`](super::Open) to [`Opened`](super::Opened): a file and a grant to read it.
    pub const OPEN: &str = "open";
    /// [`Many`](super::Many) of [`Open`](super::Open) to as many outcomes.
    pub const OPEN_MANY: &str = "open-many";
    /// [`Create`](super::Create) to [`Created`](super::Created): begins a put.
    pub const CREATE: &str = "create";
    /// [`Commit`](super::Commit) to [`FileInfo`](super::FileInfo): makes what was put visible.
    pub const COMMIT: &str = "commit";
    /// [`Many`](super::Many) of [`Create`](super::Create) to as many outcomes: begins the puts of small files.
    pub const CREATE_MANY: &str = "create-many";
    /// [`Many`](super::Many) of [`Commit`](super::Commit) to as many outcomes.
    pub const COMMIT_MANY: &str = "commit-many";
    /// [`Attempt`](super::Attempt) to nothing: a put is still going on.
    pub const RENEW: &str = "renew";
    /// [`Attempt`](super::Attempt) to nothing: a put is given up.
    pub const ABANDON: &str = "abandon";
    /// [`PathOf`](super::PathOf) to [`FileInfo`](super::FileInfo).
    pub const STAT: &str = "stat";
    /// [`List`](super::List) to [`Listing`](super::Listing).
    pub const LIST: &str = "list";
    /// [`PathOf`](super::PathOf) to nothing.
    pub const REMOVE: &str = "remove";
    /// [`PathOf`](super::PathOf) to [`Amount`](super::Amount): removes a file, or all that lies in a directory.
    pub const REMOVE_ALL: &str = "remove-all";
    /// [`Rename`](super::Rename) to [`Renamed`](super::Renamed): a file or a directory gets another path.
    pub const RENAME: &str = "rename";
    /// [`PathOf`](super::PathOf) to [`Amount`](super::Amount): how much a file is, or all that lies in a directory.
    pub const USAGE: &str = "usage";
    /// [`SetMode`](super::SetMode) to nothing.
    pub const CHMOD: &str = "chmod";
    /// Nothing to [`Nodes`](super::Nodes).
    pub const NODES: &str = "nodes";
    /// [`Join`](super::Join) to [`Joined`](super::Joined): a storage node makes itself known.
    pub const JOIN: &str = "join";
    /// To every node: nothing to nothing, the shortest request there is.
    pub const PING: &str = "ping";
}

/// Most requests of one [`Many`].
pub const MAX_MANY: usize = 256;

/// Requests that travel together, each answered by itself, at most [`MAX_MANY`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Many<T> {
    /// In order.
    #[serde(deserialize_with = "at_most::<_, _, MAX_MANY>")]
    pub each: Vec<T>,
}

/// How one of [`Many`] went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome<T> {
    /// Its answer.
    Done(T),
    /// Why not.
    Error(ErrorBody),
}

/// A file by its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathOf {
    /// Absolute path.
    pub path: String,
}

/// Opens a file for reading.
pub type Open = PathOf;

/// What is known about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Where it lies.
    pub file: FileMap,
    /// Its owner.
    pub owner: String,
    /// Permission bits, `0o644`; `"644"` in JSON.
    #[serde(with = "crate::mode")]
    pub mode: u16,
    /// When it became visible, in seconds since 1970.
    pub created: u64,
}

/// A file that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// What is known about it.
    pub info: FileInfo,
    /// The sealed grant to read it.
    pub grant: String,
}

/// Begins a put.
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
    /// How many targets; all of the cluster where nothing is said.
    #[serde(default)]
    pub targets: Option<u32>,
    /// Which targets by number, in the order in which stripes are dealt.
    #[serde(default)]
    pub on: Option<Vec<u32>>,
    /// Permission bits, `"644"` in JSON; of the file that is replaced, or `0o644`, where nothing is said.
    #[serde(default, with = "crate::mode::optional")]
    pub mode: Option<u16>,
    /// A segments file, whose pieces nodes make that fold. Stripe unit and record are those of their input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
}

/// A put that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// Where to write; versions and length are not known yet.
    pub file: FileMap,
    /// The sealed grant to write.
    pub grant: String,
    /// Say within so many seconds that the put goes on.
    pub lease_seconds: u64,
}

/// A put by its file's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Id of the file.
    pub id: String,
}

/// Makes a file visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Id of the file.
    pub id: String,
    /// Its bytes.
    pub length: u64,
    /// What the nodes said of the objects, in the order of the layout; `None` for a target that has no bytes of it.
    #[serde(deserialize_with = "at_most::<_, _, MAX_FILE_TARGETS>")]
    pub receipts: Vec<Option<Receipt>>,
}

/// A node's word that it has an object, whole and durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Bytes of the object.
    pub length: u64,
    /// Bytes of the file in it, where these are fewer: in a segments file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<u64>,
    /// Its version.
    pub version: u64,
    /// CRC-32C of its bytes as they came to the node; of an object that a node made itself there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<u32>,
    /// Signature with the key of the cluster.
    pub seal: String,
}

impl Receipt {
    /// What is signed: the object of this file on the target of this number.
    pub fn signed_text(&self, id: &str, number: u32) -> String {
        let Receipt { length, version, data, sum, .. } = self;
        let data = data.map_or_else(String::new, |data| format!(" {data}"));
        let sum = sum.map_or_else(String::new, |sum| format!(" crc {sum:08x}"));
        format!("receipt {id} {number} {length} {version}{data}{sum}")
    }
}

/// Asks for names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The directory.
    pub path: String,
    /// Only names behind this one.
    #[serde(default)]
    pub after: Option<String>,
}

/// Names of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// In ascending order.
    pub entries: Vec<Entry>,
    /// Ask again behind the last name.
    pub more: bool,
}

/// One name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its last component.
    pub name: String,
    /// `None` for a directory.
    pub info: Option<FileInfo>,
}

/// Files, and how much they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the newest became visible, in seconds since 1970.
    pub changed: u64,
    /// They lie in a directory of this name.
    pub directory: bool,
}

/// Gives a file, or all that lies in a directory, another path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Absolute path; with a slash at its end only a directory.
    pub from: String,
    /// Absolute path. Into a directory that is there, or that ends with a slash, the old name goes.
    pub to: String,
}

/// What a [`Rename`] did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    /// Where it is now.
    pub path: String,
    /// Files that have another path by it.
    pub files: u64,
}

/// Changes permission bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMode {
    /// Absolute path.
    pub path: String,
    /// The bits, `0o600`; `"600"` in JSON.
    #[serde(with = "crate::mode")]
    pub mode: u16,
}

/// A storage node makes itself known to the entry node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Id of its target, 32 hexadecimal digits.
    pub target: String,
    /// Where it listens.
    pub address: String,
    /// When this was said, in seconds since 1970; the entry node refuses what is old.
    pub at: u64,
    /// Signature of the other fields with the key of the cluster.
    pub seal: String,
}

impl Join {
    /// What is signed.
    pub fn signed_text(&self) -> String {
        format!("join {} {} {}", self.target, self.address, self.at)
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
    /// In the order of their numbers.
    pub nodes: Vec<Node>,
}

/// One storage node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of its target.
    pub number: u32,
    /// Id of its target.
    pub target: String,
    /// Where it listens.
    pub address: String,
}

/// Reads the body of an action; an empty one counts as `null`.
///
/// # Errors
/// The error is [`WireError::TooLong`] if the body is longer than [`MAX_REQUEST_BYTES`], and [`WireError::Malformed`]
/// if it is no JSON of this type.
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
