//! Rows of f64 in one piece of memory. The layout suits loops that go through many rows at the same columns.

use super::filter::WIDE;

/// Elements in a cache line of 64 bytes.
const LINE: usize = 8;

/// Elements in 4 KiB. Cache lines at this distance share a set of a usual first-level cache.
const PAGE: usize = 512;

/// Distance of rows in elements modulo [`PAGE`]. With it the same columns of neighbouring rows lie in different sets.
const SKEW: usize = 17 * LINE;

/// Rows of equal length. All elements are 0 at first.
pub(crate) struct Plane {
    values: Vec<f64>,
    /// Index in `values` at which the first cache line begins.
    start: usize,
    stride: usize,
    width: usize,
}

impl Plane {
    /// Rows of at least `width` elements. Their length is a multiple of [`WIDE`].
    pub fn new(rows: usize, width: usize) -> Plane {
        let width = width.next_multiple_of(WIDE);
        // Short rows would become much longer, and they do not need the distance.
        let stride = if width < PAGE { width } else { (width - SKEW).next_multiple_of(PAGE) + SKEW };
        let values = vec![0.0f64; rows * stride + LINE];
        // A load that begins at a cache line never touches two lines. `align_offset` may return no usable offset.
        let start = values.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        Plane { values, start, stride, width }
    }

    pub fn row(&self, n: usize) -> &[f64] {
        &self.values[self.start + n * self.stride..][..self.width]
    }

    pub fn row_mut(&mut self, n: usize) -> &mut [f64] {
        &mut self.values[self.start + n * self.stride..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_not_overlap_and_are_wide_enough() {
        for width in [1, 31, 32, 33, 500, 512, 513, 4096, 5000] {
            let mut plane = Plane::new(5, width);
            for n in 0..5 {
                plane.row_mut(n).fill(n as f64);
            }
            for n in 0..5 {
                assert!(plane.row(n).len() >= width && plane.row(n).len().is_multiple_of(WIDE));
                assert!(plane.row(n).iter().all(|x| *x == n as f64), "{width}");
            }
        }
    }
}
