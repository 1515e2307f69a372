//! The clock of leases. It advances steadily, even if the system's clock is changed while the process runs.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970: the system time of the first call, plus the time that has passed since then.
pub(crate) fn now() -> i64 {
    static BEGUN: OnceLock<(i64, Instant)> = OnceLock::new();
    let (then, since) = BEGUN.get_or_init(|| (to_nanos(SystemTime::now()), Instant::now()));
    then.saturating_add(i64::try_from(since.elapsed().as_nanos()).unwrap_or(i64::MAX))
}

/// Nanoseconds since 1970, limited to the range of 0 to the largest `i64`.
pub(crate) fn to_nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn from_nanos(nanos: i64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos.max(0).unsigned_abs())).unwrap_or(UNIX_EPOCH)
}

/// End of a lease that begins now, in nanoseconds since 1970.
pub(crate) fn lease_end(lease: Duration) -> i64 {
    let nanos = i64::try_from(lease.as_nanos()).unwrap_or(i64::MAX);
    now().saturating_add(nanos)
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
