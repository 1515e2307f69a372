//! The objective of DOSAS (Chen 2012, section III.D, equations 4 to 8), solved exactly.
//!
//! One storage node has `k` active requests. Request `i` takes `x_i = d_i / S_i + h_i / bw` seconds when its
//! node folds it (equation 5). It takes `y_i = d_i / bw` seconds when its bytes are handed back to the client
//! instead (6). The clients fold requests that are handed back at the same time, so the longest fold counts:
//! `z = max d_i / C_i` over these requests (7). The node does one thing after the other:
//!
//! `t = sum(x_i a_i + y_i (1 - a_i)) + z`, with `a_i = 1` for storage and 0 for handed back (4). The problem is
//! to find the least `t` (8).
//!
//! The paper tries all `2^k` choices or uses a solver. Neither is necessary. Fix the longest fold `z` that a
//! client may have. Longer folds must stay, and each other request takes the smaller of `x` and `y`. The only
//! candidates for `z` are the `k` fold times and "no request is handed back". The requests are sorted by fold
//! time. With running sums each candidate costs O(1), and all of them O(k log k). Kernels may be mixed, because
//! rates belong to requests.
//!
//! If costs are equal, storage is preferred: a request stays if `x <= y`. If several `z` are equally good, the smallest is
//! taken. In exact arithmetic this choice hands back the fewest requests of all optimal choices. Every optimal
//! choice hands back the requests that this one does.
//!
//! With one kernel and equal sizes the best choice is all or nothing. All fold times are equal, so `z` is paid
//! for the first request that is handed back. Then `y - x` has the same sign for all requests, so all of them
//! have the same best place.
//!
//! Normal requests (`g(D_N)` in the paper) add the same time to every choice, so they are left out.
//! ```
//! use gristmill_schedule::paper::{Work, solve};
//! use gristmill_schedule::Place;
//!
//! // A Gaussian filter at 80 MB/s, and a storage node with a link of 118 MB/s: one stays, eight are handed back.
//! let filter = Work { bytes: 128 << 20, result_bytes: 64, storage_rate: 80e6, client_rate: 80e6 };
//! assert_eq!(solve(118e6, &[filter; 1])?.places, [Place::Storage]);
//! assert_eq!(solve(118e6, &[filter; 8])?.places, [Place::Client; 8]);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

use crate::{MAX_WORKS, Place, ScheduleError, error};

/// An active request that waits at a storage node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Bytes that it reads (`d_i`).
    pub bytes: u64,
    /// Bytes of its answer (`h(d_i)`). They may be more than it reads.
    pub result_bytes: u64,
    /// Bytes a second of its kernel on the storage node (`S_C,op`).
    pub storage_rate: f64,
    /// Bytes a second of its kernel at its client (`C_C,op`).
    pub client_rate: f64,
}

/// Decisions for all requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// [`Place::Storage`] (`a_i = 1`) or [`Place::Client`], for each request.
    pub places: Vec<Place>,
    /// Predicted seconds until all requests are done: the least value of equation 4.
    pub seconds: f64,
}

/// Terms of one request, in seconds.
struct Terms {
    node_seconds: f64,
    transfer_seconds: f64,
    fold_seconds: f64,
}

impl Work {
    fn terms(&self, bandwidth: f64, request: usize) -> Result<Terms, ScheduleError> {
        let storage = error::rate(self.storage_rate, || format!("the storage rate of request {request}"))?;
        let client = error::rate(self.client_rate, || format!("the client rate of request {request}"))?;
        let bytes = self.bytes as f64;
        Ok(Terms {
            node_seconds: bytes / storage + self.result_bytes as f64 / bandwidth,
            transfer_seconds: bytes / bandwidth,
            fold_seconds: bytes / client,
        })
    }
}

/// Checks the requests, and computes the terms of each.
fn terms(bandwidth: f64, works: &[Work]) -> Result<Vec<Terms>, ScheduleError> {
    error::at_most(works.len(), MAX_WORKS, "requests")?;
    let bandwidth = error::rate(bandwidth, || "the bandwidth".into())?;
    works.iter().enumerate().map(|(request, work)| work.terms(bandwidth, request)).collect()
}

/// Equation 4: seconds that these requests take with these decisions, on a link of `bandwidth` bytes a second.
/// A place other than storage counts as handed back.
///
/// # Errors
/// A rate that is not possible; a number of places that is not the number of works; more than [`MAX_WORKS`].
pub fn time(bandwidth: f64, works: &[Work], places: &[Place]) -> Result<f64, ScheduleError> {
    if works.len() != places.len() {
        return Err(ScheduleError::PlaceCount { places: places.len(), works: works.len() });
    }
    Ok(total(&terms(bandwidth, works)?, places))
}

fn total(terms: &[Terms], places: &[Place]) -> f64 {
    let (mut sum, mut longest) = (0.0, 0.0_f64);
    for (term, place) in terms.iter().zip(places) {
        if *place == Place::Storage {
            sum += term.node_seconds;
        } else {
            sum += term.transfer_seconds;
            longest = longest.max(term.fold_seconds);
        }
    }
    sum + longest
}

/// Finds the decisions with the least time (8), on a link of `bandwidth` bytes a second.
///
/// # Errors
/// A rate that is not possible; more than [`MAX_WORKS`].
pub fn solve(bandwidth: f64, works: &[Work]) -> Result<Decisions, ScheduleError> {
    let terms = terms(bandwidth, works)?;
    let mut order: Vec<(f64, u32)> = terms.iter().zip(0..).map(|(term, i)| (term.fold_seconds, i)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let longest = threshold(&terms, &order);
    let goes = |term: &Terms| {
        longest.is_some_and(|z| term.fold_seconds <= z) && term.transfer_seconds < term.node_seconds
    };
    let places: Vec<Place> =
        terms.iter().map(|term| if goes(term) { Place::Client } else { Place::Storage }).collect();
    let seconds = total(&terms, &places);
    Ok(Decisions { places, seconds })
}

/// Longest fold that is handed back, or `None` if all stay. `order` lists the requests by ascending fold time.
fn threshold(terms: &[Terms], order: &[(f64, u32)]) -> Option<f64> {
    // The saving is the difference to the case that all stay, for the requests with fold times up to here. A
    // request that is better at storage adds exactly 0, so rounding cannot make its threshold look better than the
    // one before.
    let (mut saved, mut best, mut found) = (0.0, 0.0, None);
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        for (_, i) in group {
            let term = &terms[*i as usize];
            saved += (term.node_seconds - term.transfer_seconds).max(0.0);
        }
        let fold_seconds = group[0].0;
        if saved - fold_seconds > best {
            best = saved - fold_seconds;
            found = Some(fold_seconds);
        }
    }
    found
}
