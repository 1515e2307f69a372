//! Bins of equal width, and the exact bin of a value.

use super::bounds::{Bounded, Literal};

/// Edges of `bins` bins between `low` and `high`. They are computed as in NumPy's `linspace`: `i * step + low`, and the
/// last one is `high`.
pub(crate) fn edges(low: f64, high: f64, bins: usize) -> Vec<f64> {
    // As in numpy.histogram, a range of no width gets half a unit on each side.
    let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
    let step = (high - low) / bins as f64;
    let mut edges: Vec<f64> = (0..bins).map(|i| i as f64 * step + low).collect();
    edges.push(high);
    edges
}

/// Bins that compare a value with their edges in the type of the element.
#[derive(Clone, Debug)]
pub(crate) struct Bins<T> {
    /// Smallest value of each bin.
    starts: Vec<T>,
    /// Largest value that is counted. The last bin includes its upper edge.
    last: T,
    low: f64,
    scale: f64,
}

impl<T: Bounded> Bins<T> {
    /// Bins with these edges; `None` if no value of the type can lie within the edges.
    pub fn new(edges: &[f64]) -> Option<Bins<T>> {
        let literal = |x: f64| Literal { int: None, float: x };
        let (first, last) = (*edges.first()?, *edges.last()?);
        let largest = T::at_most(literal(last), false)?;
        let bins = edges.len() - 1;
        // An edge above all values of the type starts a bin that stays empty.
        let start = |x: &f64| T::at_least(literal(*x), false).unwrap_or(T::ALL.1);
        let mut starts = Vec::with_capacity(bins);
        for edge in &edges[..bins] {
            starts.push(start(edge));
        }
        T::at_least(literal(first), false)?;
        Some(Bins { starts, last: largest, low: first, scale: bins as f64 / (last - first) })
    }

    /// Counts the values in `data` in their bins. Values outside the edges and NaN are not counted.
    pub fn count(&self, data: &[u8], counts: &mut [u64]) {
        let Some(first) = self.starts.first().copied() else { return };
        let top = self.starts.len() - 1;
        for x in data.chunks_exact(T::SIZE) {
            let x = T::read(x);
            if !(x >= first && x <= self.last) {
                continue;
            }
            // Rounding may make the guess wrong by one bin. The comparisons decide.
            let mut bin = (((x.to_f64() - self.low) * self.scale) as usize).min(top);
            while bin > 0 && x < self.starts[bin] {
                bin -= 1;
            }
            while bin < top && x >= self.starts[bin + 1] {
                bin += 1;
            }
            counts[bin] += 1;
        }
    }
}
