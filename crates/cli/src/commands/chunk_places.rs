//! Which targets of a cluster hold the chunks of a variable.

use gristmill_client::{Share, shares};
use gristmill_format::{ChunkTable, Place};
use gristmill_layout::Layout;
use serde_json::{Value as Json, json};

use crate::json::integer;
use crate::size::readable;

/// Where the bytes of a file lie.
pub struct Lies<'a> {
    pub layout: &'a Layout,
    /// Number and address of each target, in the order of the layout.
    pub targets: Vec<(u32, String)>,
}

impl Lies<'_> {
    /// The numbers of the targets that hold a chunk, in the order of its bytes.
    pub fn of(&self, place: &Place) -> Vec<u32> {
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

    /// What each target holds; `None` where there are too many chunks to look at.
    fn shares(&self, table: &ChunkTable) -> Option<Vec<Share>> {
        shares(table, self.layout, &[0])
    }

    /// A line for each target that holds some of a variable.
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

    /// The same as JSON.
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
