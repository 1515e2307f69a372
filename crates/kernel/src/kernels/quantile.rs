//! `median` and `quantile`: exact order statistics by radix selection, in bounded memory and at most five passes.
//!
//! Each quantile needs values at one or two ranks, which are places in the order of all values. The first pass counts
//! all values by the 16 highest bits of their keys. Then the ranks are known. Each further pass counts the values whose
//! higher bits equal those of a target, by the next 16 bits. It ends when all bits of the targets are known.

mod count;

use std::sync::Arc;

use self::count::{QuantileFold, decode};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params, Passes, Spec,
    Value,
};

/// Bits of a key that one pass determines.
const BITS: u32 = 16;

/// Buckets of one table.
const BUCKETS: usize = 1 << BITS;

/// Most quantiles of one request. Each needs at most two values.
const MAX_QUANTILES: usize = 16;

pub(crate) const MEDIAN: Declaration = Declaration {
    name: "median",
    summary: "the median, exactly",
    details: "The middle value, or the mean of the two middle ones rounded once. f64 takes 4 passes over the data, f32 2. \
              With nan=propagate a NaN makes the median NaN. An empty selection is an error.",
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("median", "f64"), ("count", "values that count")],
    rows: None,
    numerics: Numerics::Exact,
    bind: |params, input| bind("median", params, input),
};

pub(crate) const QUANTILE: Declaration = Declaration {
    name: "quantile",
    summary: "quantiles, exactly",
    details: "With n values, quantile q lies at (n - 1) q in their order. method=linear interpolates between the two \
              nearest values, as numpy.quantile does by default; lower and higher take one of them. f64 takes 4 \
              passes over the data, f32 2. With nan=propagate a NaN makes all quantiles NaN. An empty selection is \
              an error.",
    params: &[
        ParamDecl {
            name: "q",
            kind: ParamKind::Text,
            default: None,
            required: true,
            help: "up to 16 numbers from 0 to 1",
            example: "0.05,0.5,0.95",
        },
        ParamDecl {
            name: "method",
            kind: ParamKind::Choice(&["linear", "lower", "higher"]),
            default: Some("linear"),
            required: false,
            help: "the quantile between two values",
            example: "lower",
        },
        NAN,
    ],
    result: &[
        ("quantiles", "one for each q; f64, or of the type of the data for lower and higher"),
        ("count", "values that count"),
    ],
    bind: |params, input| bind("quantile", params, input),
    ..MEDIAN
};

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Linear,
    Lower,
    Higher,
}

fn bind(name: &'static str, params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(name, input)?;
    let probabilities = match params.get("q") {
        None => vec![0.5],
        Some(text) => {
            let parsed: Option<Vec<f64>> = text.split(',').map(|q| q.trim().parse().ok()).collect();
            let within = |numbers: &Vec<f64>| {
                numbers.len() <= MAX_QUANTILES && numbers.iter().all(|q| (0.0..=1.0).contains(q))
            };
            let why = "give at most 16 numbers from 0 to 1, for example 0.05,0.5,0.95";
            parsed.filter(within).ok_or_else(|| params.refuse("q", why))?
        }
    };
    let method = match params.text("method") {
        "lower" => Method::Lower,
        "higher" => Method::Higher,
        _ => Method::Linear,
    };
    let (nan, per_record) = (NanRule::from_params(params), input.per_record());
    with_element!(dtype, T => {
        let element = std::marker::PhantomData::<T>;
        Ok(Arc::new(Quantile { name, record, per_record, probabilities: probabilities.into(), method, nan, element }))
    })
}

#[derive(Clone)]
struct Quantile<T> {
    name: &'static str,
    record: u64,
    per_record: u64,
    probabilities: Arc<[f64]>,
    method: Method,
    nan: NanRule,
    element: std::marker::PhantomData<T>,
}

/// The knowledge about the targets after some passes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Progress {
    /// Values that are not NaN.
    count: u64,
    nans: u64,
    /// The highest bits of each target's key, and its rank among the values with these bits. There are two targets for
    /// each quantile, in the order of the quantiles.
    targets: Vec<(u64, u64)>,
}

impl Progress {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(self.count);
        out.put_u64(self.nans);
        for (prefix, rank) in &self.targets {
            out.put_u64(*prefix);
            out.put_u64(*rank);
        }
        out
    }

    fn decode(kernel: &'static str, bytes: &[u8]) -> Result<Progress, KernelError> {
        let mut read = StateReader::new(kernel, bytes);
        let mut progress = Progress { count: read.u64()?, nans: read.u64()?, targets: Vec::new() };
        while !read.rest().is_empty() {
            progress.targets.push((read.u64()?, read.u64()?));
        }
        if progress.targets.len() > 2 * MAX_QUANTILES {
            return Err(read.bad("it has too many quantiles"));
        }
        Ok(progress)
    }

    /// The different prefixes, ascending.
    fn prefixes(&self) -> Vec<u64> {
        let mut prefixes: Vec<u64> = self.targets.iter().map(|(prefix, _)| *prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }
}

impl<T: Element> Quantile<T> {
    /// Number of bits that are still unknown after a pass.
    fn unsettled_bits(round: u32) -> u32 {
        (8 * T::SIZE as u32).saturating_sub(BITS * (round + 1))
    }

    fn progress(&self, ctx: &Ctx) -> Result<Progress, KernelError> {
        if ctx.round == 0 { Ok(Progress::default()) } else { Progress::decode(self.name, &ctx.shared) }
    }

    /// The two ranks between which a quantile lies, and its distance from the first, from 0 to 1.
    fn ranks(count: u64, probability: f64) -> (u64, u64, f64) {
        let last = count.saturating_sub(1);
        let at = last as f64 * probability;
        let low = (at.floor() as u64).min(last);
        let fraction = if low == last { 0.0 } else { at - at.floor() };
        (low, if fraction > 0.0 { low + 1 } else { low }, fraction)
    }

    fn answer(&self, progress: &Progress) -> Result<Value, KernelError> {
        let nan = progress.nans > 0 && self.nan == NanRule::Propagate;
        let mut values = Vec::new();
        for (probability, pair) in self.probabilities.iter().zip(progress.targets.chunks_exact(2)) {
            let (_, _, fraction) = Self::ranks(progress.count, *probability);
            let [low, high] = [pair[0].0, pair[1].0].map(super::order::element::<T>);
            values.push(match self.method {
                _ if nan => Value::float(f64::NAN),
                Method::Lower => low.value(),
                Method::Higher => high.value(),
                Method::Linear => Value::float(linear(low, high, fraction)),
            });
        }
        let counted = if self.nan == NanRule::Skip {
            progress.count
        } else {
            progress.count.saturating_add(progress.nans)
        };
        let count = ("count", Value::from(counted));
        Ok(Value::Map(match (self.name, values.pop()) {
            ("median", Some(median)) => vec![("median", median), count],
            (_, last) => {
                values.extend(last);
                vec![("quantiles", Value::List(values)), count]
            }
        }))
    }
}

/// The number at `fraction` between two elements. The middle of two integers is rounded once.
fn linear<T: Element>(low: T, high: T, fraction: f64) -> f64 {
    match (low.value(), high.value()) {
        // Halving a float changes none of its digits.
        (Value::Int(low), Value::Int(high)) if fraction == 0.5 => (low + high) as f64 / 2.0,
        _ => interpolate(low.to_f64(), high.to_f64(), fraction),
    }
}

/// Interpolates as NumPy does: from the nearer end, so that the result is monotonic in `fraction`.
fn interpolate(low: f64, high: f64, fraction: f64) -> f64 {
    if low == high || fraction == 0.0 {
        return low;
    }
    if fraction == 0.5 {
        // The sum is rounded once. If it overflows, the numbers are halved first.
        let sum = low + high;
        return if sum.is_finite() { sum / 2.0 } else { low / 2.0 + high / 2.0 };
    }
    let step = high - low;
    if fraction < 0.5 { low + step * fraction } else { high - step * (1.0 - fraction) }
}

impl<T: Element> Kernel for Quantile<T> {
    fn spec(&self) -> Spec {
        Spec {
            order: Order::Any,
            passes: Passes::Several,
            state_hint: 8 << 10,
            ..Spec::fixed(self.name, self.record)
        }
    }

    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        let prefixes = if ctx.round == 0 { vec![0] } else { self.progress(ctx)?.prefixes() };
        let bucket_shift = Self::unsettled_bits(ctx.round);
        Ok(Box::new(QuantileFold::<T> {
            name: self.name,
            per_record: self.per_record,
            nan: self.nan,
            bucket_shift,
            prefix_shift: (8 * T::SIZE as u32).saturating_sub(BITS * ctx.round),
            tables: vec![Vec::new(); prefixes.len()],
            prefixes,
            count: 0,
            nans: 0,
            element: self.element,
        }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (count, nans, tables) = decode(self.name, whole)?;
        let mut progress = self.progress(ctx)?;
        if ctx.round == 0 {
            if count.saturating_add(nans) == 0 || count == 0 && self.nan == NanRule::Skip {
                return Err(KernelError::Empty {
                    kernel: self.name,
                    why: "a quantile needs at least one value",
                });
            }
            (progress.count, progress.nans) = (count, nans);
            let pair = |probability: &f64| {
                let (low, high, _) = Self::ranks(count, *probability);
                let (low, high) = match self.method {
                    Method::Lower => (low, low),
                    Method::Higher => (high, high),
                    Method::Linear => (low, high),
                };
                [(0, low), (0, high)]
            };
            progress.targets = self.probabilities.iter().flat_map(pair).collect();
        }
        if progress.count == 0 || nans > 0 && self.nan == NanRule::Propagate {
            return Ok(Next::Done(self.answer(&progress)?));
        }
        let prefixes = if ctx.round == 0 { vec![0] } else { progress.prefixes() };
        for (prefix, rank) in &mut progress.targets {
            let table = prefixes.binary_search(prefix).ok().and_then(|at| tables.get(&(at as u64)));
            let mut found = None;
            for (bucket, n) in table.into_iter().flatten() {
                if *rank < *n {
                    found = Some(*bucket);
                    break;
                }
                *rank -= n;
            }
            let bits = BITS.min(8 * T::SIZE as u32);
            let bucket = found.ok_or_else(|| KernelError::BadState {
                kernel: self.name,
                why: "the counts do not include the value at a rank".into(),
            })?;
            *prefix = *prefix << bits | bucket;
        }
        if Self::unsettled_bits(ctx.round) == 0 {
            return Ok(Next::Done(self.answer(&progress)?));
        }
        Ok(Next::Again(progress.encode()))
    }
}
