//! How many requests of a kind a node has, at work or waiting.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{PLACES_FOR_EACH_FREE, all_places};

/// There is no place for a principal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// All are taken.
    #[error("has {places} {what} already, as many as it takes")]
    All {
        /// How many there are.
        places: usize,
        /// The requests.
        what: &'static str,
    },
    /// Those that are free are for others.
    #[error("has {places} {what} of {who} already and keeps its other places for others")]
    ForOthers {
        /// How many the principal has.
        places: usize,
        /// The requests.
        what: &'static str,
        /// The principal.
        who: Arc<str>,
    },
}

/// A place among the requests of a kind; given back when dropped.
pub(crate) struct Seat {
    taken: Arc<Mutex<Taken>>,
    who: Arc<str>,
}

/// The places that are taken: all of them, and those of each principal that has some.
#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<Arc<str>, usize>,
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        if let Some(places) = taken.of.get_mut(&self.who) {
            *places = places.saturating_sub(1);
            if *places == 0 {
                taken.of.remove(&self.who);
            }
        }
    }
}

/// The places for requests of a kind. Nobody waits for one: who finds none is told that the node is busy.
pub(crate) struct Seats {
    taken: Arc<Mutex<Taken>>,
    refused: AtomicU64,
    most: usize,
    /// The requests, as an error names them.
    what: &'static str,
}

impl Seats {
    /// Places of which one principal alone may have so many. There are a third more, so that others find some: nobody
    /// may have more than [`PLACES_FOR_EACH_FREE`] for each that is free.
    pub fn new(most_of_one: usize, what: &'static str) -> Seats {
        let most = all_places(most_of_one);
        Seats { taken: Arc::default(), refused: AtomicU64::new(0), most, what }
    }

    /// Takes a place for a principal.
    ///
    /// # Errors
    /// There is none for it.
    pub fn take(&self, who: &Arc<str>) -> Result<Seat, Full> {
        let mut taken = lock(&self.taken);
        let (all, own) = (taken.all, taken.of.get(who).copied().unwrap_or(0));
        let free = self.most.saturating_sub(all);
        if own >= free.saturating_mul(PLACES_FOR_EACH_FREE) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(match free {
                0 => Full::All { places: all, what: self.what },
                _ => Full::ForOthers { places: own, what: self.what, who: who.clone() },
            });
        }
        taken.all += 1;
        *taken.of.entry(who.clone()).or_default() += 1;
        Ok(Seat { taken: self.taken.clone(), who: who.clone() })
    }

    /// The requests, as messages name them.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// How many were refused since the node started.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes all places once nobody has one.
    #[cfg(test)]
    pub async fn all(&self) -> Vec<Seat> {
        while lock(&self.taken).all > 0 {
            tokio::task::yield_now().await;
        }
        lock(&self.taken).all = self.most;
        let seat = || Seat { taken: self.taken.clone(), who: Arc::from("all places") };
        std::iter::repeat_with(seat).take(self.most).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn fill(seats: &Seats, who: &str) -> Vec<Seat> {
        let who = Arc::from(who);
        std::iter::from_fn(|| seats.take(&who).ok()).collect()
    }

    #[test]
    fn one_alone_has_what_was_promised_and_others_find_some() {
        for most_of_one in [3, 64, 1000, 4096] {
            let seats = Seats::new(most_of_one, "folds");
            let first = fill(&seats, "first");
            assert_eq!(first.len(), most_of_one);
            let refused = seats.take(&Arc::from("first")).err().unwrap();
            assert!(matches!(&refused, Full::ForOthers { who, .. } if &**who == "first"), "{refused}");
            let second = fill(&seats, "second");
            assert!(!second.is_empty());
            // Given back, they are there again.
            drop((first, second));
            assert_eq!(fill(&seats, "second").len(), most_of_one);
        }
        let seats = Seats::new(4096, "folds");
        let held: Vec<Vec<Seat>> = (0..5).map(|n| fill(&seats, &format!("{n}"))).collect();
        assert!(held.iter().all(|places| !places.is_empty()), "each of five floods leaves some to the next");
    }

    #[test]
    fn all_places_are_given_back() {
        let seats = Seats::new(3, "uploads");
        let all: Vec<Vec<Seat>> = ["one", "other", "third"].map(|who| fill(&seats, who)).into();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 0]);
        let refused = seats.take(&Arc::from("fourth")).err().unwrap();
        assert_eq!(refused, Full::All { places: 4, what: "uploads" });
        drop(all);
        assert_eq!(fill(&seats, "other").len(), 3);
        assert!(lock(&seats.taken).of.is_empty());
    }
}
