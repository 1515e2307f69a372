//! The state of the machine of this process, read again after a short time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::Allowance;

/// Time for which a state is used. To read it takes some ten files of the kernel, and as long as a short request.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The processors of this process, as the kernel reports them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    pub allowance: Allowance,
    /// Share of the machine's processors that other programs leave, 0 to 1.
    pub free: f64,
}

static LAST: Mutex<Option<(Instant, Machine)>> = Mutex::new(None);

impl Machine {
    /// The machine as it was at most [`MAX_AGE`] ago.
    pub fn now() -> Machine {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, machine)) = &*last
            && at.elapsed() < MAX_AGE
        {
            return machine.clone();
        }
        let machine = Machine { allowance: Allowance::now(), free: free_share() };
        *last = Some((Instant::now(), machine.clone()));
        machine
    }
}

/// Share of the processors that is free. Less than 1 if threads have waited for processors lately.
fn free_share() -> f64 {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok();
    let waited = pressure.as_deref().and_then(waited_percent).unwrap_or(0.0);
    if waited.is_finite() { (1.0 - waited / 100.0).clamp(0.0, 1.0) } else { 1.0 }
}

/// Percentage of the last ten seconds in which a thread waited.
fn waited_percent(pressure: &str) -> Option<f64> {
    pressure.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pressure_that_the_kernel_reports_is_read() {
        let text = "some avg10=12.50 avg60=3.00 avg300=1.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(waited_percent(text), Some(12.5));
        assert_eq!((waited_percent(""), waited_percent("some avg10=x")), (None, None));
    }

    #[test]
    fn the_machine_has_its_allowance_and_a_share_from_0_to_1() {
        let machine = Machine::now();
        assert_eq!(machine.allowance, Allowance::now());
        assert!((0.0..=1.0).contains(&machine.free));
    }
}
