//! The location of a file.

use std::collections::BTreeMap;

use gristmill_layout::{Component, Layout, LayoutError, MAX_FILE_BYTES, Segments, Striped};
use serde::{Deserialize, Serialize};

use crate::{AttachedFile, MAX_FILE_TARGETS, WireError};

/// Start of the names of objects that hold files.
pub const OBJECT_PREFIX: &str = "file-";

/// One target of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetPlace {
    /// Number of the target in the cluster.
    pub number: u32,
    /// Address of its node: `127.0.0.1:7441`, `unix:/run/node.sock`.
    pub address: String,
    /// Version of the object on the target. It is 0 while the file is being written, and if the target has no bytes of
    /// the file and so no object.
    pub version: u64,
}

/// One state of a file: one object of the same name on each target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileMap {
    /// Id of the file: 32 hexadecimal digits.
    pub id: String,
    /// Path of the file.
    pub path: String,
    /// Bytes of the file; 0 while the file is being written.
    pub length: u64,
    /// Stripe unit in bytes.
    pub unit: u64,
    /// Target of the first stripe, as an index in `targets`.
    pub first: u32,
    /// Record size that the unit was rounded to, if one was given.
    pub record: Option<u64>,
    /// Whether it is a segments file: each object has the pieces that its target made, followed by a table
    /// ([`SegmentTable`](gristmill_layout::SegmentTable)). `unit` and `first` have no meaning then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
    /// Where the file lies outside the cluster, if it is in an attached tree. Then there are no objects: each target reads
    /// the whole file there, and the stripes say which records each one owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Box<AttachedFile>>,
    /// Targets in the order of the layout.
    pub targets: Vec<TargetPlace>,
}

impl FileMap {
    /// The layout of its stripes.
    ///
    /// # Errors
    /// The error is [`LayoutError::NotStriped`] for a segments file, and for a file with components. It also fails if the unit, the
    /// number of targets or the first target is impossible.
    pub fn striped(&self) -> Result<Striped, LayoutError> {
        if self.segments || self.has_components() { Err(LayoutError::NotStriped) } else { self.stripes() }
    }

    /// Whether the file system says which targets own the stripes.
    pub fn has_components(&self) -> bool {
        self.attached.as_ref().is_some_and(|attached| !attached.components.is_empty())
    }

    /// The layout of its stripes, or of its components.
    ///
    /// # Errors
    /// It fails as [`striped`](FileMap::striped) does, and if the components are impossible.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        if !self.has_components() {
            return Ok(self.striped()?.into());
        }
        Ok(Segments::of_components(self.count(), self.length, self.components())?.into())
    }

    fn count(&self) -> u32 {
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }

    fn components(&self) -> impl Iterator<Item = Component<'_>> {
        let all = self.attached.iter().flat_map(|attached| &attached.components);
        all.map(|one| Component { end: one.end, unit: one.unit, cycle: &one.cycle })
    }

    fn stripes(&self) -> Result<Striped, LayoutError> {
        let stripes = Striped::new(self.unit, self.count(), self.first)?;
        Ok(if self.attached.is_some() { stripes.in_place() } else { stripes })
    }

    /// Name of the object on every target.
    pub fn object(&self) -> String {
        format!("{OBJECT_PREFIX}{}", self.id)
    }

    /// The same file without the targets that hold none of its bytes. An empty file keeps one target. A segments file and
    /// one with components keep all.
    pub fn without_empty_targets(mut self) -> FileMap {
        let stripes = self.length.checked_div(self.unit).map_or(u64::MAX, |whole| {
            whole.saturating_add(u64::from(!self.length.is_multiple_of(self.unit))).max(1)
        });
        let count = usize::try_from(stripes).unwrap_or(usize::MAX);
        let first = self.first as usize;
        if !self.segments
            && !self.has_components()
            && count < self.targets.len()
            && first < self.targets.len()
        {
            self.targets.rotate_left(first);
            self.targets.truncate(count);
            self.first = 0;
        }
        self
    }

    /// Joins several files into one, with their bytes one after the other. The joined file has all targets in the order
    /// of their numbers, without versions, and no stripes. A single file is returned unchanged. Without files it is
    /// `None`.
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
        (all.first, all.record, all.segments, all.attached) = (0, None, true, None);
        all.targets = targets.into_values().collect();
        Some(all)
    }

    /// Checks a map that was received.
    ///
    /// # Errors
    /// The error is [`WireError::Malformed`] if the map is impossible. It says what is wrong.
    pub fn check(&self) -> Result<(), WireError> {
        let bad = |why: String| Err(WireError::Malformed { what: "map of a file", why });
        if self.id.len() != 32 || !self.id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return bad("its id is not 32 hexadecimal digits".into());
        }
        if self.targets.is_empty() || self.targets.len() > MAX_FILE_TARGETS {
            return bad(format!("it has {} targets, not 1 to {MAX_FILE_TARGETS}", self.targets.len()));
        }
        if let Some(attached) = &self.attached {
            attached.check()?;
            if self.segments {
                return bad("a file of an attached tree has no pieces".into());
            }
        }
        if self.length > MAX_FILE_BYTES {
            return bad(format!("its length of {} bytes is too large", self.length));
        }
        // Making the table of all pieces would take long for each request.
        let components = match self.has_components() {
            true => Segments::check_components(self.count(), self.length, self.components()),
            false => Ok(()),
        };
        components.and(self.stripes().map(drop)).or_else(|error| bad(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_layout::Layout;
    use proptest::prelude::*;

    use super::*;

    fn map(length: u64, unit: u64, targets: u32, first: u32) -> FileMap {
        let place =
            |number| TargetPlace { number: 10 + number, address: format!("node{number}"), version: 7 };
        FileMap {
            id: "0".repeat(32),
            path: "/file".into(),
            length,
            unit,
            first,
            record: None,
            segments: false,
            attached: None,
            targets: (0..targets).map(place).collect(),
        }
    }

    /// The target, and the place in its object, of each run of bytes.
    fn runs(map: &FileMap) -> Vec<(u32, u64, std::ops::Range<u64>)> {
        let layout: Layout = map.striped().unwrap().into();
        let extents = layout.extents(0..map.length);
        extents.map(|one| (map.targets[one.target as usize].number, one.object_offset, one.file)).collect()
    }

    proptest! {
        #[test]
        fn bytes_stay_where_they_are_without_empty_targets(
            length in 0u64..400,
            unit in 1u64..50,
            targets in 1u32..9,
            first in 0u32..9,
        ) {
            let whole = map(length, unit, targets, first % targets);
            let trimmed = whole.clone().without_empty_targets();
            prop_assert_eq!(runs(&trimmed), runs(&whole));
            let used = length.div_ceil(unit).clamp(1, u64::from(targets));
            prop_assert_eq!(trimmed.targets.len() as u64, used);
            prop_assert!(trimmed.check().is_ok());
        }
    }

    #[test]
    fn maps_that_cannot_be_cut_stay_as_they_are() {
        let segments = FileMap { segments: true, ..map(5, 10, 4, 2) };
        let impossible = [segments, map(5, 0, 4, 2), map(5, 10, 4, 9), map(u64::MAX, 1, 4, 1)];
        for one in impossible {
            assert_eq!(one.clone().without_empty_targets(), one);
        }
    }
}
