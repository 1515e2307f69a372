//! Threads for checks. The priority of a thread can be lowered while it works, and then it ends after its job, because
//! a thread may not raise its priority again.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_runtime::thread_time;
use tokio::runtime::Handle;

use crate::contention::priority::{LanePriority, ThreadName};

/// Time after which a thread without a job ends.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Stack of a thread, in bytes: as for threads of the runtime. The bounds of recursion in requests are made for it.
const STACK_BYTES: usize = 2 << 20;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs. The owner of the pool bounds the number of jobs, and so of threads.
pub(super) struct Pool {
    state: Mutex<State>,
    /// Notified when a job waits, or when the pool is closed.
    begun: Condvar,
    /// Runtime of the code in jobs.
    runtime: Handle,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Job)>,
    /// Threads that wait for a job.
    free: usize,
    /// Threads at work, by the number of their job.
    working: HashMap<u64, Worker>,
    next: u64,
    closed: bool,
}

struct Worker {
    thread: ThreadName,
    /// Processor time of the thread when its job began.
    begun: Duration,
    lowered: bool,
}

impl Pool {
    pub fn new(runtime: Handle) -> Arc<Pool> {
        Arc::new(Pool { state: Mutex::default(), begun: Condvar::new(), runtime })
    }

    /// Begins a job on a free thread, or on a new one. Returns the number of the job. A panic ends the job only.
    ///
    /// # Errors
    /// Returns an error if no thread is free and the system starts no more.
    pub fn begin(self: &Arc<Self>, job: Job) -> io::Result<u64> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        if state.free > state.waiting.len() {
            state.waiting.push_back((number, job));
            drop(state);
            self.begun.notify_one();
            return Ok(number);
        }
        drop(state);
        let pool = self.clone();
        let thread = std::thread::Builder::new().name("check".into()).stack_size(STACK_BYTES);
        thread.spawn(move || pool.work(number, job))?;
        Ok(number)
    }

    /// Gives the thread of a job a lower priority if the job has used this much processor time. Returns the time that is
    /// left until then, or `None` if the priority is lower now.
    pub fn lower_after(&self, number: u64, time: Duration, priority: LanePriority) -> Option<Duration> {
        let mut state = self.lock();
        // A job that is not in the map has not begun or has just ended.
        let Some(worker) = state.working.get_mut(&number) else { return Some(time) };
        // A thread in the map has not ended, because it leaves the map first.
        let used = worker.thread.processor_time().map(|now| now.saturating_sub(worker.begun));
        if let Some(left) = used.and_then(|used| time.checked_sub(used)).filter(|left| !left.is_zero()) {
            return Some(left);
        }
        priority.set_for(&worker.thread);
        worker.lowered = true;
        None
    }

    /// Ends the threads after their jobs.
    pub fn close(&self) {
        self.lock().closed = true;
        self.begun.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, first: u64, job: Job) {
        let _context = self.runtime.enter();
        let mut next = Some((first, job));
        while let Some((number, job)) = next {
            let worker = Worker { thread: ThreadName::current(), begun: thread_time(), lowered: false };
            self.lock().working.insert(number, worker);
            // The owner of the job notices a panic by the answer that does not come.
            let _ = catch_unwind(AssertUnwindSafe(job));
            let worker = self.lock().working.remove(&number);
            if worker.is_none_or(|worker| worker.lowered) {
                return;
            }
            next = self.wait();
        }
    }

    /// Waits for the next job. `None` if none comes, or if the pool is closed.
    fn wait(&self) -> Option<(u64, Job)> {
        let mut state = self.lock();
        state.free += 1;
        let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let waited = self.begun.wait_timeout_while(state, IDLE_TIME, idle);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.free -= 1;
        state.waiting.pop_front()
    }
}
