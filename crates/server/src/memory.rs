//! Bounded memory for one kind of requests, shared between principals.
//!
//! A request takes [`Room`] before it uses the memory, and returns it on drop, also when it is cancelled. A principal
//! may have at most [`PLACES_FOR_EACH_FREE`] bytes for each free byte, so another principal always finds some.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::contention::sample::Sampler;
use crate::error::{Answer, Refusal};
use crate::limits::{DECODE_SHARE, MIN_DECODE_MEMORY, PLACES_FOR_EACH_FREE};

/// Seconds after which a client should try again if there was no memory.
const RETRY_SECONDS: u32 = 1;

/// Principal that has all memory in a test.
#[cfg(test)]
const ALL: &str = "all memory";

/// Memory for one purpose.
pub(crate) struct Memory {
    most: u64,
    /// Its purpose, for error messages.
    what: &'static str,
    taken: Mutex<Taken>,
    /// Notified when memory is returned, for tasks.
    freed: Notify,
    /// Notified when memory is returned, for threads.
    freed_here: Condvar,
    /// Locks that keep the waiting tasks of each principal in order.
    lines: Mutex<HashMap<Arc<str>, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Default)]
struct Taken {
    all: u64,
    of: HashMap<Arc<str>, u64>,
}

impl Memory {
    /// Creates a memory of `most` bytes.
    pub fn new(most: usize, what: &'static str) -> Arc<Memory> {
        Arc::new(Memory {
            most: most as u64,
            what,
            taken: Mutex::default(),
            freed: Notify::new(),
            freed_here: Condvar::new(),
            lines: Mutex::default(),
        })
    }

    /// Empty room of a principal, which can grow.
    pub fn room(self: &Arc<Self>, principal: &Arc<str>) -> Room {
        Room { memory: self.clone(), principal: principal.clone(), bytes: 0 }
    }

    /// Its purpose, for messages.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Free bytes.
    pub fn free(&self) -> u64 {
        self.most - self.taken().all
    }

    /// Takes all memory once all of it is free.
    #[cfg(test)]
    pub async fn all(self: &Arc<Self>) -> Room {
        while !self.take_all() {
            tokio::task::yield_now().await;
        }
        Room { memory: self.clone(), principal: Arc::from(ALL), bytes: self.most }
    }

    #[cfg(test)]
    fn take_all(&self) -> bool {
        let mut taken = self.taken();
        let none = taken.all == 0;
        if none {
            taken.all = self.most;
            taken.of.insert(Arc::from(ALL), self.most);
        }
        none
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Largest number of bytes that a principal can have while all others have none.
    pub fn share(&self) -> u64 {
        let places = PLACES_FOR_EACH_FREE as u64;
        self.most / (places + 1) * places
    }

    fn take(&self, taken: &mut Taken, principal: &Arc<str>, bytes: u64) -> bool {
        let own = taken.of.get(principal).copied().unwrap_or(0).saturating_add(bytes);
        let Some(free) = (self.most - taken.all).checked_sub(bytes) else { return false };
        if own > free.saturating_mul(PLACES_FOR_EACH_FREE as u64) {
            return false;
        }
        taken.all += bytes;
        taken.of.insert(principal.clone(), own);
        true
    }

    /// Lock that keeps the waiting tasks of a principal in order.
    fn line(&self, principal: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(principal).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(principal.clone(), Arc::downgrade(&line));
        line
    }

    fn give_back(&self, principal: &Arc<str>, bytes: u64) {
        let mut taken = self.taken();
        taken.all -= bytes;
        if let Some(own) = taken.of.get_mut(principal) {
            *own -= bytes;
            if *own == 0 {
                taken.of.remove(principal);
            }
        }
        drop(taken);
        self.freed.notify_waiters();
        self.freed_here.notify_all();
    }
}

/// Bytes of memory for decoded chunks: the option, or a share of the machine's memory.
pub(crate) fn chunk_memory(configured: Option<u64>) -> usize {
    if let Some(configured) = configured {
        return usize::try_from(configured).unwrap_or(usize::MAX);
    }
    let machine = Sampler::new(Path::new("/proc")).sample().memory.map(|(_, all)| all);
    // The bound of the container's control group. Without a bound the file has a word, which does not parse.
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    let all = machine.into_iter().chain(group).min().unwrap_or(0) / DECODE_SHARE;
    usize::try_from(all).unwrap_or(usize::MAX).max(MIN_DECODE_MEMORY)
}

/// Memory of a request. Dropping it returns the memory.
pub(crate) struct Room {
    memory: Arc<Memory>,
    principal: Arc<str>,
    bytes: u64,
}

impl Room {
    /// Takes more memory without a wait.
    ///
    /// # Errors
    /// Returns an error of the kind `Busy` if there is too little free memory, or if it is reserved for others.
    pub fn grow(&mut self, bytes: usize) -> Answer<()> {
        let bytes = bytes as u64;
        if !self.memory.take(&mut self.memory.taken(), &self.principal, bytes) {
            return Err(self.refusal());
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Returns this many bytes, or all if the room has fewer.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = (bytes as u64).min(self.bytes);
        self.memory.give_back(&self.principal, bytes);
        self.bytes -= bytes;
    }

    /// Takes more memory on a thread, and waits for it at most for `time`. More bytes than the largest share of a
    /// principal count as that share. Returns whether it was taken.
    pub fn grow_on_thread(&mut self, bytes: u64, time: Duration) -> bool {
        let bytes = bytes.min(self.memory.share());
        let lacks = |taken: &mut Taken| !self.memory.take(taken, &self.principal, bytes);
        let waited = self.memory.freed_here.wait_timeout_while(self.memory.taken(), time, lacks);
        let has = !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        if has {
            self.bytes += bytes;
        }
        has
    }

    /// Takes more memory, and waits for it at most for `time`.
    ///
    /// # Errors
    /// Returns the error of [`grow`](Room::grow) after this time.
    pub async fn grow_within(&mut self, bytes: usize, time: Duration) -> Answer<()> {
        let memory = self.memory.clone();
        let line = memory.line(&self.principal);
        let more = async {
            // In the order of arrival, so that small requests do not pass a large one of the same principal for ever.
            let _first = line.lock().await;
            loop {
                let mut freed = std::pin::pin!(memory.freed.notified());
                // From here on every return of memory is noticed.
                freed.as_mut().enable();
                if self.grow(bytes).is_ok() {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(time, more).await.map_err(|_| self.refusal())
    }

    /// The error without memory.
    fn refusal(&self) -> Refusal {
        let text = format!("the node has no memory for more {} of {} now", self.memory.what, self.principal);
        Refusal::busy(&text, RETRY_SECONDS)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.give_back(&self.principal, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
