//! `kmeans`: clusters by Lloyd's algorithm, in as many passes as it takes (Lloyd: Least squares quantization in PCM,
//! 1982; on storage servers: Son et al. 2010).
//!
//! A pass assigns each point to its nearest centre and adds up the points of each; the whole of it gives the next
//! centres, which are broadcast. Assignments are made in `f64`, in one order of operations, and sums are on a fixed
//! grid (`cells`), so the same bits come out wherever the points are.

mod assign;
mod cells;
mod draw;
mod nearest;
mod phase;
mod points;
mod survey;

use std::sync::Arc;

use self::assign::{Assign, Totals};
use self::nearest::Centres;
use self::phase::{Phase, Plan};
use self::points::Points;
use self::survey::{Seed, Survey};
use super::sum::elements;
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
              distance in f64), the first of several; a centre without points stays where it is. Ends after max_iter \
              iterations, when the squared moves of all centres together are at most tol times the mean variance of \
              the coordinates (as in scikit-learn), or when at most the share delta of the points changed its centre. \
              counts, inertia and labels are those of the centres given. init=kmeans++ takes k - 1 passes more; \
              init=FILE reads k x dims values of the file's own type, centre by centre. Sums of coordinates are \
              rounded to 2^-80 of the largest one. A coordinate that is not finite is an error.",
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
            help: "iterations at most",
            example: "10",
        },
        ParamDecl::text(
            "tol",
            Some("1e-4"),
            "moves of the centres that are as good as none, relative to the variance",
            "0",
        ),
        ParamDecl::text("delta", None, "share of the points that may still change for the end", "0.001"),
        ParamDecl {
            name: "seed",
            kind: ParamKind::Int { min: 0, max: u64::MAX },
            default: Some("0"),
            required: false,
            help: "which random numbers are drawn",
            example: "42",
        },
        ParamDecl {
            name: "labels",
            kind: ParamKind::Bool,
            default: Some("false"),
            required: false,
            help: "give each point's centre as well, as i32",
            example: "true",
        },
    ],
    result: &[
        ("centers", "k lists of dims f64"),
        ("counts", "points of each centre"),
        ("inertia", "sum of the squared distances of all points to their centres"),
        ("iterations", "iterations made"),
        ("shape", "with labels=true: how many labels there are"),
        ("type", "with labels=true: their type"),
    ],
    rows: Some("with labels=true: the number of each point's centre as i32, as bytes"),
    numerics: Numerics::Fixed,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = elements(NAME, input)?;
    let int = |name| params.int(name).unwrap_or(0);
    let (dims, k) = (int("dims"), int("k"));
    let size = dims * dtype.size() as u64;
    if record != size && record != dtype.size() as u64 {
        let why = format!("points of {dims} {dtype} coordinates have {size} bytes, and records {record}");
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
        _ => Init::Given(given(params, dtype, (dims * k) as usize)?.into()),
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

/// The centres of a file.
fn given(params: &Params, dtype: DType, cells: usize) -> Result<Vec<f64>, KernelError> {
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
    Given(Arc<[f64]>),
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
        let points = Points::new(self.dtype, self.dims);
        let plan = self.plan(ctx)?;
        let totals = || Totals::new(self.k, self.dims, plan.exponent);
        let ready = || plan.ready(self.dims);
        Ok(match &plan.phase {
            Phase::Survey => Box::new(Survey::new(points, self.wanted(ctx)?)),
            Phase::Seed => Box::new(Seed::new(points, ready(), self.seed)),
            Phase::Assign { before, .. } => {
                let before = before.clone().map(|points| Centres::new(self.dims, points));
                Box::new(Assign::new(points, ready(), before, totals(), false))
            }
            Phase::Finish { .. } => Box::new(Assign::new(points, ready(), None, totals(), self.labels)),
        })
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let plan = self.plan(ctx)?;
        match &plan.phase {
            Phase::Survey => self.surveyed(whole),
            Phase::Seed => {
                let pick = Seed::decode(whole, self.dims)?.ok_or_else(|| self.bad("no point was picked"))?;
                let mut centres = plan.centres;
                centres.extend(pick.point);
                Ok(self.seeded(plan.exponent, centres))
            }
            Phase::Assign { iteration, settled, before } => {
                let totals = self.totals(plan.exponent, whole)?;
                let counted = before.is_some();
                Ok(self.assigned(*iteration, *settled, counted, &totals, plan.exponent, plan.centres))
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

    fn plan(&self, ctx: &Ctx) -> Result<Plan, KernelError> {
        if ctx.round == 0 { Ok(Plan::survey()) } else { Plan::decode(&ctx.shared, self.k * self.dims) }
    }

    fn totals(&self, exponent: i32, whole: &[u8]) -> Result<Totals, KernelError> {
        let mut totals = Totals::new(self.k, self.dims, exponent);
        totals.merge(whole)?;
        Ok(totals)
    }

    /// Numbers of the points that the first pass is to pick.
    fn wanted(&self, ctx: &Ctx) -> Result<Arc<[u64]>, KernelError> {
        let (first, n, k) = (ctx.extent.start, ctx.extent.end - ctx.extent.start, self.k as u64);
        if n < k {
            let why = format!("k={k} centres need as many points, and there are {n}");
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        Ok(match self.init {
            Init::First => (first..first + k).collect(),
            Init::Random => draw::sample(self.seed, n, k).iter().map(|x| first + x).collect(),
            Init::PlusPlus => draw::sample(self.seed, n, 1).iter().map(|x| first + x).collect(),
            Init::Given(_) => Arc::from([]),
        })
    }

    fn surveyed(&self, whole: &[u8]) -> Result<Next, KernelError> {
        let (largest, picks) = Survey::decode(whole, self.dims, self.k)?;
        let centres: Vec<f64> = match &self.init {
            Init::Given(centres) => centres.to_vec(),
            _ => picks.into_iter().flat_map(|pick| pick.point).collect(),
        };
        let largest = centres.iter().fold(largest, |largest, x| largest.max(x.abs()));
        // Squares of distances must stay within f64.
        let exponent = cells::exponent(largest).filter(|e| *e <= MAX_EXPONENT);
        let exponent = exponent.ok_or_else(|| KernelError::Domain {
            kernel: NAME,
            why: format!("the largest coordinate is {largest:e}, and squares of such distances are beyond f64; scale the data"),
        })?;
        let expected = if matches!(self.init, Init::PlusPlus) { 1 } else { self.k };
        if centres.len() != expected * self.dims {
            return Err(self.bad("points were not picked"));
        }
        Ok(self.seeded(exponent, centres))
    }

    /// Goes on with so many first centres: one more, or the first iteration.
    fn seeded(&self, exponent: i32, centres: Vec<f64>) -> Next {
        let phase = match centres.len() < self.k * self.dims {
            true => Phase::Seed,
            false => Phase::Assign { iteration: 1, settled: None, before: None },
        };
        Next::Again(Plan { phase, exponent, centres }.encode())
    }

    fn assigned(
        &self,
        iteration: u64,
        settled: Option<f64>,
        counted: bool,
        totals: &Totals,
        exponent: i32,
        centres: Vec<f64>,
    ) -> Next {
        let moved = self.moved(&centres, totals);
        let settled =
            settled.unwrap_or_else(|| self.tol * mean_variance(&moved, &centres, totals, self.dims));
        let shift: f64 = moved.iter().zip(&centres).map(|(new, old)| (new - old) * (new - old)).sum();
        let n = totals.points();
        let few = self.delta.is_some_and(|delta| counted && totals.changed as f64 <= delta * n as f64);
        let still = moved == centres;
        if still && !self.labels {
            // What was added up is what these very centres have.
            return Next::Done(self.answer(&centres, totals, iteration));
        }
        if still || few || shift <= settled || iteration >= self.max_iter {
            let phase = Phase::Finish { iterations: iteration };
            let shared = Plan { phase, exponent, centres: moved }.encode();
            return if self.labels { Next::Last(shared) } else { Next::Again(shared) };
        }
        let before = self.delta.is_some().then_some(centres);
        let phase = Phase::Assign { iteration: iteration + 1, settled: Some(settled), before };
        Next::Again(Plan { phase, exponent, centres: moved }.encode())
    }

    /// The means of the points of each centre; a centre without any stays.
    fn moved(&self, centres: &[f64], totals: &Totals) -> Vec<f64> {
        let mean = |(at, old): (usize, &f64)| match totals.counts[at / self.dims] {
            0 => *old,
            count => totals.sums.over(at, count),
        };
        centres.iter().enumerate().map(mean).collect()
    }

    fn answer(&self, centres: &[f64], totals: &Totals, iterations: u64) -> Value {
        let floats = |point: &[f64]| Value::List(point.iter().map(|x| Value::float(*x)).collect());
        let mut values = vec![
            ("centers", Value::List(centres.chunks_exact(self.dims).map(floats).collect())),
            ("counts", Value::List(totals.counts.iter().map(|n| Value::from(*n)).collect())),
            ("inertia", Value::float(totals.inertia.over(0, 1))),
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

/// Largest exponent of a coordinate: squared distances in 2^16 dimensions are below 2^900.
const MAX_EXPONENT: i32 = 440;

/// The mean over the dimensions of the variances of all points, from what was added up about some centres: within
/// each cluster about its centre, then the centres about the mean of all.
fn mean_variance(means: &[f64], centres: &[f64], totals: &Totals, dims: usize) -> f64 {
    let n = totals.points();
    let weighted = |at: usize, x: f64| totals.counts[at / dims] as f64 * x;
    let mut middle = vec![0.0; dims];
    for (at, mean) in means.iter().enumerate() {
        middle[at % dims] += weighted(at, *mean) / n.max(1) as f64;
    }
    // About the mean of a cluster its points vary less than about its centre, by the square of their distance.
    let mut sum = totals.inertia.over(0, 1);
    for (at, (mean, centre)) in means.iter().zip(centres).enumerate() {
        let (apart, off) = (mean - centre, mean - middle[at % dims]);
        sum += weighted(at, off * off - apart * apart);
    }
    sum.max(0.0) / n.max(1) as f64 / dims as f64
}
