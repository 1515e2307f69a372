//! Asking again what a busy node refused.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use gristmill_runtime::RunError;

/// How often a request that was refused as busy is made again.
pub const ASKED_AGAIN: u32 = 3;

/// How long a request waits at most, in all, to be made again. A node that has it wait for longer is told of as busy.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Those who were refused together come again within so long, and not all at once.
const SPREAD: Duration = Duration::from_millis(500);

/// What a request has waited already because nodes were busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    asked_again: u32,
    waited: Duration,
}

impl Patience {
    /// How long to wait before the request is made again. `None` if it should not be: the error is no refusal that says
    /// when, as only a request gets of which nothing was begun, or it was made often enough.
    pub fn wait_for(&mut self, error: &RunError) -> Option<Duration> {
        let random = RandomState::new().build_hasher().finish();
        let spread = Duration::from_millis(random % (SPREAD.as_millis() as u64 + 1));
        let wait = Duration::from_secs(error.retry_after()?.into()) + spread;
        let waited = self.waited + wait;
        if self.asked_again >= ASKED_AGAIN || waited > PATIENCE {
            return None;
        }
        (self.asked_again, self.waited) = (self.asked_again + 1, waited);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use gristmill_runtime::ErrorKind;

    use super::*;

    fn busy(retry_after: u32) -> RunError {
        RunError::Busy { message: "busy".into(), retry_after }
    }

    #[test]
    fn it_is_asked_again_so_often_and_not_before_it_was_told_to() {
        let mut patience = Patience::default();
        for _ in 0..ASKED_AGAIN {
            let wait = patience.wait_for(&busy(2)).unwrap_or_default();
            assert!((Duration::from_secs(2)..=Duration::from_secs(2) + SPREAD).contains(&wait), "{wait:?}");
        }
        assert_eq!(patience.wait_for(&busy(2)), None);
    }

    #[test]
    fn it_waits_for_no_longer_than_the_bound_in_all() {
        let mut patience = Patience::default();
        assert!(patience.wait_for(&busy(60)).is_some());
        assert_eq!(patience.wait_for(&busy(60)), None);
        assert!(patience.wait_for(&busy(1)).is_some(), "a short wait fits still");
        assert_eq!(Patience::default().wait_for(&busy(u32::MAX)), None);
    }

    #[test]
    fn what_may_have_begun_is_not_made_again() {
        let of = |kind| RunError::Remote { kind, message: "m".into() };
        for error in [of(ErrorKind::Busy), of(ErrorKind::Unavailable), RunError::Panicked] {
            assert_eq!(Patience::default().wait_for(&error), None);
        }
    }
}
