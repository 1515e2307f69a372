//! The nearest centre of each of many points. The distances of several points to one centre are computed together. Each
//! is summed in the order of the dimensions, so a point has the same distance everywhere.

use multiversion::multiversion;

/// Points that are processed together. Their sums stay in registers.
const WIDE: usize = 32;

/// Centres, with a buffer for the search.
#[derive(Clone, Debug)]
pub(crate) struct Centres {
    pub dims: usize,
    /// The centres, row by row.
    pub points: Vec<f64>,
    /// Transposed points: [`WIDE`] of them, dimension by dimension.
    columns: Vec<[f64; WIDE]>,
}

impl Centres {
    /// Centres of `dims` dimensions (at least 1), row by row.
    pub fn new(dims: usize, points: Vec<f64>) -> Centres {
        let dims = dims.max(1);
        Centres { dims, points, columns: vec![[0.0; WIDE]; dims] }
    }

    /// Number of centres.
    pub fn len(&self) -> usize {
        self.points.len() / self.dims
    }

    /// Finds the nearest centre of each point (row by row). Writes its number and the squared distance. Of several
    /// nearest centres the lowest number counts.
    pub fn nearest(&mut self, points: &[f64], number: &mut Vec<u32>, distance: &mut Vec<f64>) {
        number.clear();
        distance.clear();
        for points in points.chunks(WIDE * self.dims) {
            // The columns after the last point hold earlier points, which are not used.
            for (n, point) in points.chunks_exact(self.dims).enumerate() {
                self.columns.iter_mut().zip(point).for_each(|(column, x)| column[n] = *x);
            }
            let (nearest, least) = nearest(&self.columns, &self.points);
            let count = points.len() / self.dims;
            number.extend(nearest[..count].iter().map(|n| *n as u32));
            distance.extend_from_slice(&least[..count]);
        }
    }
}

/// Numbers of the nearest centres of [`WIDE`] points, and the squared distances. Numbers are `f64`, because these are
/// as wide as distances.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx+avx2", "x86_64+sse4.2"))]
fn nearest(columns: &[[f64; WIDE]], centres: &[f64]) -> ([f64; WIDE], [f64; WIDE]) {
    let (mut number, mut least) = ([0.0; WIDE], [f64::INFINITY; WIDE]);
    for (n, centre) in centres.chunks_exact(columns.len()).enumerate() {
        let mut sums = [0.0; WIDE];
        for (column, c) in columns.iter().zip(centre) {
            for (sum, x) in sums.iter_mut().zip(column) {
                let apart = x - c;
                *sum += apart * apart;
            }
        }
        let n = n as f64;
        for ((sum, least), number) in sums.iter().zip(&mut least).zip(&mut number) {
            let better = sum < least;
            *least = if better { *sum } else { *least };
            *number = if better { n } else { *number };
        }
    }
    (number, least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(centres: &Centres, point: &[f64]) -> (u32, f64) {
        let mut best = (0, f64::INFINITY);
        for (n, centre) in (0..).zip(centres.points.chunks_exact(centres.dims)) {
            let d = point.iter().zip(centre).fold(0.0, |sum, (x, c)| sum + (x - c) * (x - c));
            if d < best.1 {
                best = (n, d);
            }
        }
        best
    }

    proptest! {
        #[test]
        fn nearest_equals_the_naive_search(
            dims in 1usize..7, k in 1usize..60, seed: u64,
        ) {
            let mut rng = fastrand::Rng::with_seed(seed);
            // There are few different values, so that there are ties.
            let mut values = |n: usize| (0..n).map(|_| f64::from(rng.i32(-3..4))).collect::<Vec<_>>();
            let mut centres = Centres::new(dims, values(k * dims));
            let points = values(20 * dims);
            let (mut number, mut distance) = (Vec::new(), Vec::new());
            centres.nearest(&points, &mut number, &mut distance);
            for (n, point) in points.chunks_exact(dims).enumerate() {
                prop_assert_eq!((number[n], distance[n]), naive(&centres, point));
            }
        }
    }
}
