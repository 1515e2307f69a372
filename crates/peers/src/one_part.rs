//! A file on storage nodes as one part, for folds and reads far from the nodes.
//!
//! A range of a striped file is one range of the object on each target, for stripes of any size. So a block takes one
//! request to each node that has some of its bytes, and the requests run at once. In a file of an attached tree each
//! stripe is a range of its own.

use std::sync::Arc;

use futures_util::stream::{StreamExt, TryStreamExt, iter};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{FileParts, Part, Placement, RunError, combine_versions};
use gristmill_wire::{FAN_IN, FileMap};

use crate::bytes::{RemotePart, remote_parts};
use crate::{AT_CLIENT, Peers};

/// All targets of a file, read at the same time.
struct WholeFile {
    peers: Peers,
    name: String,
    length: u64,
    layout: Layout,
    parts: Vec<RemotePart>,
}

/// A file as one part with one target. Blocks for the layout of a segments file.
///
/// # Errors
/// It fails as [`file_parts`](crate::file_parts) does.
pub fn whole_file(peers: &Peers, file: &FileMap, grant: &Arc<str>) -> Result<FileParts, RunError> {
    let whole = WholeFile {
        peers: peers.clone(),
        name: file.path.clone(),
        length: file.length,
        layout: peers.layout(file, grant)?,
        parts: remote_parts(peers, file, grant)?,
    };
    let place: Placement = AT_CLIENT;
    Ok(FileParts {
        name: file.path.clone(),
        length: file.length,
        layout: Layout::from(Striped::new(file.length.max(1), 1, 0)?),
        parts: vec![Arc::new(whole)],
        place,
    })
}

/// Bytes of a read that lie together on one target: a range of its object.
struct ObjectRange {
    target: usize,
    offset: u64,
    bytes: Vec<u8>,
}

impl WholeFile {
    fn object_ranges(&self, offset: u64, len: u64) -> Vec<ObjectRange> {
        let mut ranges: Vec<ObjectRange> = Vec::new();
        // The last range of each target.
        let mut places: Vec<Option<usize>> = vec![None; self.parts.len()];
        for extent in self.layout.extents(offset..offset.saturating_add(len)) {
            let target = extent.target as usize;
            let Some(place) = places.get_mut(target) else { continue };
            let len = (extent.file.end - extent.file.start) as usize;
            match place.and_then(|at| ranges.get_mut(at)) {
                Some(last) if last.offset + last.bytes.len() as u64 == extent.object_offset => {
                    last.bytes.resize(last.bytes.len() + len, 0);
                }
                _ => {
                    *place = Some(ranges.len());
                    ranges.push(ObjectRange { target, offset: extent.object_offset, bytes: vec![0; len] });
                }
            }
        }
        ranges
    }
}

impl Part for WholeFile {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let mut ranges = self.object_ranges(offset, buffer.len() as u64);
        if let [only] = &mut *ranges
            && only.bytes.len() == buffer.len()
            && let Some(part) = self.parts.get(only.target)
        {
            return part.read(None, only.offset, buffer);
        }
        let reads = ranges.iter_mut().filter_map(|range| {
            let part = self.parts.get(range.target)?;
            Some(part.fetch_range(range.offset, &mut range.bytes))
        });
        let reads = iter(reads).buffer_unordered(FAN_IN).try_collect::<()>();
        self.peers.received().count_waiting(|| self.peers.wait(reads))?;
        let mut done = 0;
        for extent in self.layout.extents(offset..offset.saturating_add(buffer.len() as u64)) {
            let len = (extent.file.end - extent.file.start) as usize;
            let mut from = ranges.iter().filter(|range| range.target == extent.target as usize);
            let from = from.find_map(|range| {
                let at = usize::try_from(extent.object_offset.checked_sub(range.offset)?).ok()?;
                range.bytes.get(at..at.checked_add(len)?)
            });
            let (Some(from), Some(to)) = (from, buffer.get_mut(done..done + len)) else { break };
            to.copy_from_slice(from);
            done += len;
        }
        if done < buffer.len() {
            let (name, length) = (self.name.clone(), self.length);
            return Err(RunError::Truncated { name, offset: offset + done as u64, length });
        }
        Ok(())
    }

    /// Needs no request: every read names the version that it wants.
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }

    fn version(&self) -> u64 {
        combine_versions(self.parts.iter().map(Part::version))
    }

    fn describe(&self) -> String {
        let nodes: Vec<String> = self.parts.iter().map(Part::describe).collect();
        format!("this process, from {}", nodes.join(", "))
    }
}
