//! A measured rate.

use crate::{MAX_RATE, MIN_RATE, ScheduleError, error};

/// Half-life of measurements, in seconds of measured work.
pub const HALF_LIFE: f64 = 30.0;

/// Weight of a prior, in seconds of measured work. It is small for two reasons: a prior may be wrong by a factor, and a
/// fast kernel folds many bytes in a short time.
pub const PRIOR_SECONDS: f64 = 0.05;

/// Weight of a guess, in seconds of measured work. The first sample outweighs it.
pub const GUESS_SECONDS: f64 = 0.005;

/// Shortest sample that counts, in seconds. Shorter samples are added up until they are as long.
pub const LEAST_SAMPLE: f64 = 0.01;

/// Largest factor between a sample and the estimate. A sample that is further away counts as the estimate times or
/// divided by this factor.
pub const MAX_FACTOR: f64 = 8.0;

/// A rate in bytes a second from measured work: the mean over the last seconds of work, with a half-life of
/// [`HALF_LIFE`].
///
/// Samples may be wrong, because clocks jump and nodes can send false figures. A sample without bytes, or whose time
/// is not positive and finite, is ignored. A sample that is far from the estimate counts up to a factor of
/// [`MAX_FACTOR`]. The estimate is always from [`MIN_RATE`] to [`MAX_RATE`].
/// ```
/// use gristmill_schedule::{MeasuredRate, MAX_FACTOR};
///
/// let mut rate = MeasuredRate::new(1e9)?;
/// for _ in 0..300 {
///     rate.observe(80_000_000, 1.0);
/// }
/// assert!((rate.rate() / 80e6 - 1.0).abs() < 0.01);
/// rate.observe(u64::MAX, 1.0); // a false sample
/// assert!(rate.rate() <= 80e6 * MAX_FACTOR * 1.01);
/// # Ok::<(), gristmill_schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRate {
    rate: f64,
    /// Seconds of work behind the estimate. Older work counts less.
    weight: f64,
    /// Weight of the prior at the beginning, in the same seconds.
    prior_seconds: f64,
    /// Share of the prior in the estimate, from 0 to 1.
    prior: f64,
    /// Sum of samples that are too short: bytes and seconds.
    pooled: (f64, f64),
}

impl MeasuredRate {
    /// Creates a rate without measurements. It is `prior`, in bytes a second.
    ///
    /// # Errors
    /// A rate that is not possible.
    pub fn new(prior: f64) -> Result<MeasuredRate, ScheduleError> {
        let rate = error::rate(prior, || "the prior".into())?;
        let weight = PRIOR_SECONDS;
        Ok(MeasuredRate { rate, weight, prior_seconds: weight, prior: 1.0, pooled: (0.0, 0.0) })
    }

    /// Creates a rate without measurements from a guess, in bytes a second.
    ///
    /// # Errors
    /// A rate that is not possible.
    pub fn from_guess(rate: f64) -> Result<MeasuredRate, ScheduleError> {
        Ok(MeasuredRate { weight: GUESS_SECONDS, prior_seconds: GUESS_SECONDS, ..MeasuredRate::new(rate)? })
    }

    /// Creates a rate that was measured earlier during so many seconds of work.
    ///
    /// # Errors
    /// A rate or a time that is not possible.
    pub fn from_measurement(rate: f64, seconds: f64) -> Result<MeasuredRate, ScheduleError> {
        let seconds = error::seconds(seconds, || "the time in which a rate was measured".into())?;
        let prior = PRIOR_SECONDS / (PRIOR_SECONDS + seconds);
        Ok(MeasuredRate { weight: PRIOR_SECONDS + seconds.min(HALF_LIFE), prior, ..MeasuredRate::new(rate)? })
    }

    /// Seconds of work in which it was measured. Older work counts less.
    pub fn seconds(&self) -> f64 {
        (self.weight - self.prior_seconds * self.prior).max(0.0)
    }

    /// Adds a sample: so many bytes in so many seconds.
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
        // The beginning of a long sample is old at its end, so the half-life counts within the sample too.
        let kept = (-lasted / HALF_LIFE).exp2();
        let new = HALF_LIFE / std::f64::consts::LN_2 * (1.0 - kept);
        let old = self.weight * kept;
        let share = new / (old + new);
        self.rate = (self.rate + share * (sample - self.rate)).clamp(MIN_RATE, MAX_RATE);
        self.prior *= 1.0 - share;
        self.weight = old + new;
    }

    /// The estimate, in bytes a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Share of the estimate that was measured, from 0 (the prior only) towards 1.
    pub fn confidence(&self) -> f64 {
        1.0 - self.prior
    }
}
