//! Length of a node's active work, and the time after which a refused client should try again.

use gristmill_wire::MAX_RETRY_AFTER;

/// Active work on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Queue {
    /// Seconds that it takes on the processors for active work.
    pub seconds: f64,
    /// Number of its requests. Each has a place.
    pub requests: usize,
}

impl Queue {
    /// Approximate seconds until a place is free: the seconds divided by the requests, since requests end one after the
    /// other. A whole number from 1 to [`MAX_RETRY_AFTER`].
    pub fn retry_after(&self) -> u32 {
        let seconds = (self.seconds / self.requests.max(1) as f64).ceil();
        // The cast makes 0 of NaN.
        (seconds.min(f64::from(MAX_RETRY_AFTER)) as u32).clamp(1, MAX_RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_when_one_of_the_requests_ends() {
        let after = |seconds, requests| Queue { seconds, requests }.retry_after();
        assert_eq!(after(40.0, 4), 10);
        assert_eq!(after(41.0, 4), 11);
        assert_eq!(after(400.0, 4096), 1);
        assert_eq!(after(0.0, 0), 1);
        assert_eq!(after(1e9, 4), MAX_RETRY_AFTER);
        assert_eq!(after(f64::INFINITY, 4), MAX_RETRY_AFTER);
        assert_eq!(after(-3.0, 4), 1);
        assert!((1..=MAX_RETRY_AFTER).contains(&after(f64::NAN, 4)));
    }
}
