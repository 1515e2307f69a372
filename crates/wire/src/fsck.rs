//! `fsck`: comparison of the objects of a storage node with the namespace, page by page.
//!
//! The client sends `POST /fsck` and an [`FsckStep`] to the entry node. The entry node asks the storage node for a page
//! of its objects: `GET /objects/NAME/next` with a grant to manage. The answer is an [`ObjectPage`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::WireError;

/// Most objects of one [`ObjectPage`].
pub const MAX_OBJECTS_LISTED: usize = 512;

/// Longest answer to an [`FsckStep`], in bytes. Every file of the page may be lost, and paths may be long.
pub const MAX_FSCK_BYTES: usize = 32 << 20;

/// Longest [`ObjectPage`], in bytes.
pub const MAX_OBJECT_PAGE_BYTES: usize = 1 << 20;

/// Longest [`FsckStep`], in bytes.
pub const MAX_FSCK_STEP_BYTES: usize = 1 << 10;

/// The id before the ids of all files.
pub const FIRST_ID: &str = "00000000000000000000000000000000";

/// A request to check some objects of a storage node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsckStep {
    /// Number of the node's target.
    pub number: u32,
    /// Id of a file: 32 hexadecimal digits. Objects of files with larger ids are checked. It is [`FIRST_ID`] at first.
    pub after: String,
    /// Whether to remove the objects that no put names. Only administrators may do that.
    #[serde(default)]
    pub remove: bool,
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsckResult {
    /// Number of objects that were compared.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Files whose object is missing or wrong.
    pub lost: Vec<LostObject>,
    /// Objects that no put names.
    pub unnamed: Vec<UnnamedObject>,
    /// Id after which the next step begins; `None` at the end.
    pub next: Option<String>,
}

/// An object of a file that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostObject {
    /// Path of the file.
    pub path: String,
    /// Name of the object.
    pub object: String,
    /// The fault, as a part of a sentence.
    pub why: String,
}

/// An object that no put names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnamedObject {
    /// Its name.
    pub object: String,
    /// Its bytes; 0 if unknown.
    pub bytes: u64,
    /// Whether it was removed in this step.
    pub removed: bool,
}

/// Objects of files on a storage node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPage {
    /// Objects in the order of their ids.
    pub objects: Vec<ObjectEntry>,
    /// The id up to which all objects are listed; `None`: there are no more.
    pub end: Option<String>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectEntry {
    /// Id of its file.
    pub id: String,
    /// Its state.
    pub state: ObjectState,
}

/// The state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectState {
    /// All of it was written.
    Complete {
        /// Its version.
        version: u64,
        /// Its bytes.
        length: u64,
    },
    /// It is being written, or its writer has gone.
    Incomplete {
        /// Its bytes so far.
        length: u64,
    },
    /// Its state cannot be read. The text is the reason.
    Unreadable(String),
}

impl ObjectState {
    /// Bytes of the object; 0 if unknown.
    pub fn length(&self) -> u64 {
        match self {
            ObjectState::Complete { length, .. } | ObjectState::Incomplete { length } => *length,
            ObjectState::Unreadable(_) => 0,
        }
    }
}

impl FsckStep {
    /// Decodes the request of a client.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than the bound, and [`WireError::Malformed`]
    /// if they are not such JSON.
    pub fn decode(bytes: &[u8]) -> Result<FsckStep, WireError> {
        decode("step of fsck", bytes, MAX_FSCK_STEP_BYTES)
    }
}

impl FsckResult {
    /// Decodes the answer of the entry node.
    ///
    /// # Errors
    /// It fails as [`FsckStep::decode`] does.
    pub fn decode(bytes: &[u8]) -> Result<FsckResult, WireError> {
        decode("result of fsck", bytes, MAX_FSCK_BYTES)
    }
}

impl ObjectPage {
    /// Decodes the answer of a storage node.
    ///
    /// # Errors
    /// It fails as [`FsckStep::decode`] does.
    pub fn decode(bytes: &[u8]) -> Result<ObjectPage, WireError> {
        decode("page of objects", bytes, MAX_OBJECT_PAGE_BYTES)
    }
}

fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8], max: usize) -> Result<T, WireError> {
    if bytes.len() > max {
        return Err(WireError::TooLong { what, bytes: bytes.len(), max });
    }
    serde_json::from_slice(bytes).map_err(|error| WireError::Malformed { what, why: error.to_string() })
}
