//! The inner loops. They add a row of values to as many cells, or a run of values to one cell.

use crate::binned::grid::{LIMIT, SCALE, deposit};
use crate::path::Work;
use crate::vector::Vector;

/// A floating-point number that can be binned.
pub trait Real: Copy + Send + Sync + 'static {
    /// The same number as `f64`.
    fn widen(self) -> f64;
}

impl Real for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
}

impl Real for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }
}

const EXPONENT: u64 = 0x7ff << 52;

/// A value times the scale. With `SKIP` it is zero for NaN.
#[inline(always)]
fn scaled<T: Real, const SKIP: bool>(x: T) -> f64 {
    let x = x.widen();
    let x = if SKIP && x.is_nan() { 0.0 } else { x };
    x * SCALE
}

/// Adds each value to its cell, if all values are below the limits of their cells.
pub(crate) struct Row<'a, T, const BINS: usize, const SKIP: bool> {
    pub(crate) values: &'a [T],
    /// As many accumulators in each plane.
    pub(crate) planes: [&'a mut [f64]; BINS],
}

impl<T: Real, const BINS: usize, const SKIP: bool> Work for Row<'_, T, BINS, SKIP> {
    /// Whether the values were added. If not, nothing has changed.
    type Out = bool;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> bool {
        let n = self.planes.iter().fold(self.values.len(), |n, plane| n.min(plane.len()));
        let values = &self.values[..n];
        let mut planes = self.planes.map(|plane| &mut plane[..n]);
        let mut below = 1u64;
        for i in 0..n {
            let limit = f64::from_bits(planes[0][i].to_bits() & EXPONENT) * LIMIT;
            // NaN is not below the limit.
            below &= u64::from(scaled::<T, SKIP>(values[i]).abs() < limit);
        }
        if below == 0 {
            return false;
        }
        for i in 0..n {
            let mut bins: [f64; BINS] = std::array::from_fn(|k| planes[k][i]);
            deposit(&mut bins, scaled::<T, SKIP>(values[i]));
            for (plane, bin) in planes.iter_mut().zip(bins) {
                plane[i] = bin;
            }
        }
        true
    }
}

/// The largest magnitude of some values.
pub(crate) struct LargestMagnitude<'a, T, const SKIP: bool>(pub(crate) &'a [T]);

impl<T: Real, const SKIP: bool> Work for LargestMagnitude<'_, T, SKIP> {
    /// The largest magnitude; `None` if a value is infinite, or NaN without `SKIP`.
    type Out = Option<f64>;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> Option<f64> {
        let mut largest = [0f64; LANES];
        let mut finite = [1u64; LANES];
        let (groups, rest) = self.0.as_chunks::<LANES>();
        let mut look = |j: usize, x: T| {
            let x = x.widen();
            let x = if SKIP && x.is_nan() { 0.0 } else { x.abs() };
            finite[j] &= u64::from(x < f64::INFINITY);
            largest[j] = if x > largest[j] { x } else { largest[j] };
        };
        for group in groups {
            for (j, x) in group.iter().enumerate() {
                look(j, *x);
            }
        }
        for (j, x) in rest.iter().enumerate() {
            look(j, *x);
        }
        let finite = finite.iter().fold(1, |all, one| all & one);
        (finite == 1).then(|| largest.into_iter().fold(0.0, f64::max))
    }
}

/// Number of accumulators of each bin.
pub(crate) const LANES: usize = 16;

/// Adds the slices of some values to one cell. All values are below the limit of the first bin.
pub(crate) struct Run<'a, T, const BINS: usize, const SKIP: bool> {
    /// At most [`MAX_DEPOSITS`](crate::binned::grid::MAX_DEPOSITS) values for each lane.
    pub(crate) values: &'a [[T; LANES]],
    /// The numbers at which the accumulators of the bins begin.
    pub(crate) starts: [f64; BINS],
}

impl<T: Real, const BINS: usize, const SKIP: bool> Work for Run<'_, T, BINS, SKIP> {
    /// The sum that each bin took, in units of its grid.
    type Out = [i64; BINS];

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> [i64; BINS] {
        let mut lanes = self.starts.map(|start| [start; LANES]);
        for group in self.values {
            // This is `deposit`, bin by bin for all lanes, so that vectors of accumulators stay in registers.
            let mut rest: [f64; LANES] = std::array::from_fn(|j| scaled::<T, SKIP>(group[j]));
            for lane in &mut lanes {
                for (bin, rest) in lane.iter_mut().zip(&mut rest) {
                    let total = *bin + f64::from_bits(rest.to_bits() | 1);
                    *rest -= total - *bin;
                    *bin = total;
                }
            }
        }
        let mut out = [0i64; BINS];
        for (out, (lanes, start)) in out.iter_mut().zip(lanes.iter().zip(self.starts)) {
            *out = lanes.iter().map(|lane| lane.to_bits() as i64 - start.to_bits() as i64).sum();
        }
        out
    }
}
