//! Where a file lies.

use std::collections::BTreeMap;

use gristmill_layout::{LayoutError, MAX_FILE_BYTES, Striped};
use serde::{Deserialize, Serialize};

use crate::{MAX_FILE_TARGETS, WireError};

/// Start of the names of objects that hold files.
pub const OBJECT_PREFIX: &str = "file-";

/// One target of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetPlace {
    /// Number of the target in the cluster.
    pub number: u32,
    /// Where its node listens: `127.0.0.1:7441`, `unix:/run/node.sock`.
    pub address: String,
    /// Version of the object there; 0 while the file is being written, and where it has no bytes and so no object.
    pub version: u64,
}

/// A file as one state of it: one object of the same name on each target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileMap {
    /// 32 hexadecimal digits.
    pub id: String,
    /// How users name it.
    pub path: String,
    /// Bytes; 0 while the file is being written.
    pub length: u64,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Target of the first stripe, as a place in `targets`.
    pub first: u32,
    /// Record size that the unit was rounded to, where it was told.
    pub record: Option<u64>,
    /// A segments file: each object has the pieces that its target made, and a table behind them
    /// ([`SegmentTable`](gristmill_layout::SegmentTable)). `unit` and `first` say nothing then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
    /// In the order of the layout.
    pub targets: Vec<TargetPlace>,
}

impl FileMap {
    /// How its stripes are dealt.
    ///
    /// # Errors
    /// The error is [`LayoutError::NotStriped`] for a segments file. It also fails if the unit, the number of targets
    /// or the first target is impossible.
    pub fn striped(&self) -> Result<Striped, LayoutError> {
        if self.segments { Err(LayoutError::NotStriped) } else { self.dealt() }
    }

    fn dealt(&self) -> Result<Striped, LayoutError> {
        let targets = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        Striped::new(self.unit, targets, self.first)
    }

    /// Name of the object on every target.
    pub fn object(&self) -> String {
        format!("{OBJECT_PREFIX}{}", self.id)
    }

    /// Several files as one, whose bytes lie one behind the other: the targets of all of them in the order of their numbers,
    /// without versions, and no stripes. One file is what it is; `None` for none.
    pub fn joined<'a>(files: impl Iterator<Item = &'a FileMap>) -> Option<FileMap> {
        let mut files = files;
        let first = files.next()?;
        let mut all = first.clone();
        let (mut targets, mut more) = (BTreeMap::new(), 0);
        let add = |targets: &mut BTreeMap<u32, TargetPlace>, file: &FileMap| {
            for target in &file.targets {
                let place = TargetPlace { version: 0, ..target.clone() };
                targets.entry(target.number).or_insert(place);
            }
        };
        add(&mut targets, first);
        for file in files {
            add(&mut targets, file);
            all.length = all.length.saturating_add(file.length);
            more += 1;
        }
        if more == 0 {
            return Some(all);
        }
        all.path = format!("{} and {more} more", first.path);
        (all.first, all.record, all.segments) = (0, None, true);
        all.targets = targets.into_values().collect();
        Some(all)
    }

    /// Whether it makes sense: what is read from elsewhere is checked with this.
    ///
    /// # Errors
    /// The error is [`WireError::Malformed`] if it does not. It says what is wrong.
    pub fn check(&self) -> Result<(), WireError> {
        let bad = |why: String| Err(WireError::Malformed { what: "map of a file", why });
        if self.id.len() != 32 || !self.id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return bad("its id is not 32 hexadecimal digits".into());
        }
        if self.targets.is_empty() || self.targets.len() > MAX_FILE_TARGETS {
            return bad(format!("{} targets; 1 to {MAX_FILE_TARGETS} are possible", self.targets.len()));
        }
        if self.length > MAX_FILE_BYTES {
            return bad(format!("a length of {} bytes", self.length));
        }
        self.dealt().map(|_| ()).or_else(|error| bad(error.to_string()))
    }
}
