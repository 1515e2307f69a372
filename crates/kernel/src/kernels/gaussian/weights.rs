//! Weights of the filter along one axis.

/// Weights of a symmetric filter: the weight of the middle, then of the neighbours at distance 1, 2, ...
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights(pub Vec<f64>);

impl Weights {
    /// Samples of a Gaussian up to `radius`, with a sum of 1, as in SciPy's `gaussian_filter`. The exponential function
    /// is that of musl, so it is the same on every machine. It may differ from other libraries in the last bit.
    pub fn gaussian(sigma: f64, radius: usize) -> Weights {
        let sample = |x: usize| libm::exp(-0.5 / (sigma * sigma) * (x * x) as f64);
        let half: Vec<f64> = (0..=radius).map(sample).collect();
        let sum = half.iter().skip(1).rev().fold(0.0, |sum, w| sum + 2.0 * w) + half[0];
        Weights(half.iter().map(|w| w / sum).collect())
    }

    /// One axis of the mask (1 2 1, 2 4 2, 1 2 1) / 16 of Chen et al. 2012.
    pub fn mask_3x3() -> Weights {
        Weights(vec![0.5, 0.25])
    }

    /// Number of neighbours on each side.
    pub fn radius(&self) -> usize {
        self.0.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_to_one() {
        for (sigma, radius) in [(0.3, 1), (2.0, 8), (50.0, 200), (1.0, 0)] {
            let Weights(half) = Weights::gaussian(sigma, radius);
            let sum = half[0] + 2.0 * half[1..].iter().sum::<f64>();
            assert!((sum - 1.0).abs() < 1e-14, "{sigma}: {sum}");
            assert!(half.is_sorted_by(|a, b| a >= b));
        }
    }
}
