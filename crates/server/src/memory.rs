//! Memory that requests of a kind may have, in shares for each principal.
//!
//! Room is taken before the memory is used and given back when whoever has it is dropped, so also when a request is
//! cancelled. However much one principal takes, the next finds some: nobody may have more than
//! [`PLACES_FOR_EACH_FREE`] bytes for each that is free.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::contention::sample::Sampler;
use crate::error::{Answer, Refusal};
use crate::limits::{DECODE_SHARE, MIN_DECODE_MEMORY, PLACES_FOR_EACH_FREE};

/// When somebody who found no memory should try again, in seconds.
const RETRY_SECONDS: u32 = 1;

/// Who has all memory.
#[cfg(test)]
const ALL: &str = "all memory";

/// Memory for one purpose.
pub(crate) struct Memory {
    most: u64,
    /// What it is for, as an error says it.
    what: &'static str,
    taken: Mutex<Taken>,
    /// Something was given back: for those who wait in a task, and for threads.
    freed: Notify,
    freed_here: Condvar,
    /// Of those who wait in a task.
    lines: Mutex<HashMap<Arc<str>, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Default)]
struct Taken {
    all: u64,
    of: HashMap<Arc<str>, u64>,
}

impl Memory {
    /// So many bytes.
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

    /// Room of a principal, of which it takes more as it needs it.
    pub fn room(self: &Arc<Self>, who: &Arc<str>) -> Room {
        Room { memory: self.clone(), who: who.clone(), bytes: 0 }
    }

    /// What it is for, as messages name it.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Bytes that nobody has.
    pub fn free(&self) -> u64 {
        self.most - self.taken().all
    }

    /// Takes all of it once nobody has any.
    #[cfg(test)]
    pub async fn all(self: &Arc<Self>) -> Room {
        while !self.take_all() {
            tokio::task::yield_now().await;
        }
        Room { memory: self.clone(), who: Arc::from(ALL), bytes: self.most }
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

    /// The most that a principal can have while nobody else has any.
    fn share(&self) -> u64 {
        let places = PLACES_FOR_EACH_FREE as u64;
        self.most / (places + 1) * places
    }

    fn take(&self, taken: &mut Taken, who: &Arc<str>, bytes: u64) -> bool {
        let own = taken.of.get(who).copied().unwrap_or(0).saturating_add(bytes);
        let Some(free) = (self.most - taken.all).checked_sub(bytes) else { return false };
        if own > free.saturating_mul(PLACES_FOR_EACH_FREE as u64) {
            return false;
        }
        taken.all += bytes;
        taken.of.insert(who.clone(), own);
        true
    }

    /// Where those of a principal wait who want more.
    fn line(&self, who: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(who).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(who.clone(), Arc::downgrade(&line));
        line
    }

    fn give_back(&self, who: &Arc<str>, bytes: u64) {
        let mut taken = self.taken();
        taken.all -= bytes;
        if let Some(own) = taken.of.get_mut(who) {
            *own -= bytes;
            if *own == 0 {
                taken.of.remove(who);
            }
        }
        drop(taken);
        self.freed.notify_waiters();
        self.freed_here.notify_all();
    }
}

/// Bytes of memory for chunks that are decoded: what was said, or a share of what the machine has.
pub(crate) fn chunk_memory(said: Option<u64>) -> usize {
    if let Some(said) = said {
        return usize::try_from(said).unwrap_or(usize::MAX);
    }
    let machine = Sampler::new(Path::new("/proc")).sample().memory.map(|(_, all)| all);
    // Of the group that a container is in. Without a bound it says so in a word.
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    let all = machine.into_iter().chain(group).min().unwrap_or(0) / DECODE_SHARE;
    usize::try_from(all).unwrap_or(usize::MAX).max(MIN_DECODE_MEMORY)
}

/// What a request has of the memory; given back when dropped.
pub(crate) struct Room {
    memory: Arc<Memory>,
    who: Arc<str>,
    bytes: u64,
}

impl Room {
    /// Takes more, at once.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: there is not so much, or what there is is for others.
    pub fn grow(&mut self, bytes: usize) -> Answer<()> {
        let bytes = bytes as u64;
        if !self.memory.take(&mut self.memory.taken(), &self.who, bytes) {
            return Err(self.refusal());
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Gives so many bytes back.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = (bytes as u64).min(self.bytes);
        self.memory.give_back(&self.who, bytes);
        self.bytes -= bytes;
    }

    /// Takes more on a thread, waiting for it so long at most; what is more than a share counts as one, which the principal
    /// then has alone. Says whether it has it.
    pub fn grow_on_thread(&mut self, bytes: u64, time: Duration) -> bool {
        let bytes = bytes.min(self.memory.share());
        let lacks = |taken: &mut Taken| !self.memory.take(taken, &self.who, bytes);
        let waited = self.memory.freed_here.wait_timeout_while(self.memory.taken(), time, lacks);
        let has = !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        if has {
            self.bytes += bytes;
        }
        has
    }

    /// Takes more, waiting for it so long at most.
    ///
    /// # Errors
    /// As [`grow`](Room::grow), after this time.
    pub async fn grow_within(&mut self, bytes: usize, time: Duration) -> Answer<()> {
        let memory = self.memory.clone();
        let line = memory.line(&self.who);
        let more = async {
            // Those of one principal in the order in which they came, so that small ones do not pass a large one for ever.
            let _first = line.lock().await;
            loop {
                let mut freed = std::pin::pin!(memory.freed.notified());
                // From here on nothing that is freed is missed.
                freed.as_mut().enable();
                if self.grow(bytes).is_ok() {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(time, more).await.map_err(|_| self.refusal())
    }

    /// That there is no memory for more.
    fn refusal(&self) -> Refusal {
        let text = format!("the node has no memory for more {} of {} now", self.memory.what, self.who);
        Refusal::busy(&text, RETRY_SECONDS)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.give_back(&self.who, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_runtime::ErrorKind;
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn who(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn one_has_three_quarters_and_the_next_finds_some() {
        let memory = Memory::new(1000, "tests");
        let mut first = memory.room(&who("first"));
        first.grow(750).unwrap();
        let refusal = first.grow(1).unwrap_err();
        assert_eq!(refusal.0.kind, ErrorKind::Busy.name());
        assert!(refusal.0.message.contains("no memory for more tests of first"), "{refusal:?}");
        // Another room of the same principal is no way around it.
        assert!(memory.room(&who("first")).grow(1).is_err());
        let mut second = memory.room(&who("second"));
        second.grow(187).unwrap();
        assert!(second.grow(1).is_err());
        assert!(memory.room(&who("third")).grow(1).is_ok());
        drop(first);
        second.grow(500).unwrap();
        drop(second);
        assert_eq!(memory.free(), 1000);
        assert!(memory.taken().of.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_has_what_is_given_back_or_is_refused_in_time() {
        let memory = Memory::new(100, "tests");
        let mut held = memory.room(&who("a"));
        held.grow(70).unwrap();
        let mut waits = memory.room(&who("a"));
        assert!(waits.grow_within(20, SECOND).await.is_err());
        let waiting = tokio::spawn(async move {
            waits.grow_within(20, 10 * SECOND).await.unwrap();
            waits
        });
        tokio::time::sleep(SECOND).await;
        drop(held);
        let waits = waiting.await.unwrap();
        assert_eq!(memory.free(), 80);
        drop(waits);
        // Who stops waiting leaves nothing behind.
        let mut held = memory.room(&who("a"));
        held.grow(75).unwrap();
        let mut gone = memory.room(&who("a"));
        assert!(tokio::time::timeout(SECOND, gone.grow_within(20, 10 * SECOND)).await.is_err());
        drop((held, gone));
        assert_eq!(memory.free(), 100);
    }

    #[test]
    fn a_thread_has_what_is_given_back_and_what_is_too_much_alone() {
        let memory = Memory::new(100, "tests");
        let mut all = memory.room(&who("a"));
        assert!(all.grow_on_thread(1000, Duration::ZERO));
        assert_eq!(memory.free(), 25);
        let mut other = memory.room(&who("a"));
        assert!(!other.grow_on_thread(1, Duration::ZERO));
        let waiting = std::thread::spawn(move || other.grow_on_thread(50, Duration::from_secs(60)));
        drop(all);
        assert!(waiting.join().unwrap());
        assert_eq!(memory.free(), 100);
    }

    proptest! {
        #[test]
        fn all_stay_within_and_everything_comes_back(
            steps in prop::collection::vec((0usize..4, 0usize..400, any::<bool>()), 0..100),
        ) {
            let memory = Memory::new(1000, "tests");
            let mut rooms: Vec<Room> = (0..4).map(|n| memory.room(&who(&n.to_string()))).collect();
            for (n, bytes, drops) in steps {
                if drops {
                    rooms[n] = memory.room(&who(&n.to_string()));
                } else {
                    let (before, free) = (rooms[n].bytes, memory.free());
                    let taken = rooms[n].grow(bytes).is_ok();
                    prop_assert_eq!(memory.free(), if taken { free - bytes as u64 } else { free });
                    let after = free.checked_sub(bytes as u64);
                    prop_assert_eq!(taken, after.is_some_and(|free| before + bytes as u64 <= 3 * free));
                }
                let all: u64 = rooms.iter().map(|room| room.bytes).sum();
                prop_assert_eq!(all + memory.free(), 1000);
            }
            drop(rooms);
            prop_assert_eq!(memory.free(), 1000);
        }
    }
}
