//! The machine of this process, looked at again after a short time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::Allowance;

/// How long one look counts. A look reads some ten files of the kernel, which takes as long as a short request.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The processors of this process, as the kernel tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    pub allowance: Allowance,
    /// Share of the machine's processors that other programs leave, 0 to 1.
    pub free: f64,
}

static LAST: Mutex<Option<(Instant, Machine)>> = Mutex::new(None);

impl Machine {
    /// The machine as it was at most [`LOOK_EVERY`] ago.
    pub fn now() -> Machine {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, machine)) = &*last
            && at.elapsed() < LOOK_EVERY
        {
            return machine.clone();
        }
        let machine = Machine { allowance: Allowance::now(), free: free() };
        *last = Some((Instant::now(), machine.clone()));
        machine
    }
}

/// Less than 1 where threads have waited for processors lately.
fn free() -> f64 {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok();
    let waited = pressure.as_deref().and_then(waited).unwrap_or(0.0);
    if waited.is_finite() { (1.0 - waited / 100.0).clamp(0.0, 1.0) } else { 1.0 }
}

/// Percentage of the last ten seconds in which some thread waited.
fn waited(pressure: &str) -> Option<f64> {
    pressure.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_waiting_is_read() {
        let text = "some avg10=12.50 avg60=3.00 avg300=1.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(waited(text), Some(12.5));
        assert_eq!((waited(""), waited("some avg10=x")), (None, None));
    }

    #[test]
    fn a_machine_is_itself() {
        let machine = Machine::now();
        assert_eq!(machine.allowance, Allowance::now());
        assert!((0.0..=1.0).contains(&machine.free));
    }
}
