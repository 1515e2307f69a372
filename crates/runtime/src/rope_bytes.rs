//! Partials as bytes, for the way to another machine and for checkpoints.

use gristmill_kernel::state::{StateReader, StateWriter};

use crate::rope::start;
use crate::{ExtentSet, MAX_PIECES, Partial, Piece, RunError};

impl Partial {
    /// Appends the partial as bytes, little-endian: pass, number of pieces, and of each the number of ranges,
    /// the ranges and the state behind its length; last, a flag and where a fold had enough.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(u64::from(self.round));
        out.put_u64(self.pieces.len() as u64);
        for piece in &self.pieces {
            out.put_u64(piece.covered.ranges().len() as u64);
            for range in piece.covered.ranges() {
                out.put_u64(range.start);
                out.put_u64(range.end);
            }
            out.put_blob(&piece.state);
        }
        out.put_flag(self.enough_at.is_some());
        if let Some(enough) = self.enough_at {
            out.put_u64(enough);
        }
    }

    /// Reads what [`encode`](Partial::encode) wrote. What comes from elsewhere is checked: pieces sorted and
    /// apart, ranges not empty.
    pub fn decode(bytes: &[u8]) -> Result<Partial, RunError> {
        let bad = |why: String| RunError::BadPartial { why };
        let mut read = StateReader::new("partial", bytes);
        let inner = |e: gristmill_kernel::KernelError| bad(e.to_string());
        let round = u32::try_from(read.u64().map_err(inner)?).map_err(|_| bad("impossible pass".into()))?;
        let count = read.u64().map_err(inner)?;
        if count > MAX_PIECES as u64 {
            return Err(bad(format!("{count} pieces")));
        }
        let mut out = Partial::empty(round);
        for _ in 0..count {
            let ranges = read.u64().map_err(inner)?;
            if ranges > MAX_PIECES as u64 || ranges == 0 {
                return Err(bad(format!("a piece of {ranges} ranges")));
            }
            let mut list = Vec::new();
            for _ in 0..ranges {
                let range = read.u64().map_err(inner)?..read.u64().map_err(inner)?;
                if range.is_empty() {
                    return Err(bad("a piece of no records".into()));
                }
                list.push(range);
            }
            let covered = ExtentSet::of_all(list)?;
            if out.pieces.last().is_some_and(|last| start(last) > covered.ranges()[0].start) {
                return Err(bad("pieces are not sorted".into()));
            }
            out.pieces.push(Piece { covered, state: read.blob().map_err(inner)?.to_vec() });
        }
        if read.flag().map_err(inner)? {
            out.enough_at = Some(read.u64().map_err(inner)?);
        }
        read.end().map_err(inner)?;
        // No record in two pieces.
        out.covered()?;
        Ok(out)
    }
}
