//! Errors of the input of the scheduler.

use crate::{MAX_RATE, MAX_SECONDS, MIN_RATE, MIN_SECONDS, Place};

/// Reason why the scheduler cannot decide.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// A rate is not possible.
    #[error(
        "{what} is {value} bytes a second, which is not possible; it must be a number from {MIN_RATE:e} to \
         {MAX_RATE:e}: measure it, or give the rate of a similar kernel"
    )]
    Rate {
        /// Name of the rate, such as `the storage rate of request 3`.
        what: String,
        /// The rate, in bytes a second.
        value: f64,
    },
    /// A time is not possible.
    #[error("{what} is {value} seconds; it must be a number from 0 to {MAX_SECONDS:e}")]
    Seconds {
        /// Name of the time.
        what: String,
        /// The time, in seconds.
        value: f64,
    },
    /// A number of cores or a factor of speed is not possible.
    #[error("{what} is {value}; it must be a number from 1e-6 to 1e6")]
    Speed {
        /// Name of the number.
        what: String,
        /// The number.
        value: f64,
    },
    /// A request names something that does not exist.
    #[error("request {request} names {what} {number}, but there are {count}, numbered from 0; add it first")]
    Unknown {
        /// Number of the request.
        request: usize,
        /// `resource`, `storage node`, ...
        what: &'static str,
        /// Its number.
        number: usize,
        /// Number of things of this kind.
        count: usize,
    },
    /// A request may not run at any place.
    #[error("request {request} may not run at any place; allow a place that is the same for all its parts")]
    NoPlace {
        /// Number of the request.
        request: usize,
    },
    /// A shard may run at a data node, but does not name one.
    #[error(
        "request {request} may run at a data node but does not name one; name one, or do not allow the place '{}'",
        Place::Data
    )]
    NoDataNode {
        /// Number of the request.
        request: usize,
    },
    /// The problem is too large.
    #[error(
        "there are {number} {what}, but at most {max} are decided at the same time; decide them in parts"
    )]
    TooMany {
        /// Name of the things that are too many.
        what: &'static str,
        /// Their number.
        number: usize,
        /// Largest possible number.
        max: usize,
    },
    /// The number of places is not the number of requests.
    #[error("there are {places} places for {works} requests; give one for each")]
    PlaceCount {
        /// Number of places.
        places: usize,
        /// Number of requests.
        works: usize,
    },
}

/// Returns the rate if it is possible.
pub(crate) fn rate(value: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (MIN_RATE..=MAX_RATE).contains(&value) {
        Ok(value)
    } else {
        Err(ScheduleError::Rate { what: what(), value })
    }
}

/// Returns the time if it is possible. A time below [`MIN_SECONDS`] becomes 0.
pub(crate) fn seconds(value: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (0.0..=MAX_SECONDS).contains(&value) {
        Ok(if value < MIN_SECONDS { 0.0 } else { value })
    } else {
        Err(ScheduleError::Seconds { what: what(), value })
    }
}

/// Returns `count` if it is at most `max`.
pub(crate) fn at_most(count: usize, max: usize, what: &'static str) -> Result<usize, ScheduleError> {
    if count <= max { Ok(count) } else { Err(ScheduleError::TooMany { what, number: count, max }) }
}
