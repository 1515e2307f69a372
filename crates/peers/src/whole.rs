//! A file on storage nodes as one part, for whoever folds or reads it far from them.
//!
//! A stretch of a striped file is one stretch of the object on each target, however small the stripes are; so a
//! block costs one request to each node that has some of it, all at once.

use std::sync::Arc;

use futures_util::future::try_join_all;
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{FileParts, Part, Placement, RunError, versions_as_one};
use gristmill_wire::FileMap;

use crate::bytes::{RemotePart, remote_parts};
use crate::{AT_CLIENT, Peers};

/// All targets of a file, read side by side.
struct WholeFile {
    peers: Peers,
    name: String,
    length: u64,
    layout: Layout,
    parts: Vec<RemotePart>,
}

/// A file as one part, in one piece. Blocks for the layout of a segments file.
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

/// What of a stretch lies on one target: a stretch of its object.
struct Stretch {
    target: usize,
    offset: u64,
    bytes: Vec<u8>,
}

impl WholeFile {
    fn stretches(&self, offset: u64, len: u64) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut places = vec![None; self.parts.len()];
        for extent in self.layout.extents(offset..offset.saturating_add(len)) {
            let target = extent.target as usize;
            let Some(place) = places.get_mut(target) else { continue };
            let at = *place.get_or_insert_with(|| {
                stretches.push(Stretch { target, offset: extent.object_offset, bytes: Vec::new() });
                stretches.len() - 1
            });
            if let Some(stretch) = stretches.get_mut(at) {
                let grown = stretch.bytes.len() + (extent.file.end - extent.file.start) as usize;
                stretch.bytes.resize(grown, 0);
            }
        }
        stretches
    }
}

impl Part for WholeFile {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let mut stretches = self.stretches(offset, buffer.len() as u64);
        if let [only] = &mut *stretches
            && only.bytes.len() == buffer.len()
            && let Some(part) = self.parts.get(only.target)
        {
            return part.read(None, only.offset, buffer);
        }
        let reads = stretches.iter_mut().filter_map(|stretch| {
            let part = self.parts.get(stretch.target)?;
            Some(part.fetch_range(stretch.offset, &mut stretch.bytes))
        });
        self.peers.received().waits(|| self.peers.wait(try_join_all(reads)))?;
        let mut done = 0;
        for extent in self.layout.extents(offset..offset.saturating_add(buffer.len() as u64)) {
            let len = (extent.file.end - extent.file.start) as usize;
            let from = stretches.iter().find(|stretch| stretch.target == extent.target as usize);
            let from = from.and_then(|stretch| {
                let at = usize::try_from(extent.object_offset - stretch.offset).ok()?;
                stretch.bytes.get(at..at + len)
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

    /// Nothing to ask: every read names the version that it wants.
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }

    fn version(&self) -> u64 {
        versions_as_one(self.parts.iter().map(Part::version))
    }

    fn describe(&self) -> String {
        let nodes: Vec<String> = self.parts.iter().map(Part::describe).collect();
        format!("this process, from {}", nodes.join(", "))
    }
}
