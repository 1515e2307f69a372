//! The objective of DOSAS (Chen 2012, section III.D, equations 4 to 8), solved exactly.
//!
//! One storage node has `k` active requests. Request `i` takes `x_i = d_i / S_i + h_i / bw` seconds when its
//! node folds it (equation 5) and `y_i = d_i / bw` when its bytes are given back to the client instead (6).
//! The clients fold what is given back at the same time, so the longest of it counts: `z = max d_i / C_i`
//! over what is given back (7). The node does one thing after the other:
//!
//! `t = sum(x_i a_i + y_i (1 - a_i)) + z`, with `a_i = 1` for storage and 0 for given back (4); find the
//! least (8).
//!
//! The paper tries all `2^k` choices or leaves it to a solver. It needs neither. Fix the longest fold `z`
//! that a client may have: what is longer must stay, and all else takes the smaller of `x` and `y`. Only the
//! `k` fold times and "nothing given back" are worth trying as `z`; with the requests sorted by fold time and
//! running sums, each costs O(1), and all of it O(k log k). Kernels may be mixed: rates belong to requests.
//!
//! Among equal costs storage is preferred: a request stays if `x <= y`, and of equal `z` candidates the
//! smallest is taken. In exact arithmetic this gives back the fewest requests of all optimal choices: every
//! optimal choice gives back what this one does.
//!
//! With one kernel and equal sizes the best is all or nothing: all fold times are equal, so as soon as one
//! request is given back `z` is paid, and then all have the same sign of `y - x` and go the same way.
//!
//! Normal requests (`g(D_N)` in the paper) add the same to every choice and are left out.
//! ```
//! use gristmill_schedule::paper::{Work, solve};
//! use gristmill_schedule::Place;
//!
//! // A Gaussian filter at 80 MB/s on a storage node of 118 MB/s: alone it stays, of many all are given back.
//! let filter = Work { bytes: 128 << 20, result_bytes: 64, storage_rate: 80e6, client_rate: 80e6 };
//! assert_eq!(solve(118e6, &[filter; 1])?.places, [Place::Storage]);
//! assert_eq!(solve(118e6, &[filter; 8])?.places, [Place::Client; 8]);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

use crate::{MAX_WORKS, Place, ScheduleError, error};

/// An active request that waits at a storage node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// What it reads (`d_i`).
    pub bytes: u64,
    /// What its answer has (`h(d_i)`); may be more than it reads.
    pub result_bytes: u64,
    /// Bytes a second of its kernel on the storage node (`S_C,op`).
    pub storage_rate: f64,
    /// Bytes a second of its kernel at its client (`C_C,op`).
    pub client_rate: f64,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// [`Place::Storage`] (`a_i = 1`) or [`Place::Client`], for each request.
    pub places: Vec<Place>,
    /// Predicted seconds until all are done: equation 4, the least there is.
    pub seconds: f64,
}

/// Terms of one request, in seconds.
struct Terms {
    stays: f64,
    given: f64,
    folds: f64,
}

impl Work {
    fn terms(&self, bandwidth: f64, request: usize) -> Result<Terms, ScheduleError> {
        let storage = error::rate(self.storage_rate, || format!("the storage rate of request {request}"))?;
        let client = error::rate(self.client_rate, || format!("the client rate of request {request}"))?;
        let bytes = self.bytes as f64;
        Ok(Terms {
            stays: bytes / storage + self.result_bytes as f64 / bandwidth,
            given: bytes / bandwidth,
            folds: bytes / client,
        })
    }
}

/// Terms of all requests, checked.
fn terms(bandwidth: f64, works: &[Work]) -> Result<Vec<Terms>, ScheduleError> {
    error::at_most(works.len(), MAX_WORKS, "requests")?;
    let bandwidth = error::rate(bandwidth, || "the bandwidth".into())?;
    works.iter().enumerate().map(|(request, work)| work.terms(bandwidth, request)).collect()
}

/// Equation 4 itself: seconds that these requests take with these decisions, on a link of `bandwidth` bytes a
/// second. A place other than storage counts as given back.
///
/// # Errors
/// A rate that no machine has; another number of places than of works; more than [`MAX_WORKS`].
pub fn time(bandwidth: f64, works: &[Work], places: &[Place]) -> Result<f64, ScheduleError> {
    if works.len() != places.len() {
        return Err(ScheduleError::Decisions { given: places.len(), works: works.len() });
    }
    Ok(total(&terms(bandwidth, works)?, places))
}

fn total(terms: &[Terms], places: &[Place]) -> f64 {
    let (mut sum, mut longest) = (0.0, 0.0_f64);
    for (term, place) in terms.iter().zip(places) {
        if *place == Place::Storage {
            sum += term.stays;
        } else {
            sum += term.given;
            longest = longest.max(term.folds);
        }
    }
    sum + longest
}

/// The decisions with the least time (8), on a link of `bandwidth` bytes a second.
///
/// # Errors
/// A rate that no machine has; more than [`MAX_WORKS`].
pub fn solve(bandwidth: f64, works: &[Work]) -> Result<Decisions, ScheduleError> {
    let terms = terms(bandwidth, works)?;
    let mut order: Vec<(f64, u32)> = terms.iter().zip(0..).map(|(term, i)| (term.folds, i)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let longest = threshold(&terms, &order);
    let goes = |term: &Terms| longest.is_some_and(|z| term.folds <= z) && term.given < term.stays;
    let places: Vec<Place> =
        terms.iter().map(|term| if goes(term) { Place::Client } else { Place::Storage }).collect();
    let seconds = total(&terms, &places);
    Ok(Decisions { places, seconds })
}

/// The longest fold to be given back, or none if all stay. `order`: requests by fold time, ascending.
fn threshold(terms: &[Terms], order: &[(f64, u32)]) -> Option<f64> {
    // Only differences count: what is saved over all staying, by those with fold times up to here. A request
    // that does better staying changes nothing, so rounding cannot tell its threshold from the one before.
    let (mut saved, mut best, mut found) = (0.0, 0.0, None);
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        for (_, i) in group {
            let term = &terms[*i as usize];
            saved += (term.stays - term.given).max(0.0);
        }
        let folds = group[0].0;
        if saved - folds > best {
            best = saved - folds;
            found = Some(folds);
        }
    }
    found
}
