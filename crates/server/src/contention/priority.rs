//! Scheduling priority of active work on the machine.

use std::fmt;
use std::str::FromStr;

use rustix::process::setpriority_process;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Scheduling priority of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivePriority {
    /// Processor time that no other thread wants (`SCHED_IDLE`). A thread that wakes to serve a read has its core at
    /// once. If other programs take all cores, folds make little progress.
    #[default]
    Idle,
    /// A tenth of a core that another thread wants too (`nice` 10). Reads may wait some milliseconds for a core.
    Low,
}

/// `nice` value of lanes of low priority.
const LESS_URGENT: i32 = 10;

impl ActivePriority {
    /// Share of the processors that lanes get while other programs want all of them. The weights of Linux's scheduler
    /// are 1024 for other threads, 110 at `nice` 10 and 3 for idle threads.
    pub(crate) fn least_share(self) -> f64 {
        match self {
            ActivePriority::Idle => 0.003,
            ActivePriority::Low => 0.1,
        }
    }

    /// Gives the calling thread this priority. A thread that may not change its priority keeps the old one.
    pub(crate) fn set(self) {
        match self {
            ActivePriority::Idle => {
                let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
                let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
            }
            ActivePriority::Low => {
                // On Linux this sets the priority of the thread.
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
    fn a_thread_has_the_priority_that_it_was_given() {
        // Fields 19 and 41 of its stat: the nice value and the policy, which is 5 for idle threads.
        let urgency = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
            let fields: Vec<String> =
                stat.rsplit(')').next().unwrap_or("").split_whitespace().map(str::to_owned).collect();
            (fields.get(16).cloned(), fields.get(38).cloned())
        };
        let urgency_with = |priority: ActivePriority| {
            std::thread::spawn(move || {
                priority.set();
                urgency()
            })
            .join()
        };
        assert_eq!(
            urgency_with(ActivePriority::Idle).ok().and_then(|(_, policy)| policy).as_deref(),
            Some("5")
        );
        let (nice, policy) = urgency_with(ActivePriority::Low).unwrap_or_default();
        assert_eq!((nice.as_deref(), policy.as_deref()), (Some("10"), Some("0")));
        for one in [ActivePriority::Idle, ActivePriority::Low] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
