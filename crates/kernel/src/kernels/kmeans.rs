//! `kmeans`: clusters by Lloyd's algorithm, in as many passes as it needs (Lloyd: Least squares quantization in PCM,
//! 1982; on storage servers: Son et al. 2010).
//!
//! A pass assigns each point to its nearest centre and adds up the points of each centre. The totals of all points give
//! the next centres, which are broadcast. Distances are computed in `f64`, in one order of operations, and sums are on
//! a fixed grid (`cells`). So the bits do not depend on where the points are.

mod assign;
mod cells;
mod draw;
mod nearest;
mod phase;
mod point_reader;
mod survey;

use std::sync::Arc;

use self::assign::{AssignFold, ClusterTotals};
use self::nearest::Centres;
use self::phase::{PassPlan, Phase};
use self::point_reader::PointReader;
use self::survey::{SeedFold, SurveyFold};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::{
    Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Output, ParamDecl, ParamKind,
    Params, Passes, Spec, Value,
};

const NAME: &str = "kmeans";

/// Most centres times dimensions.
const MAX_CELLS: u64 = 1 << 18;

const fn number(
    name: &'static str,
    min: u64,
    max: u64,
    help: &'static str,
    example: &'static str,
) -> ParamDecl {
    ParamDecl { name, kind: ParamKind::Int { min, max }, default: None, required: true, help, example }
}

const WORDS: &[&str] = &["kmeans++", "first", "random"];

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "clusters of points by Lloyd's algorithm",
    details: "Each record is a point of `dims` coordinates. A point belongs to the nearest centre (squared Euclidean \
              distance in f64), or to the first of several nearest centres. A centre without points stays where it \
              is. The iterations end after max_iter, when the squared moves of all centres together are at most tol \
              times the mean variance of the coordinates (as in scikit-learn), or when at most the share delta of \
              the points changed its centre. counts, inertia and labels are those of the centres in the answer. \
              init=kmeans++ takes k - 1 more passes. init=FILE reads k x dims values of the file's own type, centre \
              by centre. Sums of coordinates are rounded to 2^-80 of the largest one. A coordinate that is not \
              finite is an error.",
    accepts: &[Accepts::Elements],
    params: &[
        number("dims", 1, 1 << 16, "coordinates of a point", "10"),
        number("k", 1, 1 << 16, "number of centres", "20"),
        ParamDecl {
            name: "init",
            kind: ParamKind::WordOrFile(WORDS),
            default: Some("kmeans++"),
            required: false,
            help: "the first centres: points far apart, the first k, any k, or those in a file",
            example: "first",
        },
        ParamDecl {
            name: "max_iter",
            kind: ParamKind::Int { min: 1, max: 10_000 },
            default: Some("300"),
            required: false,
            help: "most iterations",
            example: "10",
        },
        ParamDecl::text(
            "tol",
            Some("1e-4"),
            "moves of the centres that end the iterations, relative to the variance",
            "0",
        ),
        ParamDecl::text(
            "delta",
            None,
            "share of points with a changed centre that ends the iterations",
            "0.001",
        ),
        ParamDecl {
            name: "seed",
            kind: ParamKind::Int { min: 0, max: u64::MAX },
            default: Some("0"),
            required: false,
            help: "seed of the random numbers",
            example: "42",
        },
        ParamDecl {
            name: "labels",
            kind: ParamKind::Bool,
            default: Some("false"),
            required: false,
            help: "also give the centre of each point, as i32",
            example: "true",
        },
    ],
    result: &[
        ("centers", "k lists of dims f64"),
        ("counts", "points of each centre"),
        ("inertia", "sum of the squared distances of all points to their centres"),
        ("iterations", "iterations made"),
        ("shape", "with labels=true: number of labels"),
        ("type", "with labels=true: their type"),
    ],
    rows: Some("with labels=true: the number of each point's centre as i32, as bytes"),
    numerics: Numerics::Fixed,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let int = |name| params.int(name).unwrap_or(0);
    let (dims, k) = (int("dims"), int("k"));
    let size = dims * dtype.size() as u64;
    if record != size && record != dtype.size() as u64 {
        let why =
            format!("points of {dims} {dtype} coordinates have {size} bytes, but records have {record}");
        return Err(params.refuse("dims", why));
    }
    if dims * k > MAX_CELLS {
        return Err(params.refuse("k", format!("k times dims may be at most {MAX_CELLS}")));
    }
    let share = |name: &'static str| match params.get(name) {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(x) if x >= 0.0 && x.is_finite() => Ok(Some(x)),
            _ => Err(params.refuse(name, "it must be a number of at least 0, for example 0.001")),
        },
    };
    let init = match params.text("init") {
        "first" => Init::First,
        "random" => Init::Random,
        "kmeans++" => Init::PlusPlus,
        _ => Init::Centres(read_centres(params, dtype, (dims * k) as usize)?.into()),
    };
    Ok(Arc::new(Kmeans {
        dtype,
        record: size,
        dims: dims as usize,
        k: k as usize,
        init,
        max_iter: int("max_iter"),
        tol: share("tol")?.unwrap_or(0.0),
        delta: share("delta")?,
        seed: int("seed"),
        labels: params.flag("labels"),
    }))
}

/// Reads the centres from a file.
fn read_centres(params: &Params, dtype: DType, cells: usize) -> Result<Vec<f64>, KernelError> {
    let bytes = params.file("init")?;
    let size = cells * dtype.size();
    if bytes.len() != size {
        let why = format!("the file has {} bytes; k x dims values of {dtype} are {size}", bytes.len());
        return Err(params.refuse("init", why));
    }
    let values: Vec<f64> =
        with_element!(dtype, T => bytes.chunks_exact(T::SIZE).map(|x| T::read(x).to_f64()).collect());
    match values.iter().find(|x| !x.is_finite()) {
        None => Ok(values),
        Some(x) => {
            Err(params.refuse("init", format!("a centre has the coordinate {x}; it must be a finite number")))
        }
    }
}

#[derive(Clone, Debug)]
enum Init {
    First,
    Random,
    PlusPlus,
    Centres(Arc<[f64]>),
}

#[derive(Clone, Debug)]
struct Kmeans {
    dtype: DType,
    record: u64,
    dims: usize,
    k: usize,
    init: Init,
    max_iter: u64,
    tol: f64,
    delta: Option<f64>,
    seed: u64,
    labels: bool,
}

impl Kernel for Kmeans {
    fn spec(&self) -> Spec {
        let output = if self.labels { Output::Bytes } else { Output::Value };
        let cells = (self.k * self.dims) as u64;
        Spec {
            order: Order::Any,
            numerics: Numerics::Fixed,
            passes: Passes::Several,
            output,
            state_hint: cells * 16 + 8 * self.k as u64 + 24,
            ..Spec::fixed(NAME, self.record)
        }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        let points = PointReader::new(self.dtype, self.dims);
        let plan = self.plan(ctx)?;
        let totals = || ClusterTotals::new(self.k, self.dims, plan.exponent);
        let centre_set = || plan.centre_set(self.dims);
        Ok(match &plan.phase {
            Phase::Survey => Box::new(SurveyFold::new(points, self.points_to_pick(ctx)?)),
            Phase::Seed => Box::new(SeedFold::new(points, centre_set(), self.seed)),
            Phase::Assign { previous, .. } => {
                let previous = previous.clone().map(|points| Centres::new(self.dims, points));
                Box::new(AssignFold::new(points, centre_set(), previous, totals(), false))
            }
            Phase::Finish { .. } => {
                Box::new(AssignFold::new(points, centre_set(), None, totals(), self.labels))
            }
        })
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let plan = self.plan(ctx)?;
        match &plan.phase {
            Phase::Survey => self.after_survey(whole),
            Phase::Seed => {
                let pick =
                    SeedFold::decode(whole, self.dims)?.ok_or_else(|| self.bad("no point was picked"))?;
                let mut centres = plan.centres;
                centres.extend(pick.point);
                Ok(self.after_seed(plan.exponent, centres))
            }
            Phase::Assign { iteration, max_shift, previous } => {
                let totals = self.totals(plan.exponent, whole)?;
                let changes_counted = previous.is_some();
                Ok(self.after_assignment(
                    *iteration,
                    *max_shift,
                    changes_counted,
                    &totals,
                    plan.exponent,
                    plan.centres,
                ))
            }
            Phase::Finish { iterations } => {
                let totals = self.totals(plan.exponent, whole)?;
                Ok(Next::Done(self.answer(&plan.centres, &totals, *iterations)))
            }
        }
    }
}

impl Kmeans {
    fn bad(&self, why: &str) -> KernelError {
        KernelError::BadState { kernel: NAME, why: why.into() }
    }

    fn plan(&self, ctx: &Ctx) -> Result<PassPlan, KernelError> {
        if ctx.round == 0 {
            Ok(PassPlan::survey())
        } else {
            PassPlan::decode(&ctx.shared, self.k * self.dims)
        }
    }

    fn totals(&self, exponent: i32, whole: &[u8]) -> Result<ClusterTotals, KernelError> {
        let mut totals = ClusterTotals::new(self.k, self.dims, exponent);
        totals.merge(whole)?;
        Ok(totals)
    }

    /// Numbers of the points that the first pass picks.
    fn points_to_pick(&self, ctx: &Ctx) -> Result<Arc<[u64]>, KernelError> {
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

    fn after_survey(&self, whole: &[u8]) -> Result<Next, KernelError> {
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
    fn after_seed(&self, exponent: i32, centres: Vec<f64>) -> Next {
        let phase = match centres.len() < self.k * self.dims {
            true => Phase::Seed,
            false => Phase::Assign { iteration: 1, max_shift: None, previous: None },
        };
        Next::Again(PassPlan { phase, exponent, centres }.encode())
    }

    fn after_assignment(
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
    fn new_centres(&self, centres: &[f64], totals: &ClusterTotals) -> Vec<f64> {
        let mean = |(at, old): (usize, &f64)| match totals.counts[at / self.dims] {
            0 => *old,
            count => totals.sums.quotient(at, count),
        };
        centres.iter().enumerate().map(mean).collect()
    }

    fn answer(&self, centres: &[f64], totals: &ClusterTotals, iterations: u64) -> Value {
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
