//! Lower bound on the makespan of all plans, for [`crate::overlap`].
//!
//! Take weights `w_r >= 0` of the resources with the sum 1. A makespan is at least each load. So it is at least
//! their weighted mean: `T >= sum_r w_r base_r + sum over works of sum_r w_r u_r` for the chosen options. The
//! right side is smallest if each work has the option with the least `sum_r w_r u_r`. This is a lower bound for
//! any weights. The best weights give the optimum of the linear program in which works may be split.
//!
//! If works are small compared to the makespan, best responses to a sum of powers of the loads come close to
//! that optimum. The slopes of the sum are then close to the best weights. So the slopes of each pass are tried
//! as weights. Options that alone take longer than a plan are not part of a better plan, so they are left out.

use crate::Problem;
use crate::descent::power_and_slope;

/// Upper bound on the relative rounding error of a sum over all uses.
pub(crate) const ROUNDING: f64 = 1e-9;

pub(crate) struct Bound<'a> {
    problem: &'a Problem,
    /// Largest lower bound so far, in seconds.
    pub lower_bound: f64,
    weights: Vec<f64>,
    candidate: Vec<f64>,
}

impl<'a> Bound<'a> {
    /// Begins with the larger of two bounds: the present load of the busiest resource, and the end of the work that
    /// ends last if each work runs alone at its best place.
    pub fn new(problem: &'a Problem) -> Bound<'a> {
        let busiest = problem.base.iter().fold(0.0_f64, |most, load| most.max(*load));
        let end_time = |option: usize| {
            let uses = problem.option(option).iter();
            uses.fold(problem.option_seconds(option), |most, one| {
                most.max(problem.base[one.resource as usize] + one.seconds)
            })
        };
        let best =
            |work: usize| (0..3).fold(f64::INFINITY, |shortest, n| shortest.min(end_time(3 * work + n)));
        let lower_bound = (0..problem.works()).map(best).fold(busiest, f64::max);
        Bound { problem, lower_bound, weights: Vec::new(), candidate: Vec::new() }
    }

    /// Raises the bound, if possible. The weights are the slopes of the sum of the `2^sharpness`-th powers of these
    /// loads. `makespan` is the one of a plan.
    pub fn raise(&mut self, loads: &[f64], sharpness: u32, makespan: f64) {
        let most = loads.iter().fold(0.0_f64, |most, load| most.max(*load));
        self.candidate.clear();
        self.candidate.extend(loads.iter().map(|load| power_and_slope(load / most, sharpness).1));
        let sum: f64 = self.candidate.iter().sum();
        self.candidate.iter_mut().for_each(|weight| *weight /= sum);
        let busy = self.problem.base.iter().zip(&self.candidate).map(|(load, weight)| load * weight);
        let works = 0..self.problem.works();
        let all: f64 =
            busy.sum::<f64>() + works.map(|work| self.price(&self.candidate, work, makespan)).sum::<f64>();
        // Sums of many numbers are rounded, and the result must still be a lower bound.
        let bound = all * (1.0 - ROUNDING);
        if self.weights.is_empty() || bound > self.lower_bound {
            std::mem::swap(&mut self.weights, &mut self.candidate);
        }
        self.lower_bound = self.lower_bound.max(bound);
    }

    /// Least cost of a work with these weights in a plan that is not longer than `makespan`.
    fn price(&self, weights: &[f64], work: usize, makespan: f64) -> f64 {
        let mut cheapest = f64::INFINITY;
        for option in 3 * work..3 * work + 3 {
            if self.problem.option_seconds(option) <= makespan {
                let uses = self.problem.option(option).iter();
                let price = uses.fold(0.0, |sum, one| sum + weights[one.resource as usize] * one.seconds);
                cheapest = cheapest.min(price);
            }
        }
        cheapest
    }

    /// Weights of the largest bound. Empty if none were tried.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Least cost of a work with [`Bound::weights`].
    pub fn cheapest(&self, work: usize, makespan: f64) -> f64 {
        self.price(&self.weights, work, makespan)
    }
}
