//! Asking the entry node again while it is away: one that is supervised is back soon, and one that was just started is
//! about to listen.

use std::time::Duration;

use gristmill_peers::Unanswered;
use gristmill_wire::action::names;
use tokio::time::{Instant, sleep};

/// For how long the entry node is asked again where it cannot be reached, as other nodes are.
/// [`ClusterOptions::wait`](crate::ClusterOptions::wait) makes it longer.
pub const ENTRY_PATIENCE: Duration = Duration::from_millis(1400);

/// The same for a commit, to which it leads that all bytes of a file were written: as long as a put lasts that nobody renews. It is
/// asked again also where the entry node was silent, for it may be at a slow disk.
pub const COMMIT_PATIENCE: Duration = Duration::from_secs(60);

/// Longest that somebody may want to wait for a cluster.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The time between two such questions.
const PAUSE: Duration = Duration::from_millis(200);

/// What somebody waits for the entry node in one question.
pub(crate) struct EntryPatience {
    until: Instant,
    repeatable: bool,
    /// Asked again after a silence too.
    commit: bool,
}

impl EntryPatience {
    /// For an action of this name.
    pub fn of(name: &str, wait: Duration) -> EntryPatience {
        let repeatable = ![names::REMOVE, names::REMOVE_ALL, names::RENAME].contains(&name);
        let commit = [names::COMMIT, names::COMMIT_MANY].contains(&name);
        let least = if commit { COMMIT_PATIENCE } else { ENTRY_PATIENCE };
        EntryPatience { until: Instant::now() + wait.clamp(least, MAX_WAIT), repeatable, commit }
    }

    /// Waits for the time to ask again.
    ///
    /// # Errors
    /// The failure, if the same question should not be asked again.
    pub async fn once_more(&self, unanswered: Unanswered) -> Result<(), Unanswered> {
        let unanswered = Unanswered { silent: unanswered.silent && !self.commit, ..unanswered };
        if !unanswered.may_be_asked_again(self.repeatable) || Instant::now() + PAUSE > self.until {
            return Err(unanswered);
        }
        sleep(PAUSE).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gristmill_runtime::{ErrorKind, RunError};

    use super::*;

    fn away(kind: ErrorKind, begun: bool, silent: bool) -> Unanswered {
        Unanswered { error: RunError::Remote { kind, message: "m".into() }, begun, silent }
    }

    /// How often a question is asked that always fails in the same way.
    async fn asked(name: &str, wait: Duration, failure: impl Fn() -> Unanswered) -> u32 {
        let patience = EntryPatience::of(name, wait);
        let mut times = 1;
        while patience.once_more(failure()).await.is_ok() {
            times += 1;
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_again_for_a_bounded_time() {
        let refused = || away(ErrorKind::Unavailable, false, false);
        assert_eq!(asked(names::OPEN, Duration::ZERO, refused).await, 8);
        assert_eq!(asked(names::OPEN, Duration::from_secs(10), refused).await, 51);
        assert_eq!(asked(names::REMOVE, Duration::ZERO, refused).await, 8, "it did nothing yet");
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_is_asked_for_as_long_as_its_put_lasts() {
        let silent = || away(ErrorKind::Unavailable, true, true);
        for name in [names::COMMIT, names::COMMIT_MANY] {
            assert_eq!(asked(name, Duration::ZERO, silent).await, 301);
        }
        assert_eq!(asked(names::STAT, Duration::ZERO, silent).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_done_is_asked_again_only_where_twice_is_once() {
        let cut = || away(ErrorKind::Unavailable, true, false);
        assert_eq!(asked(names::REMOVE, Duration::ZERO, cut).await, 1);
        assert_eq!(asked(names::STAT, Duration::ZERO, cut).await, 8);
        for other in [ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::Busy] {
            assert_eq!(asked(names::STAT, Duration::ZERO, || away(other, false, false)).await, 1);
        }
        assert_eq!(asked(names::STAT, Duration::ZERO, || away(ErrorKind::Unavailable, true, true)).await, 1);
    }
}
