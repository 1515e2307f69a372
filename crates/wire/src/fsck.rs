//! `fsck`: the objects of a storage node beside what the namespace says of them, a page at a time.
//!
//! Whoever checks asks the entry node with `POST /fsck` and an [`FsckStep`]. The entry node asks the storage node for a page
//! of its objects: `GET /objects/NAME/next` with a grant to manage, answered with an [`ObjectPage`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::WireError;

/// Objects of one [`ObjectPage`] at most.
pub const MAX_OBJECTS_LISTED: usize = 512;

/// Longest answer to an [`FsckStep`], in bytes: every file of the page may be lost, and paths may be long.
pub const MAX_FSCK_BYTES: usize = 32 << 20;

/// Longest [`ObjectPage`], in bytes.
pub const MAX_OBJECT_PAGE_BYTES: usize = 1 << 20;

/// Longest [`FsckStep`], in bytes.
pub const MAX_FSCK_STEP_BYTES: usize = 1 << 10;

/// The id that lies before those of all files.
pub const FIRST_ID: &str = "00000000000000000000000000000000";

/// Asks about some objects of a storage node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsckStep {
    /// Number of its target.
    pub number: u32,
    /// Those whose file's id comes behind this one; 32 hexadecimal digits, [`FIRST_ID`] for the beginning.
    pub after: String,
    /// Remove the objects that no put names. For administrators only.
    #[serde(default)]
    pub remove: bool,
}

/// What was found in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsckFound {
    /// Objects that were compared.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files whose object is not as it should be.
    pub lost: Vec<LostObject>,
    /// Objects that no put names.
    pub unnamed: Vec<UnnamedObject>,
    /// Where the next step begins; `None` at the end.
    pub next: Option<String>,
}

/// An object that a file should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostObject {
    /// The file.
    pub path: String,
    /// The object's name.
    pub object: String,
    /// What is wrong, as a part of a sentence.
    pub why: String,
}

/// An object that no put names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnamedObject {
    /// Its name.
    pub object: String,
    /// Its bytes; 0 where they are not known.
    pub bytes: u64,
    /// It was removed in this step.
    pub removed: bool,
}

/// Objects of files that a storage node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPage {
    /// In the order of their ids.
    pub objects: Vec<ObjectEntry>,
    /// The id up to which all are told; `None`: there are no more.
    pub end: Option<String>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectEntry {
    /// Id of its file.
    pub id: String,
    /// How it is.
    pub state: ObjectState,
}

/// How an object is.
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
    /// It is being written, or whoever wrote it has gone.
    Incomplete {
        /// Its bytes so far.
        length: u64,
    },
    /// The node cannot say, and why.
    Unreadable(String),
}

impl ObjectState {
    /// Its bytes; 0 where they are not known.
    pub fn length(&self) -> u64 {
        match self {
            ObjectState::Complete { length, .. } | ObjectState::Incomplete { length } => *length,
            ObjectState::Unreadable(_) => 0,
        }
    }
}

impl FsckStep {
    /// Reads what was asked.
    ///
    /// # Errors
    /// [`WireError::TooLong`] and [`WireError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<FsckStep, WireError> {
        decode("step of fsck", bytes, MAX_FSCK_STEP_BYTES)
    }
}

impl FsckFound {
    /// Reads what an entry node found.
    ///
    /// # Errors
    /// As [`FsckStep::decode`].
    pub fn decode(bytes: &[u8]) -> Result<FsckFound, WireError> {
        decode("result of fsck", bytes, MAX_FSCK_BYTES)
    }
}

impl ObjectPage {
    /// Reads what a storage node has.
    ///
    /// # Errors
    /// As [`FsckStep::decode`].
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
