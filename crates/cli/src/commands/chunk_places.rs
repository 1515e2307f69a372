//! Which targets of a cluster hold the chunks of a variable.

use gristmill_format::{ChunkTable, Found, Place, Places};
use gristmill_layout::Layout;
use serde_json::{Value as Json, json};

use crate::json::integer;
use crate::size::readable;

/// Most chunks whose places are looked up, and bytes in stripes: of files with more nothing is said.
const MAX_LOOKED_UP: u64 = 1 << 20;

/// Where the bytes of a file lie.
pub struct Lies<'a> {
    pub layout: &'a Layout,
    /// Number and address of each target, in the order of the layout.
    pub targets: Vec<(u32, String)>,
}

/// What one target holds of a variable.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Chunks, whole or in part, and those whole.
    chunks: u64,
    whole: u64,
    bytes: u64,
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
        if table.stored_chunks() > MAX_LOOKED_UP {
            return None;
        }
        let mut shares = vec![Share::default(); self.targets.len()];
        let mut seen = vec![0u64; self.targets.len()];
        let mut looked = 0;
        let numbers: Box<dyn Iterator<Item = u64>> = match &table.places {
            Places::Listed(places) => Box::new(places.iter().map(|place| place.chunk)),
            _ => Box::new(0..table.array.chunks()),
        };
        for (nth, number) in (1u64..).zip(numbers) {
            let Some(Found::At(place)) = table.find(number) else { continue };
            let mut holders = 0;
            let mut last = 0;
            for extent in self.layout.extents(place.offset..place.offset.saturating_add(place.bytes)) {
                looked += 1;
                if looked > MAX_LOOKED_UP {
                    return None;
                }
                let at = extent.target as usize;
                let share = shares.get_mut(at)?;
                share.bytes += extent.file.end - extent.file.start;
                if seen[at] != nth {
                    (seen[at], last) = (nth, at);
                    share.chunks += 1;
                    holders += 1;
                }
            }
            shares[last].whole += u64::from(holders == 1);
        }
        Some(shares)
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
