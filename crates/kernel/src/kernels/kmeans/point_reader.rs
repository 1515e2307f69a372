//! Conversion of records to points with f64 coordinates, some points at a time.

use crate::convert::widen;
use crate::element::with_element;
use crate::{Block, DType, KernelError};

/// Points that are converted to f64 together. They and their results stay in the first-level cache.
const TILE: usize = 256;

/// A reader of records as points.
#[derive(Clone, Debug)]
pub(crate) struct PointReader {
    pub dtype: DType,
    pub dims: usize,
    tile: Vec<f64>,
}

impl PointReader {
    pub fn new(dtype: DType, dims: usize) -> PointReader {
        PointReader { dtype, dims, tile: Vec::new() }
    }

    /// Gives the points of a block to `take`, tile by tile, with the number of the first point of each tile.
    pub fn each_tile(
        &mut self,
        block: &Block<'_>,
        mut take: impl FnMut(u64, &[f64]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let record = self.dims * self.dtype.size();
        let mut first = block.first();
        for bytes in block.data().chunks(TILE * record) {
            self.tile.resize(bytes.len() / self.dtype.size(), 0.0);
            with_element!(self.dtype, T => widen::<T>(bytes, &mut self.tile));
            take(first, &self.tile)?;
            first += (bytes.len() / record) as u64;
        }
        Ok(())
    }
}
