//! Addition of f64 as a compiler vectorises it: fast, and not exact.

use multiversion::multiversion;

/// Independent sums, enough to hide the latency of an addition behind others.
const LANES: usize = 32;

#[multiversion(targets("x86_64+avx2", "x86_64+sse4.2"))]
pub fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane += *x;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}
