//! Our own objective: a pipelined server reads, computes and sends at once, so what counts is the busiest
//! resource.
//!
//! Every work runs at one of its places and takes seconds of a few resources there: cores of a storage node
//! and its link, cores and link of a data node, cores and link of a client. All is done when the busiest
//! resource is: its *load* is the sum of what it had to do already and of what was given to it. The plan
//! makes the largest load small (the *makespan*). Works may share clients, so that storage nodes are not
//! decided one by one.
//!
//! To find the least makespan is NP-hard (with two places that take the same time it is the partition
//! problem), so:
//! 1. all works at one place, for each place: the plan is never worse than the best of these;
//! 2. one work after the other, the longest first, each to where the sum of powers of the loads grows least;
//! 3. passes over all works, each moving to its best place, under higher and higher powers ([`SHARPNESS`]):
//!    [`SWEEPS`] for a queue of at most [`SHORT`] works, five for a longer one; they end when the bound is
//!    reached ([`GOOD_ENOUGH`]). A high power sees the busiest resource only; a low one first spreads what is
//!    not the busiest yet.
//! 4. for at most [`SEARCH_WORKS`] works a search through all choices that could be better, given up after
//!    [`SEARCH_STEPS`]. If it comes to its end the plan is the best there is.
//!
//! The best that was met is taken. [`Plan::bound`] is a number that no plan can be below (see `bound.rs`), so
//! [`Plan::gap`] says how far from the best a plan may be at most. Over the seeded queues of the tests (two
//! storage nodes, a data node and shared clients; kernels, sizes and answers mixed) queues of up to 8 works
//! were solved exactly, and the gap was in the middle and at worst 2.3 % and 12.3 % for 100 works, 0.07 % and
//! 0.95 % for 1,000, below 0.01 % and 0.30 % for 10,000. Steps 1 to 3 alone were up to 37 % above the best
//! for hard queues of 8 works, which step 4 solves. The bound is that of works that may be split, so a queue
//! of few long works has a gap even where its plan is the best.
//!
//! The answer depends on nothing but the problem. Ties go to the earlier option, and so to storage.
//! ```
//! use gristmill_schedule::{Choice, Place, Problem, Use, overlap};
//!
//! let [cores, link, client] = [0, 1, 2];
//! let mut problem = Problem::new(vec![0.0; 3])?;
//! for _ in 0..4 {
//!     // A fold of 3 s on the node, or 1 s of its link and 1 s of the client.
//!     let storage = [Use { resource: cores, seconds: 3.0 }];
//!     let away = [Use { resource: link, seconds: 1.0 }, Use { resource: client, seconds: 1.0 }];
//!     let [storage, away] = [&storage[..], &away].map(|uses| Some(Choice { uses, least: 0.0 }));
//!     problem.push([storage, None, away])?;
//! }
//! let plan = overlap::solve(&problem);
//! assert_eq!(plan.makespan, 3.0); // one stays; all away would take 4 s, all at storage 12 s
//! assert_eq!(plan.places.iter().filter(|place| **place == Place::Storage).count(), 1);
//! assert_eq!(plan.gap(), 0.0);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

use crate::descent::Descent;
use crate::{Place, Problem, exhaustive};

pub use crate::descent::{GOOD_ENOUGH, SHARPNESS, SHORT, SWEEPS};
pub use crate::exhaustive::{SEARCH_STEPS, SEARCH_WORKS};

/// Where each work is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// A place for each work.
    pub places: Vec<Place>,
    /// Seconds until the busiest resource is done.
    pub makespan: f64,
    /// Seconds that no plan is below.
    pub bound: f64,
}

impl Plan {
    /// How much longer this takes than the best plan may: `makespan / bound - 1`, 0 if it is certainly the
    /// best.
    pub fn gap(&self) -> f64 {
        if self.makespan <= self.bound { 0.0 } else { self.makespan / self.bound - 1.0 }
    }
}

/// The best choices met so far.
pub(crate) struct Best {
    pub choices: Vec<u8>,
    pub loads: Vec<f64>,
    pub makespan: f64,
    squares: f64,
}

impl Best {
    pub fn new() -> Best {
        Best { choices: Vec::new(), loads: Vec::new(), makespan: f64::INFINITY, squares: f64::INFINITY }
    }

    /// Takes choices that are better. Of two with the same makespan, those that keep the other resources
    /// freer are.
    pub fn offer(&mut self, choices: &[u8], loads: &[f64], makespan: f64) {
        let squares = loads.iter().map(|load| load * load).sum();
        if (makespan, squares) < (self.makespan, self.squares) {
            self.choices.clear();
            self.choices.extend_from_slice(choices);
            self.loads.clear();
            self.loads.extend_from_slice(loads);
            (self.makespan, self.squares) = (makespan, squares);
        }
    }
}

/// A plan whose makespan is small; never larger than with all works at any one place.
pub fn solve(problem: &Problem) -> Plan {
    let (mut best, mut loads) = (Best::new(), Vec::new());
    let mut fixed = vec![0_u8; problem.works()];
    for place in Place::ALL {
        for (work, choice) in fixed.iter_mut().enumerate() {
            let first = 3 * work;
            let may = |number: usize| problem.alone(first + number).is_finite();
            let wanted = place.number();
            *choice = if may(wanted) { wanted } else { (0..3).find(|n| may(*n)).unwrap_or(0) } as u8;
        }
        let makespan = problem.loads(&fixed, &mut loads);
        best.offer(&fixed, &loads, makespan);
    }
    let mut least = best.makespan;
    if best.makespan > 0.0 {
        let bound = Descent::new(problem, best.makespan).run(&mut best);
        least = bound.least;
        if best.makespan > least && exhaustive::search(problem, &mut best, &bound) {
            least = best.makespan;
        }
    }
    let places = best.choices.iter().map(|choice| Place::ALL[usize::from(*choice)]).collect();
    Plan { places, makespan: best.makespan, bound: least.min(best.makespan) }
}
