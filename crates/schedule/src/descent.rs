//! Greedy choice and best responses on a smooth maximum, for [`crate::overlap`].
//!
//! The largest of many loads says nothing about a move that leaves it as it is. The sum of their `p`-th
//! powers is smooth and convex, and the larger `p` is, the more it is the largest alone. Powers of two take a
//! few multiplications, and most works can be passed over by the slopes alone.

use crate::Problem;
use crate::bound::Bound;
use crate::overlap::Best;

/// Logarithm to base 2 of the powers, the first and the last.
pub const SHARPNESS: (u32, u32) = (3, 11);

/// Passes over the works of a short queue.
pub const SWEEPS: usize = 40;

/// Works of a queue that is short.
pub const SHORT: usize = 1000;

/// The same of the passes over a long queue: its works are small beside the makespan, and few passes come
/// close.
const LONG: [u32; 5] = [3, 5, 7, 9, 11];

/// Passes over a long queue after which the bound is computed: others hardly raise it.
const BOUNDS: [usize; 2] = [0, 2];

/// Share of the makespan that is not worth another pass.
pub const GOOD_ENOUGH: f64 = 1e-3;

/// What a resource has to do.
#[derive(Clone, Copy)]
struct Load {
    seconds: f64,
    /// The power of it, and its slope.
    power: f64,
    slope: f64,
}

pub(crate) struct Descent<'a> {
    problem: &'a Problem,
    /// Loads are divided by a plan's makespan, so that powers of them stay numbers.
    scale: f64,
    choices: Vec<u8>,
    /// Loads as a pass changes them.
    resources: Vec<Load>,
    /// Loads as they were when they were last computed anew.
    loads: Vec<f64>,
}

/// A time below this share of the makespan counts as nothing in a power of it.
const NOTHING: f64 = 1.0 / 64.0;

/// `x` to the power of 2 to the `sharpness`.
#[inline]
fn power(x: f64, sharpness: u32) -> f64 {
    (0..sharpness).fold(x, |y, _| y * y)
}

/// [`power`], and `x` to the power that is one less.
#[inline]
pub(crate) fn power_and_slope(x: f64, sharpness: u32) -> (f64, f64) {
    (0..sharpness).fold((x, 1.0), |(y, slope), _| (y * y, slope * y))
}

impl<'a> Descent<'a> {
    /// `makespan`: of some plan, above 0.
    pub fn new(problem: &'a Problem, makespan: f64) -> Descent<'a> {
        Descent {
            problem,
            scale: 1.0 / makespan,
            choices: vec![0; problem.works()],
            resources: Vec::new(),
            loads: problem.base.clone(),
        }
    }

    /// Offers what it finds; gives the bound that was met on the way.
    pub fn run(mut self, best: &mut Best) -> Bound<'a> {
        let order = self.order();
        let mut bound = Bound::new(self.problem);
        let (first, last) = SHARPNESS;
        self.greedy(&order, first);
        self.settle(best);
        let short = self.problem.works() <= SHORT;
        let even = (1..=SWEEPS).map(|sweep| first + ((last - first) as usize * sweep / SWEEPS) as u32);
        let powers: Vec<u32> = if short { even.collect() } else { LONG.to_vec() };
        for (sweep, sharpness) in powers.into_iter().enumerate() {
            if best.makespan <= bound.least * (1.0 + GOOD_ENOUGH) {
                break;
            }
            let moved = self.sweep(sharpness);
            if moved {
                self.settle(best);
            }
            if (moved || sweep == 0) && (short || BOUNDS.contains(&sweep)) {
                bound.with(&self.loads, sharpness, best.makespan);
            }
        }
        bound
    }

    /// Works by their shortest time alone, the longest first; of equal ones the earlier.
    fn order(&self) -> Vec<u32> {
        let size = |work: usize| (0..3).fold(f64::INFINITY, |s, n| self.problem.alone(3 * work + n).min(s));
        // The bits of a number that is not negative sort as it does. Those of an f32 leave room for the
        // work's number.
        let key = |work: usize| u64::from(!(size(work) as f32).to_bits()) << 32 | work as u64;
        let mut keys: Vec<u64> = (0..self.problem.works()).map(key).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| key as u32).collect()
    }

    /// Computes loads anew, so that no rounding adds up, and offers what there is.
    fn settle(&mut self, best: &mut Best) {
        let makespan = self.problem.loads(&self.choices, &mut self.loads);
        // No load is above 1 then, and as a sweep never raises the sum of the powers, none becomes infinite.
        self.scale = 1.0 / makespan;
        best.offer(&self.choices, &self.loads, makespan);
    }

    #[inline]
    fn load(&self, seconds: f64, sharpness: u32) -> Load {
        let (power, slope) = power_and_slope(seconds * self.scale, sharpness);
        Load { seconds, power, slope }
    }

    /// How much the potential grows if an option is added.
    #[inline]
    fn growth(&self, option: usize, sharpness: u32) -> f64 {
        let mut growth = self.own(option, sharpness);
        for one in self.problem.option(option) {
            let load = &self.resources[one.resource as usize];
            growth += power((load.seconds + one.seconds) * self.scale, sharpness) - load.power;
        }
        growth
    }

    /// What an option adds to the potential by the time it takes alone; infinite for one that there is not.
    #[inline]
    fn own(&self, option: usize, sharpness: u32) -> f64 {
        let x = self.problem.alone(option) * self.scale;
        if x < NOTHING { 0.0 } else { power(x, sharpness) }
    }

    fn best_option(&self, work: usize, sharpness: u32) -> (usize, f64) {
        let mut found: Option<(usize, f64)> = None;
        for number in 0..3 {
            let option = 3 * work + number;
            if self.problem.alone(option).is_finite() {
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

    /// Moves each work to its best option; says whether any moved.
    fn sweep(&mut self, sharpness: u32) -> bool {
        self.begin(sharpness);
        let mut moved = false;
        for work in 0..self.problem.works() {
            if !self.may_gain(work, sharpness) {
                continue;
            }
            let here = usize::from(self.choices[work]);
            self.add(3 * work + here, -1.0, sharpness);
            let stays = self.growth(3 * work + here, sharpness);
            let (number, growth) = self.best_option(work, sharpness);
            let to = if growth < stays { number } else { here };
            moved |= to != here;
            self.choices[work] = to as u8;
            self.add(3 * work + to, 1.0, sharpness);
        }
        moved
    }

    /// Whether some other option could be better. The potential is convex: a move gains at most what its
    /// slopes say.
    #[inline]
    fn may_gain(&self, work: usize, sharpness: u32) -> bool {
        let slope = self.scale * f64::from(1_u32 << sharpness);
        let price = |number: usize| {
            let option = 3 * work + number;
            let mut price = 0.0;
            for one in self.problem.option(option) {
                price += self.resources[one.resource as usize].slope * one.seconds;
            }
            price * slope + self.own(option, sharpness)
        };
        let here = usize::from(self.choices[work]);
        let now = price(here);
        (0..3).any(|number| number != here && price(number) < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Use, overlap};

    /// Worst makespan over the best, of the queues below: without the search that short queues have besides.
    const WORST: f64 = 1.37;

    #[test]
    fn short_queues_are_near_the_best_without_a_search() {
        let mut worst = 1.0_f64;
        for seed in 0..2000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut problem = Problem::new((0..5).map(|_| rng.f64()).collect()).unwrap();
            for _ in 0..8 {
                let mut one = |resource| Use { resource, seconds: rng.f64() * 4.0 };
                let uses = [[one(0), one(1)], [one(1), one(2)], [one(1), one(3 + seed as u32 % 2)]];
                problem.push([0, 1, 2].map(|i| Some(Choice { uses: &uses[i], least: 0.0 }))).unwrap();
            }
            let plan = overlap::solve(&problem);
            assert_eq!(plan.gap(), 0.0, "the search comes to its end");
            let mut best = Best::new();
            let bound = Descent::new(&problem, 32.0).run(&mut best);
            assert!(bound.least <= plan.makespan * (1.0 + 1e-12), "{} of {}", bound.least, plan.makespan);
            worst = worst.max(best.makespan / plan.makespan);
        }
        assert!(worst <= WORST, "{worst}");
        assert!(worst > 1.0, "these queues are too easy to show anything");
    }
}
