//! Assumed rates of the built-in kernels before a measurement.

use gristmill_schedule::{Rates, ScheduleError};

/// Bytes per second of one core with any other kernel.
const UNKNOWN_RATE: f64 = 1e9;

/// Rounded bytes per second of one core of an ordinary server. They show which kernels are much faster or slower than a
/// link. The first measurement on a node counts more.
const RATES: [(&str, f64); 19] = [
    ("count", 5e9),
    ("first", 5e9),
    ("gaussian", 3e8),
    ("grep", 2e9),
    ("histogram", 2e9),
    ("kmeans", 2e8),
    ("last", 5e9),
    ("lookup", 4e9),
    ("max", 5e9),
    ("mean", 5e9),
    ("median", 5e8),
    ("min", 5e9),
    ("minmax", 5e9),
    ("quantile", 5e8),
    ("sum", 5e9),
    ("top", 5e8),
    ("unique", 3e8),
    ("var", 3e9),
    ("wc", 3e9),
];

/// Rates without a measurement.
///
/// # Errors
/// Returns an error if an assumed rate is out of range.
pub(super) fn rates() -> Result<Rates, ScheduleError> {
    let mut rates = Rates::new(UNKNOWN_RATE)?;
    for (kernel, rate) in RATES {
        rates.expect(kernel, rate)?;
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_kernel::catalog;

    use super::*;

    #[test]
    fn every_built_in_kernel_has_an_assumed_rate() {
        let built_in: Vec<&str> = catalog::BUILT_IN.iter().map(|one| one.name).collect();
        assert!(RATES.iter().all(|(name, _)| built_in.contains(name)), "{built_in:?}");
        assert!(built_in.iter().all(|name| RATES.iter().any(|(known, _)| known == name)), "{built_in:?}");
        let rates = rates().unwrap();
        assert_eq!((rates.get("sum").rate(), rates.get("sum").confidence()), (5e9, 0.0));
        assert_eq!(rates.get("a kernel of somebody").rate(), UNKNOWN_RATE);
    }
}
