//! Search of all choices that could be better than a plan, for short queues of [`crate::overlap`].
//!
//! Works are decided one after the other, the longest first. A branch ends if the load of a resource reaches the
//! makespan of the best plan so far. It also ends if, by the weights of the bound, the remaining works cost too much.

use crate::Problem;
use crate::bound::{Bound, ROUNDING};
use crate::overlap::BestChoices;

/// Most choices that are tried.
pub const SEARCH_STEPS: usize = 1 << 16;

/// Most works of a queue that is searched. The search of a longer queue would not end in time.
pub const SEARCH_WORKS: usize = 64;

struct Search<'a> {
    problem: &'a Problem,
    order: Vec<usize>,
    choices: Vec<u8>,
    loads: Vec<f64>,
    /// Weights of the bound.
    weights: &'a [f64],
    /// Least cost, by the weights, of the works from each depth on.
    remaining: Vec<f64>,
    steps: usize,
}

/// Improves the plan. Returns whether the plan is then the optimum.
pub(crate) fn search(problem: &Problem, best: &mut BestChoices, bound: &Bound<'_>) -> bool {
    if problem.works() > SEARCH_WORKS || bound.weights().is_empty() {
        return false;
    }
    let size = |work: &usize| (0..3).fold(f64::INFINITY, |s, n| problem.option_seconds(3 * work + n).min(s));
    let mut order: Vec<usize> = (0..problem.works()).collect();
    order.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut remaining = vec![0.0; order.len() + 1];
    for (depth, work) in order.iter().enumerate().rev() {
        remaining[depth] = remaining[depth + 1] + bound.cheapest(*work, best.makespan);
    }
    let weights = bound.weights();
    let cost = problem.base.iter().zip(weights).map(|(load, weight)| load * weight).sum();
    let (choices, loads) = (best.choices.clone(), problem.base.clone());
    let mut search = Search { problem, order, choices, loads, weights, remaining, steps: 0 };
    search.descend(0, cost, best, bound.lower_bound)
}

impl Search<'_> {
    /// Tries all choices for the works from `depth` on. Returns whether it came to its end. `cost` is the cost of the
    /// loads so far, by the weights. `lower_bound` is a lower bound of all plans.
    fn descend(&mut self, depth: usize, cost: f64, best: &mut BestChoices, lower_bound: f64) -> bool {
        let Some(work) = self.order.get(depth).copied() else {
            let mut loads = Vec::new();
            let makespan = self.problem.loads(&self.choices, &mut loads);
            best.offer(&self.choices, &loads, makespan);
            return true;
        };
        for number in 0..3 {
            let option = 3 * work + number;
            if self.problem.option_seconds(option) >= best.makespan {
                continue;
            }
            self.steps += 1;
            if self.steps > SEARCH_STEPS {
                return false;
            }
            let uses = self.problem.option(option);
            let load = |resource: u32| self.loads[resource as usize];
            let cost =
                uses.iter().fold(cost, |sum, one| sum + self.weights[one.resource as usize] * one.seconds);
            if (cost + self.remaining[depth + 1]) * (1.0 - ROUNDING) >= best.makespan
                || uses.iter().any(|one| load(one.resource) + one.seconds >= best.makespan)
            {
                continue;
            }
            let before: Vec<f64> = uses.iter().map(|one| load(one.resource)).collect();
            for one in uses {
                self.loads[one.resource as usize] += one.seconds;
            }
            self.choices[work] = number as u8;
            let done = self.descend(depth + 1, cost, best, lower_bound);
            for (one, load) in uses.iter().zip(before) {
                self.loads[one.resource as usize] = load;
            }
            if !done || best.makespan <= lower_bound {
                return done;
            }
        }
        true
    }
}
