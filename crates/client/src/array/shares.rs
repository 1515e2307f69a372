//! The parts of a variable on each target.

use gristmill_format::{ChunkLocations, ChunkTable, FoundChunk};
use gristmill_layout::Layout;

/// Most chunks whose locations are looked up, and most runs of their bytes on one target. Variables with more have no
/// shares.
const MAX_LOOKED_UP: u64 = 1 << 20;

/// The part of a variable on one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of chunks, whole or in part.
    pub chunks: u64,
    /// Number of chunks that are whole on the target.
    pub whole: u64,
    /// Stored bytes on the target.
    pub bytes: u64,
}

/// Returns the part of a variable's stored chunks on each target of `layout`. `begins` are the offsets in the layout of
/// the first bytes of the table's files. Returns `None` if there are too many chunks, or if `begins` are too few.
///
/// ```
/// use gristmill_client::{Share, open, read_dataset, shares};
/// use gristmill_layout::{Layout, Striped};
///
/// let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (20,), }";
/// let mut bytes = [b"\x93NUMPY\x01\0\x76\0".as_slice(), format!("{header:<117}\n").as_bytes()].concat();
/// bytes.extend(0u8..20);
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("twenty.npy");
/// std::fs::write(&path, bytes)?;
///
/// let table = read_dataset(&open(&path)?, "twenty.npy")?.table("data")?;
/// let held = shares(&table, &Striped::new(138, 2, 0)?.into(), &[0]);
/// let part = Share { chunks: 1, whole: 0, bytes: 10 };
/// assert_eq!(held, Some(vec![part, part])); // 128 bytes of header, 10 of each target
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shares(table: &ChunkTable, layout: &Layout, begins: &[u64]) -> Option<Vec<Share>> {
    if table.stored_chunks() > MAX_LOOKED_UP {
        return None;
    }
    let targets = layout.targets() as usize;
    let mut shares = vec![Share::default(); targets];
    let mut seen = vec![0u64; targets];
    let mut looked = 0;
    let numbers: Box<dyn Iterator<Item = u64>> = match &table.locations {
        ChunkLocations::Listed(places) => Box::new(places.iter().map(|place| place.chunk)),
        _ => Box::new(0..table.array.chunks()),
    };
    for (nth, number) in (1u64..).zip(numbers) {
        let Some(FoundChunk::At(place)) = table.find(number) else { continue };
        let first = begins.get(place.file as usize)?.checked_add(place.offset)?;
        let mut holders = 0;
        let mut last = 0;
        for extent in layout.extents(first..first.saturating_add(place.bytes)) {
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
        if let Some(share) = shares.get_mut(last).filter(|_| holders == 1) {
            share.whole += 1;
        }
    }
    Some(shares)
}
