//! A rate that is measured.

use crate::{MAX_RATE, MIN_RATE, ScheduleError, error};

/// Seconds of measured work after which what was known counts half.
pub const HALF_LIFE: f64 = 30.0;

/// What the prior weighs, in seconds of measured work. A prior is wrong by a factor, and a fast kernel is done with much before
/// it has worked for long.
pub const PRIOR_SECONDS: f64 = 0.05;

/// The same of a guess, which the first sample outweighs.
pub const GUESS_SECONDS: f64 = 0.005;

/// Shortest work that says something, in seconds; shorter ones are added up until they are as long.
pub const LEAST_SAMPLE: f64 = 0.01;

/// How far one sample is believed: at most so many times the estimate, and not below one part of it in so
/// many.
pub const MAX_FACTOR: f64 = 8.0;

/// Bytes a second that something does, from measured work: the mean over the last seconds of work, with a
/// half-life of [`HALF_LIFE`].
///
/// Samples may be wrong: clocks jump and nodes lie. One that says nothing (no bytes, no time, less than none)
/// is left out; one that says too much is believed by a factor of [`MAX_FACTOR`] at most. The estimate is
/// always from [`MIN_RATE`] to [`MAX_RATE`].
/// ```
/// use gristmill_schedule::{Learned, MAX_FACTOR};
///
/// let mut rate = Learned::new(1e9)?;
/// for _ in 0..300 {
///     rate.observe(80_000_000, 1.0);
/// }
/// assert!((rate.rate() / 80e6 - 1.0).abs() < 0.01);
/// rate.observe(u64::MAX, 1.0); // a lie
/// assert!(rate.rate() <= 80e6 * MAX_FACTOR * 1.01);
/// # Ok::<(), gristmill_schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    rate: f64,
    /// Seconds of work behind the estimate, those of long ago counting less.
    weight: f64,
    /// The weight of the prior at first, in the same seconds.
    prior_seconds: f64,
    /// How much of the estimate is still the prior.
    prior: f64,
    /// Samples that are too short to say something.
    pooled: (f64, f64),
}

impl Learned {
    /// Nothing measured yet: the rate is said to be `prior`.
    ///
    /// # Errors
    /// A rate that no machine has.
    pub fn new(prior: f64) -> Result<Learned, ScheduleError> {
        let rate = error::rate(prior, || "the prior".into())?;
        let weight = PRIOR_SECONDS;
        Ok(Learned { rate, weight, prior_seconds: weight, prior: 1.0, pooled: (0.0, 0.0) })
    }

    /// Nothing measured yet, and no better prior than a guess.
    ///
    /// # Errors
    /// A rate that no machine has.
    pub fn guessed(rate: f64) -> Result<Learned, ScheduleError> {
        Ok(Learned { weight: GUESS_SECONDS, prior_seconds: GUESS_SECONDS, ..Learned::new(rate)? })
    }

    /// A rate that was measured before, by so many seconds of work.
    ///
    /// # Errors
    /// A rate that no machine has; less than no seconds.
    pub fn remembered(rate: f64, seconds: f64) -> Result<Learned, ScheduleError> {
        let seconds = error::seconds(seconds, || "what a rate was measured in".into())?;
        let prior = PRIOR_SECONDS / (PRIOR_SECONDS + seconds);
        Ok(Learned { weight: PRIOR_SECONDS + seconds.min(HALF_LIFE), prior, ..Learned::new(rate)? })
    }

    /// Seconds of work that it was measured by, those of long ago counting less.
    pub fn seconds(&self) -> f64 {
        (self.weight - self.prior_seconds * self.prior).max(0.0)
    }

    /// `bytes` were done in so many seconds.
    pub fn observe(&mut self, bytes: u64, seconds: f64) {
        if bytes == 0 || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let (all, lasted) = (self.pooled.0 + bytes as f64, self.pooled.1 + seconds);
        if lasted < LEAST_SAMPLE {
            self.pooled = (all, lasted);
            return;
        }
        self.pooled = (0.0, 0.0);
        let sample = (all / lasted).clamp(self.rate / MAX_FACTOR, self.rate * MAX_FACTOR);
        // Half-life and weight of a sample that itself is long: what it began with is old when it ends.
        let kept = (-lasted / HALF_LIFE).exp2();
        let new = HALF_LIFE / std::f64::consts::LN_2 * (1.0 - kept);
        let old = self.weight * kept;
        let share = new / (old + new);
        self.rate = (self.rate + share * (sample - self.rate)).clamp(MIN_RATE, MAX_RATE);
        self.prior *= 1.0 - share;
        self.weight = old + new;
    }

    /// Bytes a second, as far as is known.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How much of the estimate was measured: 0 for the prior alone, towards 1.
    pub fn confidence(&self) -> f64 {
        1.0 - self.prior
    }
}
