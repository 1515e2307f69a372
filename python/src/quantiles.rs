//! The cost of quantiles.

use pyo3::prelude::*;

/// Most passes for quantiles of elements of `bits` bits, and most bytes of a node's answer after each pass.
#[pyfunction]
pub fn quantile_passes(cells: u64, quantiles: u64, bits: u32) -> (u32, u64) {
    gristmill_array::quantile_passes(cells, quantiles, bits)
}
