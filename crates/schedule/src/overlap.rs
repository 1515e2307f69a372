//! Our own objective: a pipelined server reads, computes and sends at the same time, so the busiest resource
//! counts.
//!
//! Every work runs at one of its places and uses some resources there for some seconds. Resources are the cores
//! and the link of each storage node, data node and client. The *load* of a resource is the sum of its present
//! load and of the works that use it. All works are done when the busiest resource is done. The largest load is
//! the *makespan*, and the plan makes it small. Works may share clients, so storage nodes cannot be decided one
//! by one.
//!
//! Finding the least makespan is NP-hard. (With two places that take the same time it is the partition problem.)
//! So the solver has these steps:
//! 1. It tries all works at one place, for each place. The plan is never worse than the best of these.
//! 2. It places one work after the other, the longest first, each where the sum of powers of the loads grows least.
//! 3. It makes passes over all works with higher and higher powers ([`SHARPNESS`]), and moves each work to its best
//!    place. There are [`SWEEPS`] passes for a queue of at most [`SHORT_QUEUE`] works, and five for a longer one.
//!    They end when the bound is reached ([`GOOD_ENOUGH`]). A high power sees only the busiest resource. A low power
//!    first balances resources that are not the busiest yet.
//! 4. For at most [`SEARCH_WORKS`] works, it searches all choices that could be better, and gives up after
//!    [`SEARCH_STEPS`]. If the search comes to its end, the plan is the optimum.
//!
//! The result is the best plan of all steps. [`Plan::bound`] is a lower bound of all plans (see `bound.rs`), so
//! [`Plan::gap`] is the largest possible distance from the optimum. The tests have queues drawn from seeds, with two
//! storage nodes, a data node and shared clients, and with mixed kernels, sizes and answers. Queues of up to 8 works
//! were solved exactly. The median and the largest gap were 2.3 % and 12.3 % for 100 works, 0.07 % and 0.95 % for
//! 1,000, below 0.01 % and 0.30 % for 10,000. Steps 1 to 3 alone were up to 37 % above the optimum for hard queues of
//! 8 works, which step 4 solves. The bound assumes that works may be split, so a queue of few long works has a gap
//! even if its plan is the optimum.
//!
//! The result depends only on the problem. Of equally good options the earlier is taken, so storage is preferred.
//! ```
//! use gristmill_schedule::{Choice, Place, Problem, Use, overlap};
//!
//! let [cores, link, client] = [0, 1, 2];
//! let mut problem = Problem::new(vec![0.0; 3])?;
//! for _ in 0..4 {
//!     // A fold takes 3 s of the node, or 1 s of its link and 1 s of the client.
//!     let storage = [Use { resource: cores, seconds: 3.0 }];
//!     let away = [Use { resource: link, seconds: 1.0 }, Use { resource: client, seconds: 1.0 }];
//!     let [storage, away] = [&storage[..], &away].map(|uses| Some(Choice { uses, min_seconds: 0.0 }));
//!     problem.push([storage, None, away])?;
//! }
//! let plan = overlap::solve(&problem);
//! assert_eq!(plan.makespan, 3.0); // one stays; all at the client would take 4 s, all at storage 12 s
//! assert_eq!(plan.places.iter().filter(|place| **place == Place::Storage).count(), 1);
//! assert_eq!(plan.gap(), 0.0);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

use crate::descent::Descent;
use crate::{Place, Problem, exhaustive};

pub use crate::descent::{GOOD_ENOUGH, SHARPNESS, SHORT_QUEUE, SWEEPS};
pub use crate::exhaustive::{SEARCH_STEPS, SEARCH_WORKS};

/// Place of each work.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// A place for each work.
    pub places: Vec<Place>,
    /// Seconds until the busiest resource is done.
    pub makespan: f64,
    /// Lower bound on the makespan of all plans, in seconds.
    pub bound: f64,
}

impl Plan {
    /// Largest possible distance from the optimum: `makespan / bound - 1`. It is 0 if the plan is certainly the
    /// optimum.
    pub fn gap(&self) -> f64 {
        if self.makespan <= self.bound { 0.0 } else { self.makespan / self.bound - 1.0 }
    }
}

/// Best choices so far.
pub(crate) struct BestChoices {
    pub choices: Vec<u8>,
    pub loads: Vec<f64>,
    pub makespan: f64,
    squares: f64,
}

impl BestChoices {
    pub fn new() -> BestChoices {
        BestChoices {
            choices: Vec::new(),
            loads: Vec::new(),
            makespan: f64::INFINITY,
            squares: f64::INFINITY,
        }
    }

    /// Takes these choices if they are better. Of two with the same makespan, the one with the smaller sum of squared
    /// loads is better: it leaves the other resources freer.
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

/// Finds a plan with a small makespan. It is never larger than with all works at any one place.
pub fn solve(problem: &Problem) -> Plan {
    let (mut best, mut loads) = (BestChoices::new(), Vec::new());
    let mut fixed = vec![0_u8; problem.works()];
    for place in Place::ALL {
        for (work, choice) in fixed.iter_mut().enumerate() {
            let first = 3 * work;
            let may = |number: usize| problem.option_seconds(first + number).is_finite();
            let wanted = place.number();
            *choice = if may(wanted) { wanted } else { (0..3).find(|n| may(*n)).unwrap_or(0) } as u8;
        }
        let makespan = problem.loads(&fixed, &mut loads);
        best.offer(&fixed, &loads, makespan);
    }
    let mut lower_bound = best.makespan;
    if best.makespan > 0.0 {
        let bound = Descent::new(problem, best.makespan).run(&mut best);
        lower_bound = bound.lower_bound;
        if best.makespan > lower_bound && exhaustive::search(problem, &mut best, &bound) {
            lower_bound = best.makespan;
        }
    }
    let places = best.choices.iter().map(|choice| Place::ALL[usize::from(*choice)]).collect();
    Plan { places, makespan: best.makespan, bound: lower_bound.min(best.makespan) }
}
