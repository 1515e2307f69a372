//! The targets of a cluster that hold the chunks of a variable.

use gristmill_client::{Share, shares};
use gristmill_format::{ChunkLocation, ChunkTable};
use gristmill_layout::Layout;
use serde_json::{Value as Json, json};

use crate::json::integer;
use crate::size::readable;

/// The layout and the targets of a file of a cluster.
pub struct FileLocation<'a> {
    pub layout: &'a Layout,
    /// Number and address of each target, in the order of the layout.
    pub targets: Vec<(u32, String)>,
}

impl FileLocation<'_> {
    /// The numbers of the targets that hold a chunk, in the order of its bytes.
    pub fn targets_of(&self, place: &ChunkLocation) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        for extent in self.layout.extents(place.offset..place.offset.saturating_add(place.bytes)) {
            let Some((number, _)) = self.targets.get(extent.target as usize) else { continue };
            if !numbers.contains(number) {
                numbers.push(*number);
            }
            if numbers.len() == self.targets.len() {
                break;
            }
        }
        numbers
    }

    /// The share of each target in a variable; `None` if the table has too many chunks.
    fn shares(&self, table: &ChunkTable) -> Option<Vec<Share>> {
        shares(table, self.layout, &[0])
    }

    /// A line for each target that holds a part of a variable.
    pub fn text(&self, table: &ChunkTable) -> String {
        let Some(shares) = self.shares(table) else { return String::new() };
        let held = self.targets.iter().zip(&shares).filter(|(_, share)| share.chunks > 0);
        held.map(|((number, node), share)| {
            let s = if share.chunks == 1 { "" } else { "s" };
            let whole = match share.whole {
                whole if whole == share.chunks => "whole".to_owned(),
                whole => format!("{whole} of them whole"),
            };
            let (chunks, bytes) = (share.chunks, readable(share.bytes));
            format!("\n    on target {number} ({node}): {chunks} chunk{s}, {whole}, {bytes}")
        })
        .collect()
    }

    /// The targets that hold a part of a variable, as JSON; null if the table has too many chunks.
    pub fn json(&self, table: &ChunkTable) -> Json {
        let Some(shares) = self.shares(table) else { return Json::Null };
        let one = |((number, node), share): (&(u32, String), &Share)| {
            json!({
                "target": number, "node": node, "chunks": integer(share.chunks.into()),
                "whole_chunks": integer(share.whole.into()), "bytes": integer(share.bytes.into()),
            })
        };
        let held = self.targets.iter().zip(&shares).filter(|(_, share)| share.chunks > 0);
        Json::Array(held.map(one).collect())
    }
}
