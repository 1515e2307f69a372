//! Cost of sending for a node: processor time of everything but lanes, divided by the bytes that were sent meanwhile.

use gristmill_schedule::cluster::SENDING;
use gristmill_schedule::{MAX_RATE, MIN_RATE, MeasuredRate, ScheduleError};
use rustix::time::{ClockId, clock_gettime};

/// Assumed bytes per second that one core reads and sends, before a measurement.
const UNKNOWN: f64 = 1.0 / SENDING;

/// Fewest bytes between two calls that count as a measurement.
const LEAST_SENT: u64 = 8 << 20;

/// Estimate of the cost of sending.
#[derive(Debug)]
pub(super) struct Sending {
    rate: MeasuredRate,
    last: SendingCounters,
}

/// Counters of the process at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SendingCounters {
    /// Seconds of processor time of this process.
    pub process: f64,
    /// Seconds of processor time of its lanes.
    pub lanes: f64,
    /// Number of writes under way, and a number that changes with each write.
    pub writes: (u64, u64),
}

impl Sending {
    /// Creates an estimate without a measurement.
    ///
    /// # Errors
    /// Returns an error if the assumed rate is out of range, which cannot happen.
    pub fn new() -> Result<Sending, ScheduleError> {
        Ok(Sending { rate: MeasuredRate::new(UNKNOWN)?, last: SendingCounters::default() })
    }

    /// Learns from `sent` bytes since the last call. Writes cost time too, so nothing is learned while there are any.
    pub fn learn(&mut self, sent: u64, now: SendingCounters) {
        let last = std::mem::replace(&mut self.last, now);
        let seconds = (now.process - last.process) - (now.lanes - last.lanes);
        let wrote = now.writes.0 > 0 || now.writes != last.writes;
        if sent >= LEAST_SENT && !wrote && last.process > 0.0 {
            self.rate.observe(sent, seconds);
        }
    }

    /// Bytes per second that one core sends.
    pub fn rate(&self) -> f64 {
        self.rate.rate().clamp(MIN_RATE, MAX_RATE)
    }
}

/// Seconds of processor time that this process has used.
pub(super) fn process_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(process: f64, lanes: f64, writes: u64) -> SendingCounters {
        SendingCounters { process, lanes, writes: (0, writes) }
    }

    #[test]
    fn the_time_of_lanes_and_writes_is_not_a_cost_of_sending() {
        let mut sending = Sending::new().unwrap();
        sending.learn(0, at(1.0, 0.5, 0));
        assert_eq!(sending.rate(), UNKNOWN);
        for n in 1..50 {
            let n = f64::from(n);
            // One second for a gigabyte, and two for lanes.
            sending.learn(1_000_000_000, at(1.0 + 3.0 * n, 0.5 + 2.0 * n, 0));
        }
        assert!((sending.rate() / 1e9 - 1.0).abs() < 0.05, "{sending:?}");
        let known = sending.rate();
        sending.learn(1_000_000_000, at(1000.0, 98.5, 1));
        sending.learn(100, at(2000.0, 98.5, 1));
        assert_eq!(sending.rate(), known);
        assert!(process_seconds() > 0.0);
    }
}
