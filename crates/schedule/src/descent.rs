//! Greedy choice and best responses for a smooth maximum, for [`crate::overlap`].
//!
//! The largest load does not rate a move that leaves it unchanged. The sum of the `p`-th powers of the loads, the
//! *potential*, is smooth and convex. The larger `p` is, the more the largest load determines it. If `p` is a power
//! of two, a few multiplications are enough. The slopes alone show that most works cannot gain.

use crate::Problem;
use crate::bound::Bound;
use crate::overlap::BestChoices;

/// Logarithm to base 2 of the first and the last power.
pub const SHARPNESS: (u32, u32) = (3, 11);

/// Passes over the works of a short queue.
pub const SWEEPS: usize = 40;

/// Largest number of works of a short queue.
pub const SHORT_QUEUE: usize = 1000;

/// Logarithms to base 2 of the powers for a long queue. Its works are small compared to the makespan, so few passes
/// come close to the optimum.
const LONG_SHARPNESS: [u32; 5] = [3, 5, 7, 9, 11];

/// Passes over a long queue after which the bound is computed. Other passes hardly raise it.
const BOUND_PASSES: [usize; 2] = [0, 2];

/// Gap, as a share of the bound, at which the passes end.
pub const GOOD_ENOUGH: f64 = 1e-3;

/// Load of a resource.
#[derive(Clone, Copy)]
struct Load {
    seconds: f64,
    /// Power of the scaled load, and the slope of the power.
    power: f64,
    slope: f64,
}

pub(crate) struct Descent<'a> {
    problem: &'a Problem,
    /// Factor on loads: one over a plan's makespan, so that their powers stay finite.
    scale: f64,
    choices: Vec<u8>,
    /// Loads during a pass.
    resources: Vec<Load>,
    /// Loads when they were last computed from all choices.
    loads: Vec<f64>,
}

/// Share of the makespan below which the power of a time counts as 0.
const NEGLIGIBLE: f64 = 1.0 / 64.0;

/// `x` to the power of `2^sharpness`.
#[inline]
fn power(x: f64, sharpness: u32) -> f64 {
    (0..sharpness).fold(x, |y, _| y * y)
}

/// [`power`], and `x` to the power of `2^sharpness - 1`.
#[inline]
pub(crate) fn power_and_slope(x: f64, sharpness: u32) -> (f64, f64) {
    (0..sharpness).fold((x, 1.0), |(y, slope), _| (y * y, slope * y))
}

impl<'a> Descent<'a> {
    /// `makespan` is the one of some plan, above 0.
    pub fn new(problem: &'a Problem, makespan: f64) -> Descent<'a> {
        Descent {
            problem,
            scale: 1.0 / makespan,
            choices: vec![0; problem.works()],
            resources: Vec::new(),
            loads: problem.base.clone(),
        }
    }

    /// Offers plans to `best`. Returns the largest lower bound that it found.
    pub fn run(mut self, best: &mut BestChoices) -> Bound<'a> {
        let order = self.order();
        let mut bound = Bound::new(self.problem);
        let (first, last) = SHARPNESS;
        self.greedy(&order, first);
        self.recompute(best);
        let short = self.problem.works() <= SHORT_QUEUE;
        let even = (1..=SWEEPS).map(|sweep| first + ((last - first) as usize * sweep / SWEEPS) as u32);
        let powers: Vec<u32> = if short { even.collect() } else { LONG_SHARPNESS.to_vec() };
        for (sweep, sharpness) in powers.into_iter().enumerate() {
            if best.makespan <= bound.lower_bound * (1.0 + GOOD_ENOUGH) {
                break;
            }
            let moved = self.sweep(sharpness);
            if moved {
                self.recompute(best);
            }
            if (moved || sweep == 0) && (short || BOUND_PASSES.contains(&sweep)) {
                bound.raise(&self.loads, sharpness, best.makespan);
            }
        }
        bound
    }

    /// Works by the least lower bound of their options, the largest first. Equal works stay in order.
    fn order(&self) -> Vec<u32> {
        let size =
            |work: usize| (0..3).fold(f64::INFINITY, |s, n| self.problem.option_seconds(3 * work + n).min(s));
        // The bits of a number that is not negative have the same order as the number. The bits of an f32 leave
        // room for the work's number.
        let key = |work: usize| u64::from(!(size(work) as f32).to_bits()) << 32 | work as u64;
        let mut keys: Vec<u64> = (0..self.problem.works()).map(key).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| key as u32).collect()
    }

    /// Computes the loads from all choices, so that rounding errors do not add up. Offers the plan.
    fn recompute(&mut self, best: &mut BestChoices) {
        let makespan = self.problem.loads(&self.choices, &mut self.loads);
        // Then no scaled load is above 1. A sweep never raises the sum of the powers, so no power becomes infinite.
        self.scale = 1.0 / makespan;
        best.offer(&self.choices, &self.loads, makespan);
    }

    #[inline]
    fn load(&self, seconds: f64, sharpness: u32) -> Load {
        let (power, slope) = power_and_slope(seconds * self.scale, sharpness);
        Load { seconds, power, slope }
    }

    /// Growth of the potential if an option is added.
    #[inline]
    fn growth(&self, option: usize, sharpness: u32) -> f64 {
        let mut growth = self.own_power(option, sharpness);
        for one in self.problem.option(option) {
            let load = &self.resources[one.resource as usize];
            growth += power((load.seconds + one.seconds) * self.scale, sharpness) - load.power;
        }
        growth
    }

    /// Part of the potential for the option's lower bound. Infinite if there is no such option.
    #[inline]
    fn own_power(&self, option: usize, sharpness: u32) -> f64 {
        let x = self.problem.option_seconds(option) * self.scale;
        if x < NEGLIGIBLE { 0.0 } else { power(x, sharpness) }
    }

    fn best_option(&self, work: usize, sharpness: u32) -> (usize, f64) {
        let mut found: Option<(usize, f64)> = None;
        for number in 0..3 {
            let option = 3 * work + number;
            if self.problem.option_seconds(option).is_finite() {
                let growth = self.growth(option, sharpness);
                if found.is_none_or(|(_, least)| growth < least) {
                    found = Some((number, growth));
                }
            }
        }
        found.unwrap_or((0, f64::INFINITY))
    }

    fn begin(&mut self, sharpness: u32) {
        self.resources = self.loads.iter().map(|seconds| self.load(*seconds, sharpness)).collect();
    }

    fn greedy(&mut self, order: &[u32], sharpness: u32) {
        self.begin(sharpness);
        for work in order {
            let work = *work as usize;
            let number = self.best_option(work, sharpness).0;
            self.choices[work] = number as u8;
            self.add(3 * work + number, 1.0, sharpness);
        }
    }

    #[inline]
    fn add(&mut self, option: usize, sign: f64, sharpness: u32) {
        let problem = self.problem;
        for one in problem.option(option) {
            let resource = one.resource as usize;
            let seconds = (self.resources[resource].seconds + sign * one.seconds).max(0.0);
            self.resources[resource] = self.load(seconds, sharpness);
        }
    }

    /// Moves each work to its best option. Returns whether a work moved.
    fn sweep(&mut self, sharpness: u32) -> bool {
        self.begin(sharpness);
        let mut moved = false;
        for work in 0..self.problem.works() {
            if !self.may_gain(work, sharpness) {
                continue;
            }
            let current = usize::from(self.choices[work]);
            self.add(3 * work + current, -1.0, sharpness);
            let stays = self.growth(3 * work + current, sharpness);
            let (number, growth) = self.best_option(work, sharpness);
            let to = if growth < stays { number } else { current };
            moved |= to != current;
            self.choices[work] = to as u8;
            self.add(3 * work + to, 1.0, sharpness);
        }
        moved
    }

    /// Whether another option could be better. The potential is convex, so its slopes are an upper bound on the gain
    /// of a move.
    #[inline]
    fn may_gain(&self, work: usize, sharpness: u32) -> bool {
        let slope = self.scale * f64::from(1_u32 << sharpness);
        let price = |number: usize| {
            let option = 3 * work + number;
            let mut price = 0.0;
            for one in self.problem.option(option) {
                price += self.resources[one.resource as usize].slope * one.seconds;
            }
            price * slope + self.own_power(option, sharpness)
        };
        let current = usize::from(self.choices[work]);
        let current_price = price(current);
        (0..3).any(|number| number != current && price(number) < current_price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Use, overlap};

    /// Largest ratio of the makespan to the optimum for the queues below. The search for short queues is left out.
    const WORST: f64 = 1.37;

    #[test]
    fn short_queues_are_near_the_optimum_without_a_search() {
        let mut worst = 1.0_f64;
        for seed in 0..2000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut problem = Problem::new((0..5).map(|_| rng.f64()).collect()).unwrap();
            for _ in 0..8 {
                let mut one = |resource| Use { resource, seconds: rng.f64() * 4.0 };
                let uses = [[one(0), one(1)], [one(1), one(2)], [one(1), one(3 + seed as u32 % 2)]];
                problem.push([0, 1, 2].map(|i| Some(Choice { uses: &uses[i], min_seconds: 0.0 }))).unwrap();
            }
            let plan = overlap::solve(&problem);
            assert_eq!(plan.gap(), 0.0, "the search did not come to its end");
            let mut best = BestChoices::new();
            let bound = Descent::new(&problem, 32.0).run(&mut best);
            assert!(
                bound.lower_bound <= plan.makespan * (1.0 + 1e-12),
                "{} of {}",
                bound.lower_bound,
                plan.makespan
            );
            worst = worst.max(best.makespan / plan.makespan);
        }
        assert!(worst <= WORST, "{worst}");
        assert!(worst > 1.0, "the queues are too easy for this test");
    }
}
