//! Work that this node does together with others: what has come for it, and what became of it.

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
    /// Room in memory for a large one, until it was taken in.
    pub _room: Room,
}

/// What happens to a member while it waits.
pub(crate) enum Event {
    /// A value of another member.
    Arrived(Message),
    /// A value was handed over, or could not be.
    Told(Result<(), RunError>),
    /// Another member said whether it is there; nothing if it did not.
    Answered(Rank, Option<Reply>),
}

/// Where values go for this node's member, and what is told of those it sends.
pub(crate) struct Inbox {
    /// The file that the work is about: who sends must have a grant for it.
    pub file: String,
    pub events: Sender<Event>,
    /// Values that wait.
    waiting: AtomicUsize,
}

impl Inbox {
    /// Takes a value in.
    pub fn put(&self, message: Message) -> Answer<()> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_EARLY {
            self.taken();
            return Err(Refusal::new(ErrorKind::Busy, "too many values wait for this member; try again"));
        }
        // Nobody takes it any more if the work has just ended.
        let _ = self.events.send(Event::Arrived(message));
        Ok(())
    }

    /// A value waits no longer.
    pub fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

enum State {
    Here(Arc<Inbox>),
    /// It failed, and others may still ask why.
    Gone(ErrorBody, Instant),
}

/// What is known of one piece of work.
pub(crate) enum Known {
    Here(Arc<Inbox>),
    Gone(ErrorBody),
    Nothing,
}

/// All work of this node with others, by the names of the jobs.
#[derive(Default)]
pub(crate) struct GroupWork(Mutex<BTreeMap<String, State>>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GroupWork {
    /// Begins a job about a file.
    pub fn begin(self: &Arc<Self>, job: &str, file: &str) -> Answer<Taking> {
        let mut jobs = locked(&self.0);
        if jobs.contains_key(job) {
            return Err(Refusal::new(ErrorKind::Conflict, "this work is being done already; ask anew"));
        }
        jobs.retain(|_, state| !matches!(state, State::Gone(_, since) if since.elapsed() > REMEMBERED));
        let (events, happened) = channel();
        let inbox = Arc::new(Inbox { file: file.to_owned(), events, waiting: AtomicUsize::new(0) });
        jobs.insert(job.to_owned(), State::Here(inbox.clone()));
        Ok(Taking { work: self.clone(), job: job.to_owned(), inbox, happened: Mutex::new(happened) })
    }

    pub fn known(&self, job: &str) -> Known {
        match locked(&self.0).get(job) {
            Some(State::Here(inbox)) => Known::Here(inbox.clone()),
            Some(State::Gone(why, _)) => Known::Gone(why.clone()),
            None => Known::Nothing,
        }
    }
}

/// Taking part in a job; when dropped, the node knows of it no more, unless it [failed](Taking::fail).
pub(crate) struct Taking {
    work: Arc<GroupWork>,
    pub job: String,
    pub inbox: Arc<Inbox>,
    pub happened: Mutex<Receiver<Event>>,
}

impl Taking {
    /// The job failed here: others who ask are told why for a while. The first reason stays.
    pub fn fail(&self, why: ErrorBody) {
        let mut jobs = locked(&self.work.0);
        let gone = jobs.values().filter(|state| matches!(state, State::Gone(..))).count();
        if gone < MAX_GONE
            && let Some(state @ State::Here(_)) = jobs.get_mut(&self.job)
        {
            *state = State::Gone(why, Instant::now());
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let mut jobs = locked(&self.work.0);
        if let Some(State::Here(_)) = jobs.get(&self.job) {
            jobs.remove(&self.job);
        }
    }
}
