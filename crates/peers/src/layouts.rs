//! The layouts of files. The map of a striped file, and of one with components, gives it. For a segments file it is in the tables of its objects.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{StreamExt, TryStreamExt, iter};
use gristmill_layout::{Layout, LayoutError, SEGMENT_FOOTER, SegmentFooter, SegmentTable, Segments};
use gristmill_runtime::{ErrorKind, Part, RunError};
use gristmill_wire::{FAN_IN, FileMap};

use crate::Peers;
use crate::bytes::{RemotePart, remote_parts};

/// Most layouts of segments files that are remembered. A request asks for the layout of its file again and again. A file
/// never changes under its id.
const MAX_REMEMBERED: usize = 16;

/// Most pieces of a layout that is remembered.
const MAX_REMEMBERED_PIECES: usize = 1 << 16;

/// Layouts by the ids of their files, in the order of their last use.
#[derive(Clone, Default)]
pub(crate) struct Layouts(Arc<Mutex<VecDeque<(String, Layout)>>>);

impl Layouts {
    fn find(&self, id: &str) -> Option<Layout> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(known, _)| known == id)?;
        let found = all.remove(at)?;
        all.push_back(found.clone());
        Some(found.1)
    }

    fn remember(&self, id: &str, layout: &Segments) {
        if layout.pieces() <= MAX_REMEMBERED_PIECES {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Another request may have asked for it meanwhile.
            all.retain(|(known, _)| known != id);
            if all.len() >= MAX_REMEMBERED {
                all.pop_front();
            }
            all.push_back((id.to_owned(), layout.clone().into()));
        }
    }
}

impl Peers {
    /// The layout of a file. Blocks: the tables of a segments file are read from its nodes, at the versions of the grant.
    ///
    /// # Errors
    /// Returns an error if a node cannot be reached, if a table is damaged, or if the tables do not make a file of its
    /// length.
    pub fn layout(&self, file: &FileMap, grant: &Arc<str>) -> Result<Layout, RunError> {
        if !file.segments {
            return Ok(file.layout()?);
        }
        if let Some(layout) = self.layouts.find(&file.id) {
            return Ok(layout);
        }
        let segments = self.wait(self.segments(file, grant))?;
        self.layouts.remember(&file.id, &segments);
        Ok(segments.into())
    }

    async fn segments(&self, file: &FileMap, grant: &Arc<str>) -> Result<Segments, RunError> {
        let parts = remote_parts(self, file, grant)?;
        let parts = parts.into_iter().zip(&file.targets);
        let tables = parts.map(|(part, place)| async move {
            // Without a version there is no object.
            if place.version == 0 {
                return Ok(None);
            }
            let table = table(&part).await?;
            table
                .map(Some)
                .map_err(|error| damaged(&format!("{} on {}: {error}", file.path, part.describe())))
        });
        let tables: Vec<_> = iter(tables).buffered(FAN_IN).try_collect().await?;
        let segments = Segments::of_tables(&file.object(), &tables)
            .map_err(|error| damaged(&format!("{}: {error}", file.path)))?;
        if segments.len() != file.length {
            return Err(damaged(&format!(
                "the pieces of {} have {} bytes, but the file has {}: an object is damaged; make the file again",
                file.path,
                segments.len(),
                file.length
            )));
        }
        Ok(segments)
    }
}

fn damaged(why: &str) -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: why.to_owned() }
}

async fn table(part: &RemotePart) -> Result<Result<SegmentTable, LayoutError>, RunError> {
    let mut footer = [0; SEGMENT_FOOTER];
    part.fetch_end(&mut footer).await?;
    let footer = match SegmentFooter::decode(&footer) {
        Ok(footer) => footer,
        Err(error) => return Ok(Err(error)),
    };
    let range = footer.table();
    // A footer that was decoded has at most MAX_SEGMENTS entries.
    let mut table = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
    part.fetch_range(range.start, &mut table).await?;
    Ok(SegmentTable::decode(&footer, &table))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_layouts_used_last_are_remembered() {
        let layouts = Layouts::default();
        let segments = Segments::new(1, []).unwrap();
        for n in 0..MAX_REMEMBERED {
            layouts.remember(&n.to_string(), &segments);
        }
        layouts.remember("3", &segments);
        assert!(layouts.find("0").is_some());
        layouts.remember("new", &segments);
        assert!(layouts.find("1").is_none(), "its last use is the longest ago");
        for id in ["0", "2", "3", "new"] {
            assert!(layouts.find(id).is_some(), "{id}");
        }
        assert_eq!(layouts.0.lock().unwrap().len(), MAX_REMEMBERED);
    }
}
