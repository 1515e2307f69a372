//! `histogram`: counts in bins of equal width. It takes two passes if the range is not given.

use std::marker::PhantomData;
use std::sync::Arc;

use super::bounds::{Bounded, Literal};
use super::edges::{Bins, edges};
use super::extreme::Extremes;
use super::minmax::ExtremeFold;
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{first_nan, with_element};
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params, Sink,
    Spec, Step, Value,
};

const NAME: &str = "histogram";

/// Most bins of a histogram.
const MAX_BINS: u64 = 1 << 16;

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "counts of the values in bins of equal width",
    details: "Bin i holds edges[i] <= x < edges[i+1], by exact comparison. The last bin also holds its upper edge. \
              Edges are f64 and computed as in NumPy. Values outside are not counted. Without range= the file is \
              read twice; the first pass finds the smallest and the largest value. With range=, a NaN is in no bin. \
              Without it, a NaN is an error unless nan=skip. Without range=, infinities are an error. An empty \
              selection is an error.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            name: "bins",
            kind: ParamKind::Int { min: 1, max: MAX_BINS },
            default: Some("10"),
            required: false,
            help: "number of bins",
            example: "100",
        },
        ParamDecl {
            name: "range",
            kind: ParamKind::Text,
            default: None,
            required: false,
            help: "lower and upper edge, LOW:HIGH; without it, the smallest and largest value",
            example: "0:1",
        },
        NAN,
    ],
    result: &[("edges", "bins + 1 f64"), ("counts", "bins integers")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let bins = params.int("bins").unwrap_or(10) as usize;
    let range = match params.get("range") {
        None => None,
        Some(text) => Some(parse_range(text).map_err(|why| params.refuse("range", why))?),
    };
    if let Some((low, high)) = range
        && !are_distinct(&edges(low, high, bins))
    {
        return Err(params.refuse("range", format!("it is too narrow for {bins} bins of f64; ask for fewer")));
    }
    let nan = NanRule::from_params(params);
    let per_record = input.per_record();
    with_element!(dtype, T => {
        Ok(Arc::new(Histogram::<T> { record, per_record, bins, range, nan, element: PhantomData }))
    })
}

fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let (low, high) = text.split_once(':').ok_or("it must be LOW:HIGH, for example 0:1")?;
    let (low, high) = (Literal::parse(low)?.float, Literal::parse(high)?.float);
    if !(low.is_finite() && high.is_finite() && (high - low).is_finite()) {
        return Err("both ends must be finite, and so must their distance".into());
    }
    if low > high {
        return Err("the lower edge must not be above the upper one".into());
    }
    Ok((low, high))
}

/// The nearest f64 that enclose two values. The f64 nearest to a 64-bit integer may lie on the wrong side of it.
fn enclosing_f64<T: Bounded>(low: T, high: T) -> (f64, f64) {
    let (mut from, mut to) = (low.to_f64(), high.to_f64());
    let literal = |x: f64| Literal { int: None, float: x };
    if T::at_least(literal(from), false).is_none_or(|first| first > low) {
        from = from.next_down();
    }
    if T::at_most(literal(to), false).is_none_or(|last| last < high) {
        to = to.next_up();
    }
    (from, to)
}

/// Whether each bin can hold a value.
fn are_distinct(edges: &[f64]) -> bool {
    edges.is_sorted_by(|a, b| a < b)
}

struct Histogram<T> {
    record: u64,
    per_record: u64,
    bins: usize,
    range: Option<(f64, f64)>,
    nan: NanRule,
    element: PhantomData<T>,
}

impl<T: Bounded> Histogram<T> {
    /// The edges if this pass counts; `None` if this pass finds the range.
    fn edges(&self, ctx: &Ctx) -> Result<Option<Vec<f64>>, KernelError> {
        let range = match (self.range, ctx.round) {
            (Some(range), _) => range,
            (None, 0) => return Ok(None),
            (None, _) => {
                let mut read = StateReader::new(NAME, &ctx.shared);
                let range = (read.f64()?, read.f64()?);
                read.end()?;
                range
            }
        };
        Ok(Some(edges(range.0, range.1, self.bins)))
    }

    fn encode_range(&self, seen: &Extremes<T>) -> Result<Vec<u8>, KernelError> {
        if self.nan == NanRule::Propagate
            && let Some(index) = seen.first_nan
        {
            let why = format!(
                "element {index} is NaN, so the range is unknown; use nan=skip or give range=LOW:HIGH"
            );
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        let (Some((low, _)), Some((high, _))) = (seen.min, seen.max) else {
            return Err(KernelError::Empty { kernel: NAME, why: "a histogram needs at least one value" });
        };
        let (low, high) = enclosing_f64(low, high);
        if !(high - low).is_finite() {
            let why = format!("the values reach from {low} to {high}; give range=LOW:HIGH");
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        if !are_distinct(&edges(low, high, self.bins)) {
            let why = format!("{low} to {high} is too narrow for {} bins of f64; ask for fewer", self.bins);
            return Err(KernelError::Domain { kernel: NAME, why });
        }
        let mut shared = Vec::new();
        shared.put_f64(low);
        shared.put_f64(high);
        Ok(shared)
    }
}

impl<T: Bounded> Kernel for Histogram<T> {
    fn spec(&self) -> Spec {
        let state_hint = 8 * self.bins as u64 + 64;
        Spec { order: Order::Any, state_hint, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(match self.edges(ctx)? {
            None => Box::new(ExtremeFold::<T> {
                kernel: NAME,
                per_record: self.per_record,
                nan: self.nan,
                seen: Extremes::default(),
            }),
            Some(edges) => Box::new(CountsFold::<T> {
                bins: Bins::new(&edges),
                nan: self.nan,
                per_record: self.per_record,
                values: 0,
                counts: vec![0; self.bins],
            }),
        })
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let Some(edges) = self.edges(ctx)? else {
            return Ok(Next::Again(self.encode_range(&Extremes::decode(NAME, whole)?)?));
        };
        let (values, counts) = decode(whole, self.bins)?;
        if values == 0 {
            return Err(KernelError::Empty { kernel: NAME, why: "there are no values to count" });
        }
        Ok(Next::Done(Value::Map(vec![
            ("edges", Value::List(edges.into_iter().map(Value::Float).collect())),
            ("counts", Value::List(counts.into_iter().map(Value::from).collect())),
        ])))
    }
}

struct CountsFold<T> {
    /// The bins; `None` if no value of the type lies within the edges.
    bins: Option<Bins<T>>,
    nan: NanRule,
    per_record: u64,
    values: u64,
    counts: Vec<u64>,
}

fn decode(state: &[u8], bins: usize) -> Result<(u64, Vec<u64>), KernelError> {
    let mut read = StateReader::new(NAME, state);
    let values = read.u64()?;
    let counts = (0..bins).map(|_| read.u64()).collect::<Result<_, _>>()?;
    read.end()?;
    Ok((values, counts))
}

impl<T: Bounded> Fold for CountsFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        if self.nan == NanRule::Error {
            self.nan.check(first_nan(T::DTYPE, data).map(|i| block.first() * self.per_record + i))?;
        }
        if let Some(bins) = &self.bins {
            bins.count(data, &mut self.counts);
        }
        self.values += (data.len() / T::SIZE) as u64;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.values);
        for count in &self.counts {
            out.put_u64(*count);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (values, counts) = decode(later, self.counts.len())?;
        self.values = self.values.saturating_add(values);
        for (mine, theirs) in self.counts.iter_mut().zip(counts) {
            *mine = mine.saturating_add(theirs);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_enclose_integers_that_no_f64_holds() {
        assert_eq!(enclosing_f64(i64::MIN, i64::MAX), (-(2f64.powi(63)), 2f64.powi(63)));
        let (low, high) = enclosing_f64(u64::MAX, u64::MAX);
        assert!(low < 2f64.powi(64) && high == 2f64.powi(64));
        assert_eq!(
            enclosing_f64(9_007_199_254_740_993i64, 9_007_199_254_740_993),
            (9_007_199_254_740_992.0, 9_007_199_254_740_994.0)
        );
        assert_eq!(enclosing_f64(-3i8, 5), (-3.0, 5.0));
    }
}
