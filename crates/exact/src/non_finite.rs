//! Counts of NaNs and infinities.

/// Numbers of values that are not finite. Counts stop at the largest `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonFinite {
    pub(crate) nans: u64,
    pub(crate) positive: u64,
    pub(crate) negative: u64,
}

impl NonFinite {
    pub(crate) fn merge(&mut self, other: &NonFinite) {
        self.nans = self.nans.saturating_add(other.nans);
        self.positive = self.positive.saturating_add(other.positive);
        self.negative = self.negative.saturating_add(other.negative);
    }

    /// Counts `x` if it is not finite. Returns whether it was counted.
    #[inline]
    pub(crate) fn count(&mut self, x: f64) -> bool {
        if x.is_finite() {
            return false;
        }
        let count = match (x.is_nan(), x > 0.0) {
            (true, _) => &mut self.nans,
            (false, true) => &mut self.positive,
            (false, false) => &mut self.negative,
        };
        *count = count.saturating_add(1);
        true
    }
}
