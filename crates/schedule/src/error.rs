//! What a question may have wrong with it.

use crate::{MAX_RATE, MAX_SECONDS, MIN_RATE, MIN_SECONDS, Place};

/// Why nothing can be decided.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// A rate that no machine has.
    #[error(
        "{what} is {given} bytes a second, a lying rate; it must be a number from {MIN_RATE:e} to {MAX_RATE:e}: \
         measure it, or give the rate of a similar kernel"
    )]
    Rate {
        /// Whose rate, such as `the storage rate of request 3`.
        what: String,
        /// What was given.
        given: f64,
    },
    /// A time that cannot be.
    #[error("{what} is {given} seconds; it must be a number from 0 to {MAX_SECONDS:e}")]
    Seconds {
        /// What takes that time.
        what: String,
        /// What was given.
        given: f64,
    },
    /// Cores or a factor of speed that cannot be.
    #[error("{what} is {given}; it must be a number from 1e-6 to 1e6")]
    Speed {
        /// What it says.
        what: String,
        /// What was given.
        given: f64,
    },
    /// Something that is not there.
    #[error("request {request} names {what} {number}, but there are {count}, numbered from 0")]
    Unknown {
        /// Number of the request.
        request: usize,
        /// `resource`, `storage node`, ...
        what: &'static str,
        /// The number given.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// A request that may run nowhere.
    #[error("request {request} may run at no place; allow at least one that all its parts share")]
    Nowhere {
        /// Number of the request.
        request: usize,
    },
    /// A shard is to run at a data node and names none.
    #[error(
        "request {request} may run at a data node but names none; name one or do not allow {}",
        Place::Data
    )]
    NoDataNode {
        /// Number of the request.
        request: usize,
    },
    /// More than is decided at once.
    #[error("{given} {what} are more than the {max} that are decided at once; decide them in parts")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        given: usize,
        /// Most.
        max: usize,
    },
    /// Decisions for other works than these.
    #[error("{given} decisions for {works} requests; give one for each")]
    Decisions {
        /// Decisions given.
        given: usize,
        /// Requests.
        works: usize,
    },
}

/// `given`, if a machine may have that rate.
pub(crate) fn rate(given: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (MIN_RATE..=MAX_RATE).contains(&given) {
        Ok(given)
    } else {
        Err(ScheduleError::Rate { what: what(), given })
    }
}

/// `given`, if something may take that long; what is below [`MIN_SECONDS`] is none.
pub(crate) fn seconds(given: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (0.0..=MAX_SECONDS).contains(&given) {
        Ok(if given < MIN_SECONDS { 0.0 } else { given })
    } else {
        Err(ScheduleError::Seconds { what: what(), given })
    }
}

/// `count`, if it is at most `max`.
pub(crate) fn at_most(count: usize, max: usize, what: &'static str) -> Result<usize, ScheduleError> {
    if count <= max { Ok(count) } else { Err(ScheduleError::TooMany { what, given: count, max }) }
}
