//! Repeated requests to the entry node while it is away. A supervised node is back soon, and a node that was just
//! started will listen soon.

use std::time::Duration;

use gristmill_peers::FailedRequest;
use gristmill_wire::action::names;
use tokio::time::{Instant, sleep};

/// Time for which a request to the entry node is repeated if it cannot be reached, as with other nodes.
/// [`ClusterOptions::wait`](crate::ClusterOptions::wait) makes it longer.
pub const ENTRY_PATIENCE: Duration = Duration::from_millis(1400);

/// Time for which a commit is repeated: as long as the lease of a put that is not renewed, because all bytes of the
/// file are written by then. It is also repeated if the entry node was silent, because the node may wait for a slow
/// disk.
pub const COMMIT_PATIENCE: Duration = Duration::from_secs(60);

/// Longest time that a client may wait for a cluster.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The retries of one request to the entry node.
pub(crate) struct EntryRetries {
    until: Instant,
    repeatable: bool,
    /// Whether the request is repeated after a silence too.
    commit: bool,
}

impl EntryRetries {
    /// Returns the retries of an action. `wait` is the time that the user allows.
    pub fn for_action(name: &str, wait: Duration) -> EntryRetries {
        let repeatable = ![names::REMOVE, names::REMOVE_ALL, names::RENAME].contains(&name);
        let commit = [names::COMMIT, names::COMMIT_MANY].contains(&name);
        let least = if commit { COMMIT_PATIENCE } else { ENTRY_PATIENCE };
        EntryRetries { until: Instant::now() + wait.clamp(least, MAX_WAIT), repeatable, commit }
    }

    /// Waits until the request may be repeated.
    ///
    /// # Errors
    /// Returns the failure if the request must not be repeated.
    pub async fn once_more(&self, unanswered: FailedRequest) -> Result<(), FailedRequest> {
        let unanswered = FailedRequest { silent: unanswered.silent && !self.commit, ..unanswered };
        if !unanswered.may_be_repeated(self.repeatable) || Instant::now() + PAUSE > self.until {
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

    fn away(kind: ErrorKind, begun: bool, silent: bool) -> FailedRequest {
        FailedRequest { error: RunError::Remote { kind, message: "m".into() }, begun, silent }
    }

    /// Returns how often a request is sent that always fails in the same way.
    async fn asked(name: &str, wait: Duration, failure: impl Fn() -> FailedRequest) -> u32 {
        let retries = EntryRetries::for_action(name, wait);
        let mut times = 1;
        while retries.once_more(failure()).await.is_ok() {
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
