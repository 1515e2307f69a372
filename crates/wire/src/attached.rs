//! Attached trees: folders of storage outside the cluster that appear under a path of the cluster.

use gristmill_layout::{MAX_COMPONENTS, MAX_CYCLE};
use serde::{Deserialize, Serialize};

use crate::{MAX_SEALED_ACCESS_BYTES, WireError};

/// Most bytes of the URL of a tree, and of the URL of its server.
pub const MAX_TREE_URL_BYTES: usize = 4_096;

/// Most bytes of the name of a region.
const MAX_REGION_BYTES: usize = 255;

/// Most bytes of a key and of a stamp, as in the crate `backend`.
const MAX_KEY_BYTES: usize = 4_096;

/// Most groups of a user, without the primary one, as in the crate `backend`.
pub const MAX_READER_GROUPS: usize = 1_024;

/// Most bytes of the stamp of a file.
const MAX_STAMP_BYTES: usize = 1_024;

/// Where an attached tree lies, and how nodes reach it. It has no secrets: credentials come from the environment of each node, or
/// with the requests of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSource {
    /// The URL of the folder: `file:///lustre/era5`, `s3://bucket/prefix`, `https://host/data`, `cephfs:///projects`.
    pub url: String,
    /// The URL of a server with the protocol of S3, if it is not that of Amazon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region of a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether each user reads with credentials of his own. The nodes use none then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_credentials: bool,
    /// Whether nodes ask without credentials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Whether the tree may be at an address of the nodes themselves, or of their link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_local: bool,
    /// Whether versions of files of a mount leave out the time of change, because nodes see different ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_change_time: bool,
}

impl TreeSource {
    /// Checks the lengths of a source that was received.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if a text is too long.
    pub fn check(&self) -> Result<(), WireError> {
        within("URL of the tree", &self.url, MAX_TREE_URL_BYTES)?;
        within("endpoint of the tree", self.endpoint.as_deref().unwrap_or_default(), MAX_TREE_URL_BYTES)?;
        within("region of the tree", self.region.as_deref().unwrap_or_default(), MAX_REGION_BYTES)
    }
}

/// The user whose rights count when a node reads a file of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FileReader {
    /// No user: the node reads only what every user of the mount may read.
    #[default]
    Everybody,
    /// The user of the node's process.
    Node,
    /// One user, in the numbers of the file system.
    User {
        /// The number of the user. It is not 0.
        uid: u32,
        /// The number of the primary group.
        gid: u32,
        /// The numbers of further groups, at most [`MAX_READER_GROUPS`].
        groups: Vec<u32>,
    },
}

impl FileReader {
    fn is_everybody(&self) -> bool {
        *self == FileReader::Everybody
    }
}

/// A range of a file whose stripes lie near the nodes of some targets. It begins where the component before ends. Stripe `i` of
/// the file (bytes `i*unit .. (i+1)*unit`) belongs to target `cycle[i % cycle.len()]` of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// The first byte behind it.
    pub end: u64,
    /// Bytes of a stripe.
    pub unit: u64,
    /// Targets of the stripes, as indices in the map. At most [`MAX_CYCLE`] in all components of a file. In JSON they are a text, which
    /// `cycle_text.rs` describes.
    #[serde(with = "crate::cycle_text")]
    pub cycle: Vec<u32>,
}

/// A file of an attached tree in one state. Every target of its map reads it where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedFile {
    /// The tree.
    pub tree: TreeSource,
    /// The path of the file below the root of the tree.
    pub key: String,
    /// The version of the file: its ETag, or its length and times.
    pub stamp: String,
    /// The user whose rights count, if the tree is a mount.
    #[serde(default, skip_serializing_if = "FileReader::is_everybody")]
    pub reader: FileReader,
    /// Whether a later change must have another version. If not, nothing that is computed of the file is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Whether it is the beginning of a file to which programs append.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub growing: bool,
    /// Which targets own the stripes, if the file system tells where they lie. If it is empty, the stripes of the map are dealt in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// The credentials of the user, encrypted with [`Key::seal_access`](crate::Key::seal_access) for
    /// [`purpose`](AttachedFile::purpose), if the tree is read with those of users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
}

impl AttachedFile {
    /// The purpose for which credentials are encrypted: to read this file, and no other.
    pub fn purpose(&self) -> Vec<u8> {
        let TreeSource { url, endpoint, .. } = &self.tree;
        [url.as_str(), endpoint.as_deref().unwrap_or_default(), &self.key].join("\0").into_bytes()
    }

    /// Checks the lengths of a file that was received.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if a text is too long, and [`WireError::Malformed`] if there are too many groups or
    /// components.
    pub fn check(&self) -> Result<(), WireError> {
        self.tree.check()?;
        within("key of the attached file", &self.key, MAX_KEY_BYTES)?;
        within("version of the attached file", &self.stamp, MAX_STAMP_BYTES)?;
        let access = self.access.as_deref().unwrap_or_default();
        within("credentials for the attached file", access, MAX_SEALED_ACCESS_BYTES)?;
        let entries = self.components.iter().map(|component| component.cycle.len()).sum::<usize>();
        if self.components.len() > MAX_COMPONENTS || entries > MAX_CYCLE {
            let why = format!(
                "it has more than {MAX_COMPONENTS} components, or more than {MAX_CYCLE} targets in them"
            );
            return Err(WireError::Malformed { what: "components of the attached file", why });
        }
        match &self.reader {
            FileReader::User { groups, .. } if groups.len() > MAX_READER_GROUPS => {
                let why = format!("it has {} groups; the bound is {MAX_READER_GROUPS}", groups.len());
                Err(WireError::Malformed { what: "reader of the attached file", why })
            }
            _ => Ok(()),
        }
    }
}

fn within(what: &'static str, text: &str, max: usize) -> Result<(), WireError> {
    if text.len() <= max { Ok(()) } else { Err(WireError::TooLong { what, bytes: text.len(), max }) }
}
