//! How urgent active work is beside everything else on the machine.

use std::fmt;
use std::str::FromStr;

use rustix::process::setpriority_process;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// How urgent lanes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivePriority {
    /// Only what nobody else wants (`SCHED_IDLE`): a thread that wakes to serve a read has its core at once, and where
    /// other programs take all cores hardly anything is folded.
    #[default]
    Idle,
    /// A tenth of a core that another thread wants too (`nice` 10); reads may wait some milliseconds for a core.
    Low,
}

/// How much less urgent lanes of low priority are, as `nice` counts.
const LESS_URGENT: i32 = 10;

impl ActivePriority {
    /// Share of a machine that others use wholly, that lanes get all the same: the weights of Linux's scheduler are 1024 for
    /// other threads, 110 for these and 3 for idle ones.
    pub(crate) fn least_share(self) -> f64 {
        match self {
            ActivePriority::Idle => 0.003,
            ActivePriority::Low => 0.1,
        }
    }

    /// Makes the calling thread so urgent. Who may not change it works on as before.
    pub(crate) fn set(self) {
        match self {
            ActivePriority::Idle => {
                let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
                let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
            }
            ActivePriority::Low => {
                // On Linux the priority of a thread.
                let _ = setpriority_process(None, LESS_URGENT);
            }
        }
    }
}

impl fmt::Display for ActivePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ActivePriority::Idle => "idle",
            ActivePriority::Low => "low",
        })
    }
}

impl FromStr for ActivePriority {
    type Err = String;

    fn from_str(text: &str) -> Result<ActivePriority, String> {
        match text {
            "idle" => Ok(ActivePriority::Idle),
            "low" => Ok(ActivePriority::Low),
            other => Err(format!("there is no priority '{other}'; there are idle and low")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_lane_is_as_urgent_as_it_was_made() {
        // Fields 19 and 41 of its stat: nice value and policy, 5 for idle ones.
        let urgency = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
            let fields: Vec<String> =
                stat.rsplit(')').next().unwrap_or("").split_whitespace().map(str::to_owned).collect();
            (fields.get(16).cloned(), fields.get(38).cloned())
        };
        let of = |priority: ActivePriority| {
            std::thread::spawn(move || {
                priority.set();
                urgency()
            })
            .join()
        };
        assert_eq!(of(ActivePriority::Idle).ok().and_then(|(_, policy)| policy).as_deref(), Some("5"));
        let (nice, policy) = of(ActivePriority::Low).unwrap_or_default();
        assert_eq!((nice.as_deref(), policy.as_deref()), (Some("10"), Some("0")));
        for one in [ActivePriority::Idle, ActivePriority::Low] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
