//! The clock that the caller passes: the store reads no other clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Source of the time for `modified` and for leases.
pub trait Clock: Send + Sync {
    /// The time now. Leases outlive a restart, so this is wall-clock time.
    fn now(&self) -> SystemTime;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Nanoseconds since 1970, limited to the range of an `i64`.
#[must_use]
pub fn to_nanos(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// The inverse of [`to_nanos`].
#[must_use]
pub fn from_nanos(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    let time = if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}
