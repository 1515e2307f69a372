//! The format of saved cells.
//!
//! ```text
//! cells    u32
//! wide     u8: whether totals have 16 bytes instead of 8
//! tops     one u8 per cell
//! flags    one u8 per cell
//! totals   the bins of each cell, signed, little-endian
//! ```
//! Everything is a function of the values, so equal cells have equal bytes.

use crate::binned::Cells;
use crate::binned::grid::{Cell, HIGHEST_PLAIN, HIGHEST_TOP, HUGE, lowest_top};
use crate::state::DecodeError;

const NAME: &str = "row of binned sums";

/// The largest total of 2^63 values, which have at most 2^39 units each.
const LARGEST_TOTAL: i128 = 1 << 102;

impl<const BINS: usize> Cells<BINS> {
    /// Bytes of a saved cell of fewer than 2^24 values. A cell of more values may have
    /// [`LONG_STATE_BYTES`](Cells::LONG_STATE_BYTES).
    pub const SHORT_STATE_BYTES: usize = 2 + 8 * BINS;

    /// Most bytes of a saved cell.
    pub const LONG_STATE_BYTES: usize = 2 + 16 * BINS;

    /// Most bytes of the state of `cells` cells.
    pub const fn state_bytes(cells: usize) -> usize {
        5 + cells * Self::LONG_STATE_BYTES
    }

    /// Appends the state of all cells. Each cell has one byte for its top, one for its flags, and 8 bytes for each
    /// bin, or 16 if a total of any cell needs them. Equal sums give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let totals: Vec<[i128; BINS]> = (0..self.len()).map(|at| self.cell(at).totals()).collect();
        let wide = totals.as_flattened().iter().any(|total| i64::try_from(*total).is_err());
        out.extend_from_slice(&(self.len() as u32).to_le_bytes());
        out.push(u8::from(wide));
        out.extend((0..self.len()).map(|at| self.cell(at).top()));
        out.extend((0..self.len()).map(|at| self.cell(at).flags));
        for total in totals.as_flattened() {
            if wide {
                out.extend_from_slice(&total.to_le_bytes());
            } else {
                out.extend_from_slice(&(*total as i64).to_le_bytes());
            }
        }
    }

    /// Adds a state of as many cells, which [`encode`](Cells::encode) wrote, from the front of `bytes`. Returns the
    /// number of bytes that it took.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that are not such a state. Some cells may have been added then. It never panics.
    pub fn merge_encoded(&mut self, bytes: &[u8]) -> Result<usize, DecodeError> {
        let wrong = |part| DecodeError::NotCanonical { kind: NAME, part };
        let short = || DecodeError::Short { kind: NAME, have: bytes.len() };
        let (head, rest) = bytes.split_first_chunk::<5>().ok_or_else(short)?;
        let cells = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if cells != self.len() {
            return Err(wrong("number of cells"));
        }
        let wide = match head[4] {
            0 => false,
            1 => true,
            _ => return Err(wrong("width")),
        };
        let size = if wide { 16 } else { 8 };
        let length = cells.checked_mul(2 + size * BINS).ok_or_else(short)?;
        let body = rest.get(..length).ok_or_else(short)?;
        let (tops, body) = body.split_at(cells);
        let (flags, body) = body.split_at(cells);
        for (at, (top, flags)) in tops.iter().zip(flags).enumerate() {
            let huge = *top > HIGHEST_PLAIN;
            if !(lowest_top(BINS)..=HIGHEST_TOP).contains(top) || *flags > 15 || (*flags & HUGE != 0) != huge
            {
                return Err(wrong("cell"));
            }
            let mut totals = [0i128; BINS];
            for (k, total) in totals.iter_mut().enumerate() {
                let from = (at * BINS + k) * size;
                let mut raw = [0u8; 16];
                raw[..size].copy_from_slice(&body[from..from + size]);
                let value = i128::from_le_bytes(raw);
                *total = if wide { value } else { i128::from(value as i64) };
                if total.unsigned_abs() > LARGEST_TOTAL.unsigned_abs() {
                    return Err(wrong("total"));
                }
            }
            self.merge_cell(at, &Cell::from_totals(*top, totals, *flags));
        }
        Ok(5 + length)
    }
}
