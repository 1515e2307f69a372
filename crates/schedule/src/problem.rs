//! Works, and the time that each work takes of each resource at each place.

use crate::{MAX_WORKS, Place, Places, ScheduleError, error};

/// Most resources of a problem.
pub const MAX_RESOURCES: usize = 1 << 20;

/// Most uses of all options of a problem together.
pub const MAX_USES: usize = 1 << 24;

/// Use of one resource by an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Number of the resource.
    pub resource: u32,
    /// Seconds for which the option uses the whole resource.
    pub seconds: f64,
}

/// Resources that a work uses at one place.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Used resources, usually at most 4. Several uses of the same resource are added.
    pub uses: &'a [Use],
    /// Lower bound on the time of the work, in seconds, if it runs alone. An example is a fold that cannot use
    /// all cores. The largest use is always a lower bound.
    pub min_seconds: f64,
}

/// Resources with their present load, and works. Each work runs at one of up to three places.
///
/// The data is flat: one vector of uses, and one with the start of each option's uses. A work has three options.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(crate) base: Vec<f64>,
    uses: Vec<Use>,
    /// Index at which the uses of each option begin. The last entry is the end of all uses.
    bounds: Vec<u32>,
    /// Lower bound on the seconds of each option. Infinite for an option that does not exist.
    min_seconds: Vec<f64>,
}

impl Problem {
    /// Creates a problem without works. Resource `i` is already busy for `busy[i]` seconds.
    ///
    /// # Errors
    /// Seconds that are not possible; more than [`MAX_RESOURCES`].
    pub fn new(busy: Vec<f64>) -> Result<Problem, ScheduleError> {
        error::at_most(busy.len(), MAX_RESOURCES, "resources")?;
        let known = |(resource, seconds): (usize, f64)| {
            error::seconds(seconds, || format!("the present load of resource {resource}"))
        };
        let base = busy.into_iter().enumerate().map(known).collect::<Result<_, _>>()?;
        Ok(Problem { base, uses: Vec::new(), bounds: vec![0], min_seconds: Vec::new() })
    }

    /// Adds a work with its options in the order of [`Place::ALL`]. Returns its number.
    ///
    /// # Errors
    /// No option; an unknown resource; seconds that are not possible; more than [`MAX_WORKS`] or [`MAX_USES`].
    /// The problem does not change then.
    pub fn push(&mut self, options: [Option<Choice<'_>>; 3]) -> Result<usize, ScheduleError> {
        let (uses, works) = (self.uses.len(), self.works());
        let pushed = self.try_push(works, options);
        if pushed.is_err() {
            self.uses.truncate(uses);
            self.bounds.truncate(3 * works + 1);
            self.min_seconds.truncate(3 * works);
        }
        pushed.map(|()| works)
    }

    fn try_push(&mut self, request: usize, options: [Option<Choice<'_>>; 3]) -> Result<(), ScheduleError> {
        error::at_most(request + 1, MAX_WORKS, "requests")?;
        if options.iter().all(Option::is_none) {
            return Err(ScheduleError::NoPlace { request });
        }
        for (place, option) in Place::ALL.into_iter().zip(options) {
            let min_seconds = match option {
                None => f64::INFINITY,
                Some(choice) => {
                    let takes = || format!("the time of request {request} at {place}");
                    let min_seconds = error::seconds(choice.min_seconds, takes)?;
                    min_seconds.max(self.push_uses(request, choice.uses, takes)?)
                }
            };
            self.min_seconds.push(min_seconds);
            self.bounds.push(self.uses.len() as u32);
        }
        Ok(())
    }

    /// Adds the uses of one option, with each resource once and without uses of 0 s. Returns the largest.
    fn push_uses(
        &mut self,
        request: usize,
        uses: &[Use],
        takes: impl Fn() -> String,
    ) -> Result<f64, ScheduleError> {
        let begin = self.uses.len();
        error::at_most(begin + uses.len(), MAX_USES, "uses of resources")?;
        for one in uses {
            let seconds = error::seconds(one.seconds, &takes)?;
            if one.resource as usize >= self.base.len() {
                let (number, count) = (one.resource as usize, self.base.len());
                return Err(ScheduleError::Unknown { request, what: "resource", number, count });
            }
            if seconds > 0.0 {
                self.uses.push(*one);
            }
        }
        if let Some(new) = self.uses.get_mut(begin..) {
            // The sort is stable, so uses of one resource are added in their original order.
            new.sort_by_key(|one| one.resource);
        }
        let mut kept = begin;
        for i in begin..self.uses.len() {
            let one = self.uses[i];
            if kept > begin && self.uses[kept - 1].resource == one.resource {
                self.uses[kept - 1].seconds += one.seconds;
            } else {
                self.uses[kept] = one;
                kept += 1;
            }
        }
        self.uses.truncate(kept);
        let mut most = 0.0_f64;
        for one in self.uses.get(begin..).unwrap_or_default() {
            most = most.max(error::seconds(one.seconds, &takes)?);
        }
        Ok(most)
    }

    /// Number of works.
    pub fn works(&self) -> usize {
        self.min_seconds.len() / 3
    }

    /// Number of resources.
    pub fn resources(&self) -> usize {
        self.base.len()
    }

    /// The places at which a work may run. Empty if there is no such work.
    pub fn places(&self, work: usize) -> Places {
        Place::ALL.into_iter().filter(|place| self.min_seconds(work, *place).is_some()).collect()
    }

    /// Uses of resources by a work at a place. Empty if there is no such option.
    pub fn uses(&self, work: usize, place: Place) -> &[Use] {
        if work < self.works() { self.option(3 * work + place.number()) } else { &[] }
    }

    /// Lower bound on the seconds of a work at a place. `None` if there is no such option.
    pub fn min_seconds(&self, work: usize, place: Place) -> Option<f64> {
        let found = self.min_seconds.get(work.checked_mul(3)? + place.number()).copied();
        found.filter(|seconds| seconds.is_finite())
    }

    /// Uses of option `number`. A work has three options.
    #[inline]
    pub(crate) fn option(&self, number: usize) -> &[Use] {
        let [begin, end] = [self.bounds[number], self.bounds[number + 1]];
        &self.uses[begin as usize..end as usize]
    }

    /// Lower bound on the seconds of option `number`. Infinite if there is no such option.
    #[inline]
    pub(crate) fn option_seconds(&self, number: usize) -> f64 {
        self.min_seconds[number]
    }

    /// Computes the load of each resource with these choices. Returns the makespan: the largest of the loads and
    /// of the lower bounds of the chosen options.
    pub(crate) fn loads(&self, choices: &[u8], loads: &mut Vec<f64>) -> f64 {
        loads.clear();
        loads.extend_from_slice(&self.base);
        let mut longest = 0.0_f64;
        for (work, choice) in choices.iter().enumerate() {
            let number = 3 * work + usize::from(*choice);
            longest = longest.max(self.min_seconds[number]);
            for one in self.option(number) {
                loads[one.resource as usize] += one.seconds;
            }
        }
        loads.iter().fold(longest, |most, load| most.max(*load))
    }

    /// Load of each resource, and the makespan, if the works run at these places. `None` if a work cannot run at
    /// its place, or if the number of places is not the number of works.
    pub fn outcome(&self, places: &[Place]) -> Option<(Vec<f64>, f64)> {
        let may = |(work, place): (usize, &Place)| self.min_seconds(work, *place).is_some();
        if places.len() != self.works() || !places.iter().enumerate().all(may) {
            return None;
        }
        let choices: Vec<u8> = places.iter().map(|place| place.number() as u8).collect();
        let mut loads = Vec::new();
        let makespan = self.loads(&choices, &mut loads);
        Some((loads, makespan))
    }

    /// Puts each work at this place, or at its first possible place if it cannot run there.
    pub fn all_at(&self, place: Place) -> Vec<Place> {
        let at = |work| {
            let places = self.places(work);
            if places.has(place) { place } else { places.iter().next().unwrap_or(place) }
        };
        (0..self.works()).map(at).collect()
    }
}
