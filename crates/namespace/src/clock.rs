//! The clock of leases: it goes on evenly, whatever becomes of the system's clock while the process runs.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use crate::rows::to_nanos;

/// Nanoseconds since 1970 as they were when this was first asked, and the time that has passed since.
pub(crate) fn now() -> i64 {
    static BEGUN: OnceLock<(i64, Instant)> = OnceLock::new();
    let (then, since) = BEGUN.get_or_init(|| (to_nanos(SystemTime::now()), Instant::now()));
    then.saturating_add(i64::try_from(since.elapsed().as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_the_time_of_day_and_never_goes_back() {
        let first = now();
        assert!(first.abs_diff(to_nanos(SystemTime::now())) < 3_600_000_000_000);
        assert!(now() >= first);
    }
}
