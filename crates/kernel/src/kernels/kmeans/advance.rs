//! The steps between the passes of k-means: from the totals of a pass to the plan of the next one, or to the answer.

use std::sync::Arc;

use super::assign::ClusterTotals;
use super::phase::{PassPlan, Phase};
use super::survey::SurveyFold;
use super::{Init, Kmeans, NAME, cells, draw};
use crate::{Ctx, DType, KernelError, Next, Value};

impl Kmeans {
    pub(super) fn bad(&self, why: &str) -> KernelError {
        KernelError::BadState { kernel: NAME, why: why.into() }
    }

    pub(super) fn plan(&self, ctx: &Ctx) -> Result<PassPlan, KernelError> {
        if ctx.round == 0 {
            Ok(PassPlan::survey())
        } else {
            PassPlan::decode(&ctx.shared, self.k * self.dims)
        }
    }

    pub(super) fn totals(&self, exponent: i32, whole: &[u8]) -> Result<ClusterTotals, KernelError> {
        let mut totals = ClusterTotals::new(self.k, self.dims, exponent);
        totals.merge(whole)?;
        Ok(totals)
    }

    /// Numbers of the points that the first pass picks.
    pub(super) fn points_to_pick(&self, ctx: &Ctx) -> Result<Arc<[u64]>, KernelError> {
        let (first, n, k) = (ctx.extent.start, ctx.extent.end - ctx.extent.start, self.k as u64);
        if n < k {
            let why = format!("k={k} centres need as many points, but there are {n}");
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        Ok(match self.init {
            Init::First => (first..first + k).collect(),
            Init::Random => draw::sample(self.seed, n, k).iter().map(|x| first + x).collect(),
            Init::PlusPlus => draw::sample(self.seed, n, 1).iter().map(|x| first + x).collect(),
            Init::Centres(_) => Arc::from([]),
        })
    }

    pub(super) fn after_survey(&self, whole: &[u8]) -> Result<Next, KernelError> {
        let (largest, picks) = SurveyFold::decode(whole, self.dims, self.k)?;
        let centres: Vec<f64> = match &self.init {
            Init::Centres(centres) => centres.to_vec(),
            _ => picks.into_iter().flat_map(|pick| pick.point).collect(),
        };
        let largest = centres.iter().fold(largest, |largest, x| largest.max(x.abs()));
        // Squares of distances must not overflow.
        let exponent = cells::exponent(largest).filter(|e| *e <= MAX_EXPONENT);
        let exponent = exponent.ok_or_else(|| KernelError::Domain {
            kernel: NAME,
            why: format!("the largest coordinate is {largest:e}, and squares of such distances overflow f64; scale the data"),
        })?;
        let expected = if matches!(self.init, Init::PlusPlus) { 1 } else { self.k };
        if centres.len() != expected * self.dims {
            return Err(self.bad("points were not picked"));
        }
        Ok(self.after_seed(exponent, centres))
    }

    /// Picks one more first centre if some are missing, or begins the first iteration.
    pub(super) fn after_seed(&self, exponent: i32, centres: Vec<f64>) -> Next {
        let phase = match centres.len() < self.k * self.dims {
            true => Phase::Seed,
            false => Phase::Assign { iteration: 1, max_shift: None, previous: None },
        };
        Next::Again(PassPlan { phase, exponent, centres }.encode())
    }

    pub(super) fn after_assignment(
        &self,
        iteration: u64,
        max_shift: Option<f64>,
        changes_counted: bool,
        totals: &ClusterTotals,
        exponent: i32,
        centres: Vec<f64>,
    ) -> Next {
        let moved = self.new_centres(&centres, totals);
        let max_shift =
            max_shift.unwrap_or_else(|| self.tol * mean_variance(&moved, &centres, totals, self.dims));
        let shift: f64 = moved.iter().zip(&centres).map(|(new, old)| (new - old) * (new - old)).sum();
        let n = totals.points();
        let few_changed =
            self.delta.is_some_and(|delta| changes_counted && totals.changed as f64 <= delta * n as f64);
        let unchanged = moved == centres;
        if unchanged && !self.labels {
            // The totals are already those of the final centres.
            return Next::Done(self.answer(&centres, totals, iteration));
        }
        if unchanged || few_changed || shift <= max_shift || iteration >= self.max_iter {
            let phase = Phase::Finish { iterations: iteration };
            let shared = PassPlan { phase, exponent, centres: moved }.encode();
            return if self.labels { Next::Last(shared) } else { Next::Again(shared) };
        }
        let previous = self.delta.is_some().then_some(centres);
        let phase = Phase::Assign { iteration: iteration + 1, max_shift: Some(max_shift), previous };
        Next::Again(PassPlan { phase, exponent, centres: moved }.encode())
    }

    /// The means of the points of each centre. A centre without points stays.
    pub(super) fn new_centres(&self, centres: &[f64], totals: &ClusterTotals) -> Vec<f64> {
        let mean = |(at, old): (usize, &f64)| match totals.counts[at / self.dims] {
            0 => *old,
            count => totals.sums.quotient(at, count),
        };
        centres.iter().enumerate().map(mean).collect()
    }

    pub(super) fn answer(&self, centres: &[f64], totals: &ClusterTotals, iterations: u64) -> Value {
        let floats = |point: &[f64]| Value::List(point.iter().map(|x| Value::float(*x)).collect());
        let mut values = vec![
            ("centers", Value::List(centres.chunks_exact(self.dims).map(floats).collect())),
            ("counts", Value::List(totals.counts.iter().map(|n| Value::from(*n)).collect())),
            ("inertia", Value::float(totals.inertia.quotient(0, 1))),
            ("iterations", iterations.into()),
        ];
        if self.labels {
            let points = totals.points();
            values.push(("shape", Value::List(vec![points.into()])));
            values.push(("type", Value::Text(DType::I32.name().into())));
        }
        Value::Map(values)
    }
}

/// Largest exponent of a coordinate. With it squared distances in 2^16 dimensions are below 2^900.
const MAX_EXPONENT: i32 = 440;

/// The mean over the dimensions of the variances of all points. It is computed from the totals of some centres: the
/// variance within each cluster about its mean, and the variance of these means about the mean of all points.
fn mean_variance(means: &[f64], centres: &[f64], totals: &ClusterTotals, dims: usize) -> f64 {
    let n = totals.points();
    let weighted = |at: usize, x: f64| totals.counts[at / dims] as f64 * x;
    let mut middle = vec![0.0; dims];
    for (at, mean) in means.iter().enumerate() {
        middle[at % dims] += weighted(at, *mean) / n.max(1) as f64;
    }
    // The points of a cluster vary less about their mean than about their centre. The difference for each point is the
    // squared distance of mean and centre.
    let mut sum = totals.inertia.quotient(0, 1);
    for (at, (mean, centre)) in means.iter().zip(centres).enumerate() {
        let (apart, off) = (mean - centre, mean - middle[at % dims]);
        sum += weighted(at, off * off - apart * apart);
    }
    sum.max(0.0) / n.max(1) as f64 / dims as f64
}
