//! Jobs that this node does together with other nodes: their values and outcomes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gristmill_collective::{Rank, Reply};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::ErrorBody;

use crate::error::{Answer, Refusal};
use crate::limits::{MAX_EARLY, MAX_GONE, REMEMBERED};
use crate::memory::Room;

/// A value that a member sent.
pub(crate) struct Message {
    pub number: u64,
    pub from: Rank,
    pub value: Vec<u8>,
    /// Room in memory for a large value, until the member has taken it.
    pub _room: Room,
}

/// Event for a member that waits.
pub(crate) enum Event {
    /// A value of another member.
    Arrived(Message),
    /// A value was sent, or could not be sent.
    Sent(Result<(), RunError>),
    /// Another member answered whether it knows the job. `None` without an answer.
    Answered(Rank, Option<Reply>),
}

/// Queue of the events of this node's member.
pub(crate) struct Inbox {
    /// File of the job. A sender must have a grant for it.
    pub file: String,
    pub events: Sender<Event>,
    /// Number of values that wait.
    waiting: AtomicUsize,
}

impl Inbox {
    /// Adds a value of another member.
    pub fn put(&self, message: Message) -> Answer<()> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_EARLY {
            self.taken();
            return Err(Refusal::new(ErrorKind::Busy, "too many values wait for this member; try again"));
        }
        // The value is dropped if the work has just ended.
        let _ = self.events.send(Event::Arrived(message));
        Ok(())
    }

    /// Counts a value that was taken.
    pub fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

enum State {
    Running(Arc<Inbox>),
    /// The job failed at this time. Other members may still ask for the reason.
    Failed(ErrorBody, Instant),
}

/// State of a job, for other members.
pub(crate) enum JobState {
    Running(Arc<Inbox>),
    Failed(ErrorBody),
    Unknown,
}

/// All jobs of this node with other nodes, by their names.
#[derive(Default)]
pub(crate) struct GroupWork(Mutex<BTreeMap<String, State>>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GroupWork {
    /// Begins a job over a file. It fails if the job is running or has failed here.
    pub fn begin(self: &Arc<Self>, job: &str, file: &str) -> Answer<Participation> {
        let mut jobs = locked(&self.0);
        if jobs.contains_key(job) {
            return Err(Refusal::new(
                ErrorKind::Conflict,
                "this job was begun already; send the request again",
            ));
        }
        jobs.retain(|_, state| !matches!(state, State::Failed(_, since) if since.elapsed() > REMEMBERED));
        let (events, happened) = channel();
        let inbox = Arc::new(Inbox { file: file.to_owned(), events, waiting: AtomicUsize::new(0) });
        jobs.insert(job.to_owned(), State::Running(inbox.clone()));
        Ok(Participation { work: self.clone(), job: job.to_owned(), inbox, happened: Mutex::new(happened) })
    }

    pub fn job_state(&self, job: &str) -> JobState {
        match locked(&self.0).get(job) {
            Some(State::Running(inbox)) => JobState::Running(inbox.clone()),
            Some(State::Failed(why, _)) => JobState::Failed(why.clone()),
            None => JobState::Unknown,
        }
    }
}

/// This node's part in a job. When it is dropped the node forgets the job, unless the job
/// [failed](Participation::fail).
pub(crate) struct Participation {
    work: Arc<GroupWork>,
    pub job: String,
    pub inbox: Arc<Inbox>,
    pub happened: Mutex<Receiver<Event>>,
}

impl Participation {
    /// Records that the job failed here. Other members get the first reason for [`REMEMBERED`].
    pub fn fail(&self, why: ErrorBody) {
        let mut jobs = locked(&self.work.0);
        let gone = jobs.values().filter(|state| matches!(state, State::Failed(..))).count();
        if gone < MAX_GONE
            && let Some(state @ State::Running(_)) = jobs.get_mut(&self.job)
        {
            *state = State::Failed(why, Instant::now());
        }
    }
}

impl Drop for Participation {
    fn drop(&mut self) {
        let mut jobs = locked(&self.work.0);
        if let Some(State::Running(_)) = jobs.get(&self.job) {
            jobs.remove(&self.job);
        }
    }
}
