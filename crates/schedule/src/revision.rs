//! The rule that decides when running work is moved.

use crate::{Place, Places};

/// Smallest share of the remaining time that a move must save.
pub const LEAST_SHARE: f64 = 0.25;

/// Smallest number of seconds that a move must save.
pub const LEAST_GAIN: f64 = 0.5;

/// Seconds for which work stays where it began or was moved to. Predictions need this time to adapt.
pub const SETTLE_SECONDS: f64 = 2.0;

/// Seconds after its beginning in which work moves for any gain. The rest of a burst of requests comes in this time, and
/// hardly anything is folded yet.
pub const BEGINNING_SECONDS: f64 = 0.1;

/// Most moves of one work. A work never comes back to a place, so with three places there are at most two moves.
/// This constant is the bound for a caller that has more places.
pub const MAX_MOVES: u32 = 2;

/// Place where a work runs, and places where it ran before.
///
/// Predictions are noisy. A move costs the folding since the last record boundary, and the transfer of the state.
/// So work is moved only for a gain that is large both in seconds and as a share, unless it has only begun
/// ([`BEGINNING_SECONDS`]). It is not moved again soon, never back to an earlier place, and at most [`MAX_MOVES`] times.
/// ```
/// use gristmill_schedule::{Place, Revision};
///
/// let mut filter = Revision::new(Place::Storage, 0.0);
/// assert_eq!(filter.consider(10.0, 30.0, &[(Place::Client, 28.0)]), None); // the gain is too small
/// assert_eq!(filter.consider(11.0, 30.0, &[(Place::Client, 9.0)]), Some(Place::Client));
/// filter.moved(11.5, Place::Client);
/// assert_eq!(filter.consider(20.0, 30.0, &[(Place::Storage, 1.0)]), None); // an earlier place
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Revision {
    place: Place,
    visited: Places,
    moves: u32,
    /// Time at which it began at this place, in seconds of the caller's clock.
    since: f64,
}

impl Revision {
    /// Creates the state of a work that begins at a place at `now`, in seconds of the caller's clock.
    pub fn new(place: Place, now: f64) -> Revision {
        Revision { place, visited: Places::NONE.with(place), moves: 0, since: now }
    }

    /// Returns the place to which the work should be moved, if any. `stays` is the predicted remaining time at the
    /// present place, in seconds. `others` has the predicted remaining time at other places, with the cost of the
    /// move. Predictions that are negative or not a number are ignored. If the caller moves the work, it calls
    /// [`Revision::moved`].
    pub fn consider(&self, now: f64, stays: f64, others: &[(Place, f64)]) -> Option<Place> {
        if !self.may_move(now) || !stays.is_finite() {
            return None;
        }
        let (least_gain, least_share) =
            if self.has_only_begun(now) { (0.0, 0.0) } else { (LEAST_GAIN, LEAST_SHARE) };
        let worth = |seconds: f64| {
            let gain = stays - seconds;
            seconds >= 0.0 && gain > least_gain && gain > least_share * stays
        };
        let able = others.iter().filter(|(place, seconds)| !self.visited.has(*place) && worth(*seconds));
        able.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0))).map(|(place, _)| *place)
    }

    /// Whether the work may be moved now, for any gain.
    pub fn may_move(&self, now: f64) -> bool {
        self.moves < MAX_MOVES && (self.has_only_begun(now) || now - self.since >= SETTLE_SECONDS)
    }

    fn has_only_begun(&self, now: f64) -> bool {
        self.moves == 0 && now - self.since < BEGINNING_SECONDS
    }

    /// Records that the work continues at another place since `now`.
    pub fn moved(&mut self, now: f64, place: Place) {
        (self.place, self.since) = (place, now);
        self.visited = self.visited.with(place);
        self.moves += 1;
    }

    /// Place where it runs.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Number of moves so far.
    pub fn moves(&self) -> u32 {
        self.moves
    }
}
