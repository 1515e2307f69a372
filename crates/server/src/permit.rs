//! Permits, which bound the running and waiting requests of a kind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{PLACES_FOR_EACH_FREE, all_places};

/// No permit is free for a principal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// All permits are taken.
    #[error("has {places} {what} already, as many as it takes")]
    All {
        /// Number of all permits.
        places: usize,
        /// Name of the requests.
        what: &'static str,
    },
    /// The free permits are for other principals.
    #[error("has {places} {what} of {principal} already and keeps its other places for others")]
    ForOthers {
        /// Number of permits of the principal.
        places: usize,
        /// Name of the requests.
        what: &'static str,
        /// The principal.
        principal: Arc<str>,
    },
}

/// Permit for a request of a kind. Dropping it returns it.
pub(crate) struct Permit {
    taken: Arc<Mutex<Taken>>,
    principal: Arc<str>,
}

/// Numbers of permits that are taken: in total, and by principal.
#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<Arc<str>, usize>,
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        if let Some(places) = taken.of.get_mut(&self.principal) {
            *places = places.saturating_sub(1);
            if *places == 0 {
                taken.of.remove(&self.principal);
            }
        }
    }
}

/// Permits for requests of a kind. A request never waits for one: without a free permit it is refused as busy.
pub(crate) struct Permits {
    taken: Arc<Mutex<Taken>>,
    refused: AtomicU64,
    most: usize,
    /// Name of the requests in an error.
    what: &'static str,
}

impl Permits {
    /// Creates permits. One principal alone may have `most_of_one`. There are a third more for others: a principal
    /// may have at most [`PLACES_FOR_EACH_FREE`] permits for each free one.
    pub fn new(most_of_one: usize, what: &'static str) -> Permits {
        let most = all_places(most_of_one);
        Permits { taken: Arc::default(), refused: AtomicU64::new(0), most, what }
    }

    /// Takes a permit for a principal.
    ///
    /// # Errors
    /// Returns an error if no permit is free for this principal.
    pub fn take(&self, principal: &Arc<str>) -> Result<Permit, Full> {
        let mut taken = lock(&self.taken);
        let (all, own) = (taken.all, taken.of.get(principal).copied().unwrap_or(0));
        let free = self.most.saturating_sub(all);
        if own >= free.saturating_mul(PLACES_FOR_EACH_FREE) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(match free {
                0 => Full::All { places: all, what: self.what },
                _ => Full::ForOthers { places: own, what: self.what, principal: principal.clone() },
            });
        }
        taken.all += 1;
        *taken.of.entry(principal.clone()).or_default() += 1;
        Ok(Permit { taken: self.taken.clone(), principal: principal.clone() })
    }

    /// Name of the requests in messages.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Number of requests refused since the node started.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes all permits once all are free.
    #[cfg(test)]
    pub async fn all(&self) -> Vec<Permit> {
        while lock(&self.taken).all > 0 {
            tokio::task::yield_now().await;
        }
        lock(&self.taken).all = self.most;
        let permit = || Permit { taken: self.taken.clone(), principal: Arc::from("all places") };
        std::iter::repeat_with(permit).take(self.most).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn fill(permits: &Permits, principal: &str) -> Vec<Permit> {
        let principal = Arc::from(principal);
        std::iter::from_fn(|| permits.take(&principal).ok()).collect()
    }

    #[test]
    fn one_alone_has_what_was_promised_and_others_find_some() {
        for most_of_one in [3, 64, 1000, 4096] {
            let permits = Permits::new(most_of_one, "folds");
            let first = fill(&permits, "first");
            assert_eq!(first.len(), most_of_one);
            let refused = permits.take(&Arc::from("first")).err().unwrap();
            assert!(
                matches!(&refused, Full::ForOthers { principal, .. } if &**principal == "first"),
                "{refused}"
            );
            let second = fill(&permits, "second");
            assert!(!second.is_empty());
            // Given back, they are there again.
            drop((first, second));
            assert_eq!(fill(&permits, "second").len(), most_of_one);
        }
        let permits = Permits::new(4096, "folds");
        let held: Vec<Vec<Permit>> = (0..5).map(|n| fill(&permits, &format!("{n}"))).collect();
        assert!(held.iter().all(|places| !places.is_empty()), "each of five floods leaves some to the next");
    }

    #[test]
    fn all_places_are_given_back() {
        let permits = Permits::new(3, "uploads");
        let all: Vec<Vec<Permit>> =
            ["one", "other", "third"].map(|principal| fill(&permits, principal)).into();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 0]);
        let refused = permits.take(&Arc::from("fourth")).err().unwrap();
        assert_eq!(refused, Full::All { places: 4, what: "uploads" });
        drop(all);
        assert_eq!(fill(&permits, "other").len(), 3);
        assert!(lock(&permits.taken).of.is_empty());
    }
}
