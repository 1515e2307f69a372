//! Scheduling priority of active work on the machine.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadId, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Scheduling priority of the lanes of active requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivePriority {
    /// `Low`, and `Idle` from the moment on in which somebody reads or writes. An idle thread stays idle: it may not
    /// raise its own priority.
    Auto,
    /// Processor time that no other thread wants (`SCHED_IDLE`). A thread that wakes to serve a read has its core at
    /// once. If other programs take all cores, folds get about a tenth of the processors.
    #[default]
    Idle,
    /// A tenth of a core that another thread wants too (`nice` 10). Reads may wait some milliseconds for a core.
    Low,
}

/// Scheduling priority of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanePriority {
    Idle,
    Low,
}

/// `nice` value of lanes of low priority.
const LESS_URGENT: i32 = 10;

impl ActivePriority {
    /// The priority of a lane. `normal_lately`: somebody reads or writes now, or did so a short time ago.
    pub(crate) fn of_lane(self, normal_lately: bool) -> LanePriority {
        match self {
            ActivePriority::Idle => LanePriority::Idle,
            ActivePriority::Auto if normal_lately => LanePriority::Idle,
            ActivePriority::Auto | ActivePriority::Low => LanePriority::Low,
        }
    }
}

impl LanePriority {
    /// Share of the processors that lanes get while other programs want all of them. The weights of Linux's scheduler
    /// are 1024 for other threads, 110 at `nice` 10 and 3 for idle threads.
    pub fn least_share(self) -> f64 {
        match self {
            LanePriority::Idle => 0.003,
            LanePriority::Low => 0.1,
        }
    }

    /// Gives the calling thread this priority. A thread that may not change its priority keeps the old one.
    pub fn set(self) {
        match self {
            LanePriority::Idle => {
                let _ = set_idle(thread_native_id());
            }
            LanePriority::Low => {
                // On Linux this sets the priority of one thread.
                let _ = setpriority_process(None, LESS_URGENT);
            }
        }
    }

    /// Gives a thread of this process this priority. The thread must not have ended. Returns false if that fails.
    pub fn set_for(self, thread: &ThreadName) -> bool {
        match self {
            // The library also sets the nice value of the thread that calls it. So a thread of its own calls it.
            LanePriority::Idle => std::thread::scope(|scope| {
                let native = thread.native;
                let setter = std::thread::Builder::new().name("priority".into());
                let set = setter.spawn_scoped(scope, move || set_idle(native));
                set.is_ok_and(|set| set.join().is_ok_and(|set| set.is_ok()))
            }),
            LanePriority::Low => setpriority_process(Some(thread.system), LESS_URGENT).is_ok(),
        }
    }
}

fn set_idle(thread: ThreadId) -> Result<(), thread_priority::Error> {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread, ThreadPriority::Min, idle)
}

/// Names of a thread: that of the thread library and that of the system.
pub(crate) struct ThreadName {
    native: ThreadId,
    system: Pid,
}

impl ThreadName {
    /// The names of the calling thread.
    pub fn current() -> ThreadName {
        ThreadName { native: thread_native_id(), system: gettid() }
    }

    /// Processor time that the thread has used, if the system tells it.
    pub fn processor_time(&self) -> Option<Duration> {
        // The first field is in nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
        let path = format!("/proc/self/task/{}/schedstat", self.system.as_raw_nonzero());
        let nanoseconds = std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }
}

impl fmt::Display for ActivePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ActivePriority::Auto => "auto",
            ActivePriority::Idle => "idle",
            ActivePriority::Low => "low",
        })
    }
}

impl FromStr for ActivePriority {
    type Err = String;

    fn from_str(text: &str) -> Result<ActivePriority, String> {
        match text {
            "auto" => Ok(ActivePriority::Auto),
            "idle" => Ok(ActivePriority::Idle),
            "low" => Ok(ActivePriority::Low),
            other => Err(format!("there is no priority '{other}'; there are auto, idle and low")),
        }
    }
}

/// The nice value and the policy of a thread: fields 19 and 41 of its stat. The policy of an idle thread is 5. `task` is the
/// path of the thread below `/proc`.
#[cfg(test)]
pub(crate) fn nice_and_policy(task: &str) -> [Option<i32>; 2] {
    let stat = std::fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    // The name of the thread, in parentheses, may have spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    [16, 38].map(|at| fields.get(at)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_has_the_priority_that_it_was_given() {
        let with = |priority: LanePriority| {
            std::thread::spawn(move || {
                priority.set();
                nice_and_policy("thread-self")
            })
            .join()
        };
        assert!(matches!(with(LanePriority::Idle), Ok([_, Some(5)])));
        assert_eq!(with(LanePriority::Low).ok(), Some([Some(10), Some(0)]));
        // A lane of low priority becomes idle at the first read.
        let after = std::thread::spawn(move || {
            LanePriority::Low.set();
            LanePriority::Idle.set();
            nice_and_policy("thread-self")
        });
        assert!(matches!(after.join(), Ok([_, Some(5)])));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_thread_can_be_lowered_and_the_caller_stays_as_it_is() {
        let ((names, named), (ends, end)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let other = std::thread::spawn(move || {
            let _ = names.send(ThreadName::current());
            let _ = end.recv();
        });
        let lowered = std::thread::spawn(move || {
            let other = named.recv().ok()?;
            // The caller has a nice value of its own.
            setpriority_process(None, 5).ok()?;
            let before = nice_and_policy("thread-self");
            let set = LanePriority::Idle.set_for(&other);
            let task = format!("self/task/{}", other.system.as_raw_nonzero());
            Some((set, before, nice_and_policy("thread-self"), nice_and_policy(&task)[1]))
        })
        .join();
        drop(ends);
        let normal = [Some(5), Some(0)];
        assert_eq!(lowered.ok().flatten(), Some((true, normal, normal, Some(5))));
        assert!(other.join().is_ok());
    }

    #[test]
    fn lanes_are_idle_only_while_somebody_reads() {
        let of_lane = |one: ActivePriority| [false, true].map(|lately| one.of_lane(lately));
        assert_eq!(of_lane(ActivePriority::Auto), [LanePriority::Low, LanePriority::Idle]);
        assert_eq!(of_lane(ActivePriority::Idle), [LanePriority::Idle; 2]);
        assert_eq!(of_lane(ActivePriority::Low), [LanePriority::Low; 2]);
        for one in [ActivePriority::Auto, ActivePriority::Idle, ActivePriority::Low] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
