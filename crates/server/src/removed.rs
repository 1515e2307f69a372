//! Objects that were removed on this node. A client that still has a grant to write one could make it again. No file
//! would refer to it, and it would take space until the grant expires. So this is refused. A file never has objects of
//! an earlier one.
//!
//! The list is in memory. After a restart, or after too many removals, such objects are removed once the grants have
//! expired (`collect`).

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_store::ObjectId;

use crate::limits::MAX_REMOVED;

/// Objects that were removed while a grant may still write them.
pub(crate) struct Removed {
    state: Mutex<State>,
    /// Time for which a grant to write is valid.
    writable: Duration,
}

#[derive(Default)]
struct State {
    of: HashSet<Arc<ObjectId>>,
    oldest_first: VecDeque<(Instant, Arc<ObjectId>)>,
}

impl Removed {
    pub fn new(writable: Duration) -> Removed {
        Removed { state: Mutex::default(), writable }
    }

    /// Records the removal of an object.
    pub fn add(&self, id: &ObjectId, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = Arc::new(id.clone());
        if state.of.insert(id.clone()) {
            state.oldest_first.push_back((now, id));
        }
        while let Some((at, oldest)) = state.oldest_first.front().cloned()
            && (state.of.len() > MAX_REMOVED || now.saturating_duration_since(at) > self.writable)
        {
            state.of.remove(&oldest);
            state.oldest_first.pop_front();
        }
    }

    /// Whether an object was removed.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).of.contains(id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn id(number: usize) -> ObjectId {
        ObjectId::new(&format!("file-{number}")).unwrap()
    }

    #[test]
    fn those_of_some_hours_are_known_and_no_more_than_there_is_room_for() {
        let (begun, hour) = (Instant::now(), Duration::from_secs(3600));
        let removed = Removed::new(2 * hour);
        removed.add(&id(0), begun);
        removed.add(&id(0), begun + hour);
        removed.add(&id(1), begun + hour);
        assert!(removed.has(&id(0)) && removed.has(&id(1)) && !removed.has(&id(2)));
        removed.add(&id(2), begun + 3 * hour - Duration::from_secs(1));
        assert!(!removed.has(&id(0)) && removed.has(&id(1)));
        (3..3 + MAX_REMOVED).for_each(|number| removed.add(&id(number), begun + 3 * hour));
        assert!(!removed.has(&id(2)) && removed.has(&id(3)));
        assert_eq!(removed.state.lock().unwrap().oldest_first.len(), MAX_REMOVED);
    }
}
