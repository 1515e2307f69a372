//! Costs of works at other places.

use super::Cost;
use crate::{Place, Problem};

/// Computes the cost of each work at each place, if all other works stay at their places.
pub(super) fn costs(problem: &Problem, places: &[Place]) -> Vec<[Option<Cost>; 3]> {
    let Some((mut loads, _)) = problem.outcome(places) else { return Vec::new() };
    let (mut costs, mut before) = (Vec::with_capacity(places.len()), Vec::new());
    for (work, current) in places.iter().enumerate() {
        let taken = problem.uses(work, *current);
        before.clear();
        before.extend(taken.iter().map(|one| loads[one.resource as usize]));
        for one in taken {
            let load = &mut loads[one.resource as usize];
            *load = (*load - one.seconds).max(0.0);
        }
        costs.push(Place::ALL.map(|place| {
            let alone = problem.min_seconds(work, place)?;
            let uses = problem.uses(work, place).iter();
            let queued = uses.fold(alone, |most, one| most.max(loads[one.resource as usize] + one.seconds));
            Some(Cost { alone, queued })
        }));
        for (one, load) in taken.iter().zip(&before) {
            loads[one.resource as usize] = *load;
        }
    }
    costs
}
