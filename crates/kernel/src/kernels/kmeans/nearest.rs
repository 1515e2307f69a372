//! The nearest of some centres, for many points: distances to several centres at once, each summed in the order of
//! the dimensions, so that the same point has the same distance wherever it is met.

use multiversion::multiversion;

/// Centres of one lane group.
const LANES: usize = 8;

/// Centres, as points and in groups of lanes.
#[derive(Clone, Debug)]
pub(crate) struct Centres {
    pub dims: usize,
    /// Row by row.
    pub points: Vec<f64>,
    /// For each dimension, that coordinate of all centres, in whole groups; what is beyond the last is infinitely far.
    lanes: Vec<[f64; LANES]>,
    groups: usize,
}

impl Centres {
    /// Centres of so many dimensions, row by row.
    pub fn new(dims: usize, points: Vec<f64>) -> Centres {
        let k = points.len() / dims.max(1);
        let groups = k.div_ceil(LANES);
        let mut lanes = vec![[f64::INFINITY; LANES]; groups * dims];
        for (n, point) in points.chunks_exact(dims.max(1)).enumerate() {
            for (d, x) in point.iter().enumerate() {
                lanes[d * groups + n / LANES][n % LANES] = *x;
            }
        }
        Centres { dims, points, lanes, groups }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.points.len() / self.dims.max(1)
    }

    /// For each point (row by row), the number of its nearest centre, the lowest of several, and the squared distance.
    pub fn nearest(&self, points: &[f64], number: &mut Vec<u32>, distance: &mut Vec<f64>) {
        number.clear();
        distance.clear();
        nearest(self, points, number, distance);
    }
}

/// Squared distances of one point to `G` groups from `group` on.
#[inline(always)]
fn distances<const G: usize>(centres: &Centres, point: &[f64], group: usize) -> [[f64; LANES]; G] {
    let mut sums = [[0.0; LANES]; G];
    for (x, lanes) in point.iter().zip(centres.lanes.chunks_exact(centres.groups)) {
        let Some(lanes) = lanes[group..].first_chunk::<G>() else { return sums };
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            for (sum, c) in sums.iter_mut().zip(lanes) {
                let apart = x - c;
                *sum += apart * apart;
            }
        }
    }
    sums
}

/// The best of each lane so far, and the group it is in.
struct Best {
    distance: [f64; LANES],
    group: [u32; LANES],
}

impl Best {
    #[inline(always)]
    fn take<const G: usize>(&mut self, centres: &Centres, point: &[f64], first: usize) {
        let sums = distances::<G>(centres, point, first);
        for (g, sums) in sums.iter().enumerate() {
            for (sum, (best, group)) in sums.iter().zip(self.distance.iter_mut().zip(&mut self.group)) {
                let better = sum < best;
                *best = if better { *sum } else { *best };
                *group = if better { (first + g) as u32 } else { *group };
            }
        }
    }

    #[inline(always)]
    fn lowest(&self) -> (u32, f64) {
        let at = |lane: usize| self.group[lane] * LANES as u32 + lane as u32;
        let mut best = (at(0), self.distance[0]);
        for lane in 1..LANES {
            let (number, distance) = (at(lane), self.distance[lane]);
            if distance < best.1 || distance == best.1 && number < best.0 {
                best = (number, distance);
            }
        }
        best
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx+avx2", "x86_64+sse4.2"))]
fn nearest(centres: &Centres, points: &[f64], number: &mut Vec<u32>, distance: &mut Vec<f64>) {
    for point in points.chunks_exact(centres.dims.max(1)) {
        let mut best = Best { distance: [f64::INFINITY; LANES], group: [0; LANES] };
        let mut group = 0;
        while centres.groups - group >= 3 {
            best.take::<3>(centres, point, group);
            group += 3;
        }
        match centres.groups - group {
            2 => best.take::<2>(centres, point, group),
            1 => best.take::<1>(centres, point, group),
            _ => {}
        }
        let (n, d) = best.lowest();
        number.push(n);
        distance.push(d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plainly(centres: &Centres, point: &[f64]) -> (u32, f64) {
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
        fn as_one_by_one(
            dims in 1usize..7, k in 1usize..60, seed: u64,
        ) {
            let mut rng = fastrand::Rng::with_seed(seed);
            // Few different values, so that there are ties.
            let mut values = |n: usize| (0..n).map(|_| f64::from(rng.i32(-3..4))).collect::<Vec<_>>();
            let centres = Centres::new(dims, values(k * dims));
            let points = values(20 * dims);
            let (mut number, mut distance) = (Vec::new(), Vec::new());
            centres.nearest(&points, &mut number, &mut distance);
            for (n, point) in points.chunks_exact(dims).enumerate() {
                prop_assert_eq!((number[n], distance[n]), plainly(&centres, point));
            }
        }
    }
}
