//! Threads for checks. The priority of a thread can be lowered while it works. Such a thread ends after its job, because a
//! thread may not raise its priority again.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_runtime::thread_time;
use tokio::runtime::Handle;

use crate::contention::priority::{LanePriority, ThreadName};

/// Time after which a thread without a job ends.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Stack of a thread, in bytes: as for threads of the runtime. The bounds of recursion in requests are made for it.
const STACK_BYTES: usize = 2 << 20;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs. The owner of the pool bounds the number of jobs. There may be a few more threads, which end after
/// [`IDLE_TIME`].
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
    /// Processor time of the thread when its job began, and the time then.
    begun: (Duration, Instant),
    lowered: Option<LanePriority>,
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

    /// Processor time that a job has used, or the time since it began if the system does not tell. `None` if the job has
    /// not begun, or has ended.
    pub fn used(&self, number: u64) -> Option<Duration> {
        let state = self.lock();
        let worker = state.working.get(&number)?;
        let (processor, at) = worker.begun;
        // A thread in the map has not ended, because it leaves the map first.
        let now = worker.thread.processor_time().filter(|now| !now.is_zero());
        Some(now.map_or(at.elapsed(), |now| now.saturating_sub(processor)))
    }

    /// Gives the thread of a job a lower priority. Returns whether it has it.
    pub fn lower(&self, number: u64, priority: LanePriority) -> bool {
        let mut state = self.lock();
        let Some(worker) = state.working.get_mut(&number) else { return false };
        if worker.lowered != Some(priority) && priority.set_for(&worker.thread) {
            worker.lowered = Some(priority);
        }
        worker.lowered.is_some()
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
            let begun = (thread_time(), Instant::now());
            let worker = Worker { thread: ThreadName::current(), begun, lowered: None };
            self.lock().working.insert(number, worker);
            // The owner of the job notices a panic by the answer that does not come.
            let _ = catch_unwind(AssertUnwindSafe(job));
            let worker = self.lock().working.remove(&number);
            if worker.is_none_or(|worker| worker.lowered.is_some()) {
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
