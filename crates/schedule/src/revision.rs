//! When work that runs is moved.

use crate::{Place, Places};

/// Share of the remaining time that a move must save.
pub const LEAST_SHARE: f64 = 0.25;

/// Seconds that a move must save.
pub const LEAST_GAIN: f64 = 0.5;

/// Seconds for which work stays where it began or was moved to: predictions need as long to follow.
pub const SETTLE: f64 = 2.0;

/// Moves of one work. As it never comes back to a place, there cannot be more than two; this says so also for
/// a caller that has more places.
pub const MAX_MOVES: u32 = 2;

/// Where a work runs, and where it ran before.
///
/// Predictions are noisy, and a move costs what was folded since the last record boundary and the way of the
/// state. So work is moved only for a gain that is large both in seconds and as a share, not soon again,
/// never back to where it came from, and at most [`MAX_MOVES`] times.
/// ```
/// use gristmill_schedule::{Place, Revision};
///
/// let mut filter = Revision::new(Place::Storage, 0.0);
/// assert_eq!(filter.consider(10.0, 30.0, &[(Place::Client, 28.0)]), None); // too little gained
/// assert_eq!(filter.consider(11.0, 30.0, &[(Place::Client, 9.0)]), Some(Place::Client));
/// filter.moved(11.5, Place::Client);
/// assert_eq!(filter.consider(20.0, 30.0, &[(Place::Storage, 1.0)]), None); // where it came from
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Revision {
    place: Place,
    been: Places,
    moves: u32,
    /// When it began here, in seconds of the caller's clock.
    since: f64,
}

impl Revision {
    /// A work that began at a place, `now` seconds on the caller's clock.
    pub fn new(place: Place, now: f64) -> Revision {
        Revision { place, been: Places::NONE.with(place), moves: 0, since: now }
    }

    /// Where to move the work, if anywhere. `stays`: predicted seconds that it still takes here; `others`:
    /// the same if it is moved, with what the move costs. What is no number, or less than 0, is not believed.
    /// The caller says with [`Revision::moved`] that it did so.
    pub fn consider(&self, now: f64, stays: f64, others: &[(Place, f64)]) -> Option<Place> {
        if !self.may_move(now) || !stays.is_finite() {
            return None;
        }
        let worth = |seconds: f64| {
            let gain = stays - seconds;
            seconds >= 0.0 && gain > LEAST_GAIN && gain > LEAST_SHARE * stays
        };
        let able = others.iter().filter(|(place, seconds)| !self.been.has(*place) && worth(*seconds));
        able.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0))).map(|(place, _)| *place)
    }

    /// Whether the work may be moved at all now, however much is gained.
    pub fn may_move(&self, now: f64) -> bool {
        self.moves < MAX_MOVES && now - self.since >= SETTLE
    }

    /// The work goes on at another place since `now`.
    pub fn moved(&mut self, now: f64, place: Place) {
        (self.place, self.since) = (place, now);
        self.been = self.been.with(place);
        self.moves += 1;
    }

    /// Where it runs.
    pub fn place(&self) -> Place {
        self.place
    }

    /// How often it was moved.
    pub fn moves(&self) -> u32 {
        self.moves
    }
}
