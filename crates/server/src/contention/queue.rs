//! How long the active work of a node is, and when somebody who was refused had better come again.

use gristmill_wire::MAX_RETRY_AFTER;

/// The active work that is here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Queue {
    /// Seconds for which the processors that active work may use have some.
    pub seconds: f64,
    /// Requests that it is of, each of which has a place.
    pub requests: usize,
}

impl Queue {
    /// Seconds after which a place is free, about: as they end one after the other, the queue divided by its requests.
    /// Whole ones from 1 to [`MAX_RETRY_AFTER`].
    pub fn retry_after(&self) -> u32 {
        let seconds = (self.seconds / self.requests.max(1) as f64).ceil();
        // What is no number is as good as unknown, and the cast takes it for 0.
        (seconds.min(f64::from(MAX_RETRY_AFTER)) as u32).clamp(1, MAX_RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_when_one_of_those_who_have_one_ends() {
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
