//! The clock of leases. It advances steadily, even if the system's clock is changed while the process runs.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use crate::rows::to_nanos;

/// Nanoseconds since 1970: the system time of the first call, plus the time that has passed since then.
pub(crate) fn now() -> i64 {
    static BEGUN: OnceLock<(i64, Instant)> = OnceLock::new();
    let (then, since) = BEGUN.get_or_init(|| (to_nanos(SystemTime::now()), Instant::now()));
    then.saturating_add(i64::try_from(since.elapsed().as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_begins_with_the_system_time_and_never_goes_back() {
        let first = now();
        assert!(first.abs_diff(to_nanos(SystemTime::now())) < 3_600_000_000_000);
        assert!(now() >= first);
    }
}
