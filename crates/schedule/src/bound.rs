//! What no plan can be below, for [`crate::overlap`].
//!
//! Take weights `w_r >= 0` of the resources that add up to 1. A makespan is at least each load, so it is at
//! least their weighted mean: `T >= sum_r w_r base_r + sum over works of sum_r w_r u_r` for the options
//! taken, which is not below what it is if each work takes its option with the least `sum_r w_r u_r`. That
//! holds for any weights, and the best ones give the optimum of the linear program in which works may be
//! split. Where works are small beside the makespan, the best answers to a sum of powers of the loads split
//! them nearly so, and its slopes are nearly the best weights; they are what is tried, as they come. Options
//! that alone take longer than a plan are no part of a better one and are left out.

use crate::Problem;
use crate::descent::power_and_slope;

/// More than what the rounding of a sum over all uses can be.
pub(crate) const ROUNDING: f64 = 1e-9;

pub(crate) struct Bound<'a> {
    problem: &'a Problem,
    /// The largest bound so far.
    pub least: f64,
    weights: Vec<f64>,
    tried: Vec<f64>,
}

impl<'a> Bound<'a> {
    /// Begins with the busiest resource before anything is given to it, and the work that is done last at its
    /// best place.
    pub fn new(problem: &'a Problem) -> Bound<'a> {
        let busiest = problem.base.iter().fold(0.0_f64, |most, load| most.max(*load));
        let ends = |option: usize| {
            let uses = problem.option(option).iter();
            uses.fold(problem.alone(option), |most, one| {
                most.max(problem.base[one.resource as usize] + one.seconds)
            })
        };
        let best = |work: usize| (0..3).fold(f64::INFINITY, |least, n| least.min(ends(3 * work + n)));
        let least = (0..problem.works()).map(best).fold(busiest, f64::max);
        Bound { problem, least, weights: Vec::new(), tried: Vec::new() }
    }

    /// Tries the weights that are the slopes of the sum of `2^sharpness`-th powers of these loads.
    /// `makespan`: of a plan.
    pub fn with(&mut self, loads: &[f64], sharpness: u32, makespan: f64) {
        let most = loads.iter().fold(0.0_f64, |most, load| most.max(*load));
        self.tried.clear();
        self.tried.extend(loads.iter().map(|load| power_and_slope(load / most, sharpness).1));
        let sum: f64 = self.tried.iter().sum();
        self.tried.iter_mut().for_each(|weight| *weight /= sum);
        let busy = self.problem.base.iter().zip(&self.tried).map(|(load, weight)| load * weight);
        let works = 0..self.problem.works();
        let all: f64 =
            busy.sum::<f64>() + works.map(|work| self.price(&self.tried, work, makespan)).sum::<f64>();
        // Sums of many numbers are rounded; what is said to be a bound must be one.
        let bound = all * (1.0 - ROUNDING);
        if self.weights.is_empty() || bound > self.least {
            std::mem::swap(&mut self.weights, &mut self.tried);
        }
        self.least = self.least.max(bound);
    }

    /// What a work costs at least with these weights, as a part of a plan that is not longer than `makespan`.
    fn price(&self, weights: &[f64], work: usize, makespan: f64) -> f64 {
        let mut cheapest = f64::INFINITY;
        for option in 3 * work..3 * work + 3 {
            if self.problem.alone(option) <= makespan {
                let uses = self.problem.option(option).iter();
                let price = uses.fold(0.0, |sum, one| sum + weights[one.resource as usize] * one.seconds);
                cheapest = cheapest.min(price);
            }
        }
        cheapest
    }

    /// The weights of the largest bound, if any were tried.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What a work costs at least with [`Bound::weights`].
    pub fn cheapest(&self, work: usize, makespan: f64) -> f64 {
        self.price(&self.weights, work, makespan)
    }
}
