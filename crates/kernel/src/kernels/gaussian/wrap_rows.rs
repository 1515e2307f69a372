//! The rows at both ends of an image. A first pass collects them if the image is continued with its other end.

use std::collections::BTreeMap;

use super::NAME;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Fold, KernelError, Sink, Step};

/// The bytes of rows by row number.
pub(crate) type Rows = BTreeMap<u64, Vec<u8>>;

fn encode(rows: &Rows, out: &mut Vec<u8>) {
    out.put_u64(rows.len() as u64);
    for (at, row) in rows {
        out.put_u64(*at);
        out.extend_from_slice(row);
    }
}

/// Reads rows of `row` bytes each from a saved state.
pub(crate) fn decode(bytes: &[u8], row: u64) -> Result<Rows, KernelError> {
    let mut read = StateReader::new(NAME, bytes);
    let mut rows = Rows::new();
    for _ in 0..read.u64()? {
        let at = read.u64()?;
        rows.insert(at, read.bytes(row as usize)?.to_vec());
    }
    read.end()?;
    Ok(rows)
}

/// The fold that collects the rows at both ends.
pub(crate) struct WrapRowsFold {
    height: u64,
    reach: u64,
    rows: Rows,
}

impl WrapRowsFold {
    /// A fold that collects `reach` rows at each end of an image of `height` rows.
    pub fn new(height: u64, reach: u64) -> WrapRowsFold {
        WrapRowsFold { height, reach, rows: Rows::new() }
    }
}

impl Fold for WrapRowsFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let row = block.data().len() / block.count().max(1) as usize;
        for (at, bytes) in (block.first()..).zip(block.data().chunks_exact(row.max(1))) {
            if at < self.reach || at >= self.height - self.reach {
                self.rows.insert(at, bytes.to_vec());
            }
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        encode(&self.rows, out);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let row = match self.rows.values().next() {
            Some(row) => row.len(),
            None => row_bytes(later),
        };
        self.rows.extend(decode(later, row as u64)?);
        Ok(())
    }
}

/// Bytes of a row in a state, computed from the length of the state.
fn row_bytes(state: &[u8]) -> usize {
    let rows = StateReader::new(NAME, state).u64().unwrap_or(0).max(1);
    (state.len().saturating_sub(8) / usize::try_from(rows).unwrap_or(usize::MAX)).saturating_sub(8)
}
