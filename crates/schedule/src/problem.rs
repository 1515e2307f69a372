//! Works, and what each of them would take of which resource at which place.

use crate::{MAX_WORKS, Place, Places, ScheduleError, error};

/// Most resources of a problem.
pub const MAX_RESOURCES: usize = 1 << 20;

/// Most uses of all options of a problem together.
pub const MAX_USES: usize = 1 << 24;

/// What an option takes of one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Number of the resource.
    pub resource: u32,
    /// Seconds for which it takes the whole resource.
    pub seconds: f64,
}

/// What a work takes at one place.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Resources; usually at most 4. What names the same one twice adds up.
    pub uses: &'a [Use],
    /// Seconds that it takes even if nobody else is there, such as of a fold that cannot use all cores. Its
    /// largest use is such a time in any case.
    pub least: f64,
}

/// Resources with what they have to do already, and works of which each is to run at one of up to three
/// places.
///
/// Kept flat: one vector of uses and one of where they begin, three options to a work.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(crate) base: Vec<f64>,
    uses: Vec<Use>,
    /// Where the uses of each option begin, and at last where they end.
    bounds: Vec<u32>,
    /// Seconds that each option takes at least, infinite for those that there are not.
    least: Vec<f64>,
}

impl Problem {
    /// No works, and resources that are busy for so many seconds already.
    ///
    /// # Errors
    /// Seconds that cannot be; more than [`MAX_RESOURCES`].
    pub fn new(busy: Vec<f64>) -> Result<Problem, ScheduleError> {
        error::at_most(busy.len(), MAX_RESOURCES, "resources")?;
        let known = |(resource, seconds): (usize, f64)| {
            error::seconds(seconds, || format!("what resource {resource} has to do already"))
        };
        let base = busy.into_iter().enumerate().map(known).collect::<Result<_, _>>()?;
        Ok(Problem { base, uses: Vec::new(), bounds: vec![0], least: Vec::new() })
    }

    /// Adds a work, with its options in the order of [`Place::ALL`]; gives its number.
    ///
    /// # Errors
    /// No option; a resource that is not there; seconds that cannot be; more than [`MAX_WORKS`] or
    /// [`MAX_USES`]. The problem is then as it was.
    pub fn push(&mut self, options: [Option<Choice<'_>>; 3]) -> Result<usize, ScheduleError> {
        let (uses, works) = (self.uses.len(), self.works());
        let pushed = self.try_push(works, options);
        if pushed.is_err() {
            self.uses.truncate(uses);
            self.bounds.truncate(3 * works + 1);
            self.least.truncate(3 * works);
        }
        pushed.map(|()| works)
    }

    fn try_push(&mut self, request: usize, options: [Option<Choice<'_>>; 3]) -> Result<(), ScheduleError> {
        error::at_most(request + 1, MAX_WORKS, "requests")?;
        if options.iter().all(Option::is_none) {
            return Err(ScheduleError::Nowhere { request });
        }
        for (place, option) in Place::ALL.into_iter().zip(options) {
            let least = match option {
                None => f64::INFINITY,
                Some(choice) => {
                    let takes = || format!("what request {request} takes at {place}");
                    let least = error::seconds(choice.least, takes)?;
                    least.max(self.push_uses(request, choice.uses, takes)?)
                }
            };
            self.least.push(least);
            self.bounds.push(self.uses.len() as u32);
        }
        Ok(())
    }

    /// Adds the uses of one option, each resource once and without those of no time; gives the largest.
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
            // A stable sort: what names a resource twice is added in the order given.
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

    /// How many works there are.
    pub fn works(&self) -> usize {
        self.least.len() / 3
    }

    /// How many resources there are.
    pub fn resources(&self) -> usize {
        self.base.len()
    }

    /// The places at which a work may run; none if there is no such work.
    pub fn places(&self, work: usize) -> Places {
        Place::ALL.into_iter().filter(|place| self.least(work, *place).is_some()).collect()
    }

    /// What a work takes of each resource at a place; empty where there is no such option.
    pub fn uses(&self, work: usize, place: Place) -> &[Use] {
        if work < self.works() { self.option(3 * work + place.number()) } else { &[] }
    }

    /// Seconds that a work takes at a place if nobody else is there; none where there is no such option.
    pub fn least(&self, work: usize, place: Place) -> Option<f64> {
        let found = self.least.get(work.checked_mul(3)? + place.number()).copied();
        found.filter(|seconds| seconds.is_finite())
    }

    /// The uses of option `number`, three to a work.
    #[inline]
    pub(crate) fn option(&self, number: usize) -> &[Use] {
        let [begin, end] = [self.bounds[number], self.bounds[number + 1]];
        &self.uses[begin as usize..end as usize]
    }

    /// Seconds of option `number` alone; infinite if there is none.
    #[inline]
    pub(crate) fn alone(&self, number: usize) -> f64 {
        self.least[number]
    }

    /// What each resource has to do with these choices, and how long all of it takes: the largest of that and
    /// of what each work takes alone.
    pub(crate) fn loads(&self, choices: &[u8], loads: &mut Vec<f64>) -> f64 {
        loads.clear();
        loads.extend_from_slice(&self.base);
        let mut longest = 0.0_f64;
        for (work, choice) in choices.iter().enumerate() {
            let number = 3 * work + usize::from(*choice);
            longest = longest.max(self.least[number]);
            for one in self.option(number) {
                loads[one.resource as usize] += one.seconds;
            }
        }
        loads.iter().fold(longest, |most, load| most.max(*load))
    }

    /// What each resource has to do, and when all is done, if works run at these places; none if one of them
    /// cannot, or for another number of places than of works.
    pub fn outcome(&self, places: &[Place]) -> Option<(Vec<f64>, f64)> {
        let may = |(work, place): (usize, &Place)| self.least(work, *place).is_some();
        if places.len() != self.works() || !places.iter().enumerate().all(may) {
            return None;
        }
        let choices: Vec<u8> = places.iter().map(|place| place.number() as u8).collect();
        let mut loads = Vec::new();
        let makespan = self.loads(&choices, &mut loads);
        Some((loads, makespan))
    }

    /// Every work at this place, or at the first that it has.
    pub fn all_at(&self, place: Place) -> Vec<Place> {
        let at = |work| {
            let places = self.places(work);
            if places.has(place) { place } else { places.iter().next().unwrap_or(place) }
        };
        (0..self.works()).map(at).collect()
    }
}
