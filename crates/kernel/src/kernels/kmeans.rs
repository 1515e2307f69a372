//! `kmeans`: clusters by Lloyd's algorithm, in as many passes as it needs (Lloyd: Least squares quantization in PCM,
//! 1982; on storage servers: Son et al. 2010).
//!
//! A pass assigns each point to its nearest centre and adds up the points of each centre. The totals of all points give
//! the next centres, which are broadcast. Distances are computed in `f64`, in one order of operations, and sums are on
//! a fixed grid (`cells`). So the bits do not depend on where the points are.

mod advance;
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
use self::phase::Phase;
use self::point_reader::PointReader;
use self::survey::{SeedFold, SurveyFold};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::{
    Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Output, ParamDecl, ParamKind,
    Params, Passes, Spec,
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
