//! Encodes partials as bytes, for other machines and for checkpoints.

use std::ops::Range;

use gristmill_kernel::state::{StateReader, StateWriter};

use crate::rope::start;
use crate::{ExtentSet, MAX_PIECES, Partial, Piece, RunError};

impl Partial {
    /// Appends the partial as bytes, little-endian: pass, number of pieces, and for each piece its ranges and the state
    /// behind its length. Last come a flag and the position at which a fold had enough. Ranges of the same length at the
    /// same distance, as stripes make them, are written once with their number. So the covered set of a kernel of any
    /// order takes few bytes, whatever the number of stripes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(u64::from(self.round));
        out.put_u64(self.pieces.len() as u64);
        for piece in &self.pieces {
            let series = series(piece.covered.ranges());
            out.put_u64(series.len() as u64);
            for Series { start, length, step, count } in series {
                [start, length, step, count].into_iter().for_each(|word| out.put_u64(word));
            }
            out.put_blob(&piece.state);
        }
        out.put_flag(self.enough_at.is_some());
        if let Some(enough) = self.enough_at {
            out.put_u64(enough);
        }
    }

    /// Reads the bytes that [`encode`](Partial::encode) wrote. They may come from another machine, so it checks that pieces
    /// are sorted and apart, and that no range is empty.
    ///
    /// # Errors
    /// The error is [`RunError::BadPartial`] for other bytes, and [`RunError::Overlap`] if ranges overlap.
    pub fn decode(bytes: &[u8]) -> Result<Partial, RunError> {
        let bad = |why: String| RunError::BadPartial { why };
        let mut read = StateReader::new("partial", bytes);
        let inner = |e: gristmill_kernel::KernelError| bad(e.to_string());
        let round = u32::try_from(read.u64().map_err(inner)?)
            .map_err(|_| bad("the number of the pass is too large".into()))?;
        let count = read.u64().map_err(inner)?;
        if count > MAX_PIECES as u64 {
            return Err(bad(format!("{count} pieces are too many")));
        }
        let mut out = Partial::empty(round);
        // A few bytes can stand for many ranges, so the number of all ranges is bounded.
        let mut ranges_left = MAX_PIECES as u64;
        for _ in 0..count {
            let series_count = read.u64().map_err(inner)?;
            if series_count > ranges_left || series_count == 0 {
                return Err(bad(format!("a piece has {series_count} series of ranges")));
            }
            let mut list = Vec::new();
            for _ in 0..series_count {
                let mut word = || read.u64().map_err(inner);
                let series = Series { start: word()?, length: word()?, step: word()?, count: word()? };
                ranges_left = ranges_left
                    .checked_sub(series.count)
                    .ok_or_else(|| bad("there are too many ranges".into()))?;
                series
                    .ranges(&mut list)
                    .ok_or_else(|| bad("ranges are empty, overlap or are too large".into()))?;
            }
            let covered = ExtentSet::from_ranges(list)?;
            if out.pieces.last().is_some_and(|last| start(last) > covered.ranges()[0].start) {
                return Err(bad("pieces are not sorted".into()));
            }
            out.pieces.push(Piece { covered, state: read.blob().map_err(inner)?.to_vec() });
        }
        if read.flag().map_err(inner)? {
            out.enough_at = Some(read.u64().map_err(inner)?);
        }
        read.end().map_err(inner)?;
        // This checks that no record is in two pieces.
        out.covered()?;
        Ok(out)
    }
}

/// Ranges of the same length at the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Series {
    start: u64,
    length: u64,
    /// Distance from the start of one range to the start of the next; 0 if there is only one range.
    step: u64,
    count: u64,
}

impl Series {
    /// Appends the ranges. `None`: they are empty, overlap or touch, or pass the last position.
    fn ranges(self, out: &mut Vec<Range<u64>>) -> Option<()> {
        if self.length == 0 || self.count == 0 || self.count > 1 && self.step <= self.length {
            return None;
        }
        for n in 0..self.count {
            let start = self.step.checked_mul(n)?.checked_add(self.start)?;
            out.push(start..start.checked_add(self.length)?);
        }
        Some(())
    }
}

/// Groups sorted ranges into series.
fn series(ranges: &[Range<u64>]) -> Vec<Series> {
    let mut out: Vec<Series> = Vec::new();
    let mut last_start = 0;
    for range in ranges {
        let length = range.end - range.start;
        let step = range.start - last_start;
        last_start = range.start;
        match out.last_mut() {
            Some(last) if last.length == length && (last.count == 1 || last.step == step) => {
                (last.step, last.count) = (step, last.count + 1);
            }
            _ => out.push(Series { start: range.start, length, step: 0, count: 1 }),
        }
    }
    out
}
