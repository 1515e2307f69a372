//! What quantiles cost.

use pyo3::prelude::*;

/// Most passes that quantiles take of elements of so many bits, and most bytes of what a node tells after each.
#[pyfunction]
pub fn quantile_passes(cells: u64, quantiles: u64, bits: u32) -> (u32, u64) {
    gristmill_array::quantile_passes(cells, quantiles, bits)
}
