//! Stripe units of whole chunks, for files of scientific formats.

use std::path::Path;

use gristmill_format::{ChunkLocations, ChunkTable, open_path};
use gristmill_layout::{MAX_UNIT, fit_unit};

use crate::DEFAULT_UNIT;

/// Chunks of a stripe, if the file then has enough stripes for all targets. One chunk in a stripe is cut by its
/// boundary, unless the first chunk begins the file.
const CHUNKS: u64 = 8;

/// Stripes that each target is to have at least.
const STRIPES: u64 = 4;

/// Returns the stripe unit in bytes for a file on `targets` targets: whole chunks of the largest variable, so that few
/// chunks lie on two targets. Compressed chunks count with their mean length. Returns `None` if the format is unknown,
/// or if the chunks are small compared with [`DEFAULT_UNIT`] or larger than any stripe.
pub fn chunk_unit(path: &Path, targets: u64) -> Option<u64> {
    if !path.is_file() {
        return None;
    }
    let dataset = open_path(path).ok()?;
    let tables = dataset.variables.iter().filter_map(|variable| dataset.table(&variable.path).ok());
    let largest = tables.max_by_key(ChunkTable::stored_bytes)?;
    let chunk = match &largest.locations {
        ChunkLocations::Listed(_) => largest.stored_bytes() / largest.stored_chunks().max(1),
        ChunkLocations::Rows(_) => largest.array.chunk_bytes(),
        ChunkLocations::Inline(_) => return None,
    };
    if chunk == 0 {
        return None;
    }
    let share = largest.stored_bytes() / targets.max(1).saturating_mul(STRIPES);
    let wanted = share.min(chunk.saturating_mul(CHUNKS)).max(DEFAULT_UNIT);
    fit_unit(wanted, chunk).ok().filter(|unit| *unit <= MAX_UNIT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A `.npy` file of f64 of this shape.
    fn npy(dir: &Path, rows: u64, columns: u64) -> std::path::PathBuf {
        let mut header =
            format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
        header.push_str(&" ".repeat(127 - 10 - header.len()));
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        let path = dir.join("data.npy");
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(bytes.len() as u64 + rows * columns * 8).unwrap();
        path
    }

    #[test]
    fn stripes_are_whole_chunks() {
        let dir = tempfile::tempdir().unwrap();
        // Rows of 80,000 bytes.
        let path = npy(dir.path(), 4000, 10_000);
        let chunk = open_path(&path).unwrap().table("data").unwrap().array.chunk_bytes();
        let unit = chunk_unit(&path, 4).unwrap();
        assert!(unit.is_multiple_of(chunk) && chunk.is_multiple_of(80_000), "{unit} of {chunk}");
        assert!(unit >= DEFAULT_UNIT && 4 * 2 * unit <= 4000 * 80_000, "each target has some: {unit}");
        // On many targets stripes are smaller, but not smaller than a megabyte or so.
        let unit = chunk_unit(&path, 1000).unwrap();
        assert!(unit.is_multiple_of(chunk) && unit < 2 * DEFAULT_UNIT);
    }

    #[test]
    fn other_files_are_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain.bin");
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        assert_eq!(chunk_unit(&path, 4), None);
        assert_eq!(chunk_unit(&dir.path().join("none"), 4), None);
        assert_eq!(chunk_unit(dir.path(), 4), None);
    }
}
