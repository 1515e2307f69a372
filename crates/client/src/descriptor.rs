//! The layout file: the layout of a striped file and the targets that hold it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gristmill_layout::{MAX_FILE_BYTES, Striped};
use gristmill_runtime::FileParts;
use gristmill_store::ObjectId;
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// The ending of a layout file's name.
pub const EXTENSION: &str = "grist";

/// Longest layout file, in bytes.
pub const MAX_DESCRIPTOR_BYTES: u64 = 4 << 20;

/// Version of the format.
const FORMAT: u32 = 1;

/// The content of a layout file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Version of the format: 1.
    pub gristmill_layout: u32,
    /// Bytes of the file.
    pub length: u64,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Target of the first stripe.
    pub first: u32,
    /// Name of the object on every target.
    pub object: String,
    /// Directories of the targets' stores; relative ones count from the layout file's directory.
    pub targets: Vec<PathBuf>,
}

impl Descriptor {
    /// Describes a file of `length` bytes, with one object of this name on each target.
    pub fn new(length: u64, striped: Striped, object: String, targets: Vec<PathBuf>) -> Descriptor {
        let (unit, first) = (striped.unit(), striped.first());
        Descriptor { gristmill_layout: FORMAT, length, unit, first, object, targets }
    }

    /// Reads and checks a layout file.
    ///
    /// # Errors
    /// The error is [`ClientError::Descriptor`] if it is not a layout file of this version, and [`ClientError::Run`] or
    /// [`ClientError::Io`] if it cannot be opened.
    pub fn read(path: &Path) -> Result<Descriptor, ClientError> {
        let bad = |why: String| ClientError::Descriptor { path: path.to_owned(), why };
        let io = |source| ClientError::Io { verb: "read", path: path.to_owned(), source };
        let mut text = String::new();
        // Gives a clear error for a file that cannot be read.
        FileParts::plain(path)?;
        let file = File::open(path).map_err(io)?;
        file.take(MAX_DESCRIPTOR_BYTES + 1).read_to_string(&mut text).map_err(|e| bad(e.to_string()))?;
        if text.len() as u64 > MAX_DESCRIPTOR_BYTES {
            return Err(bad(format!("it is longer than {MAX_DESCRIPTOR_BYTES} bytes")));
        }
        let descriptor: Descriptor = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        if descriptor.gristmill_layout != FORMAT {
            return Err(bad(format!("its format is {}, not {FORMAT}", descriptor.gristmill_layout)));
        }
        if descriptor.length > MAX_FILE_BYTES {
            return Err(bad(format!("a length of {} bytes is impossible", descriptor.length)));
        }
        descriptor.striped().map_err(|e| bad(e.to_string()))?;
        ObjectId::new(&descriptor.object).map_err(|e| bad(e.to_string()))?;
        Ok(descriptor)
    }

    /// The layout.
    ///
    /// # Errors
    /// It fails if the unit, the number of targets or the first target is impossible.
    pub fn striped(&self) -> Result<Striped, gristmill_layout::LayoutError> {
        let targets = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        Striped::new(self.unit, targets, self.first)
    }

    /// Returns the directories of the targets as paths that can be opened. `path` is that of the layout file.
    pub fn target_dirs(&self, path: &Path) -> Vec<PathBuf> {
        let base = path.parent().unwrap_or(Path::new(""));
        self.targets.iter().map(|target| base.join(target)).collect()
    }
}
