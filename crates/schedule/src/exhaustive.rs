//! A search through all choices that could be better than a plan, for short queues of [`crate::overlap`].
//!
//! Works are decided one after the other, the longest first. A branch ends where a resource has as much to do
//! as in the best plan so far, and where what is left must cost too much by the weights of the bound.

use crate::Problem;
use crate::bound::{Bound, ROUNDING};
use crate::overlap::Best;

/// Choices that are tried at most.
pub const SEARCH_STEPS: usize = 1 << 16;

/// Works of a queue that is searched at most; a longer one would not be finished.
pub const SEARCH_WORKS: usize = 64;

struct Search<'a> {
    problem: &'a Problem,
    order: Vec<usize>,
    choices: Vec<u8>,
    loads: Vec<f64>,
    /// Weights of the bound, and what works from each depth on cost at least with them.
    weights: &'a [f64],
    left: Vec<f64>,
    steps: usize,
}

/// Improves the plan; says whether nothing better is left.
pub(crate) fn search(problem: &Problem, best: &mut Best, bound: &Bound<'_>) -> bool {
    if problem.works() > SEARCH_WORKS || bound.weights().is_empty() {
        return false;
    }
    let size = |work: &usize| (0..3).fold(f64::INFINITY, |s, n| problem.alone(3 * work + n).min(s));
    let mut order: Vec<usize> = (0..problem.works()).collect();
    order.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut left = vec![0.0; order.len() + 1];
    for (depth, work) in order.iter().enumerate().rev() {
        left[depth] = left[depth + 1] + bound.cheapest(*work, best.makespan);
    }
    let weights = bound.weights();
    let cost = problem.base.iter().zip(weights).map(|(load, weight)| load * weight).sum();
    let (choices, loads) = (best.choices.clone(), problem.base.clone());
    let mut search = Search { problem, order, choices, loads, weights, left, steps: 0 };
    search.descend(0, cost, best, bound.least)
}

impl Search<'_> {
    /// Tries all that is left for the works from `depth`; says whether it came to the end. `cost`: of the
    /// loads so far, by the weights. `least`: what no plan is below.
    fn descend(&mut self, depth: usize, cost: f64, best: &mut Best, least: f64) -> bool {
        let Some(work) = self.order.get(depth).copied() else {
            let mut loads = Vec::new();
            let makespan = self.problem.loads(&self.choices, &mut loads);
            best.offer(&self.choices, &loads, makespan);
            return true;
        };
        for number in 0..3 {
            let option = 3 * work + number;
            if self.problem.alone(option) >= best.makespan {
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
            if (cost + self.left[depth + 1]) * (1.0 - ROUNDING) >= best.makespan
                || uses.iter().any(|one| load(one.resource) + one.seconds >= best.makespan)
            {
                continue;
            }
            let before: Vec<f64> = uses.iter().map(|one| load(one.resource)).collect();
            for one in uses {
                self.loads[one.resource as usize] += one.seconds;
            }
            self.choices[work] = number as u8;
            let done = self.descend(depth + 1, cost, best, least);
            for (one, load) in uses.iter().zip(before) {
                self.loads[one.resource as usize] = load;
            }
            if !done || best.makespan <= least {
                return done;
            }
        }
        true
    }
}
