//! `median` and `quantile`: exact order statistics by radix selection, in bounded memory and at most five passes.
//!
//! The wanted places in the order of all values (ranks) are known from the first pass, which counts the values by the 16
//! highest bits of their keys. Each further pass counts, by the next 16 bits, those values whose higher bits are those
//! of a wanted one, until all bits are settled.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::order::key;
use super::sum::elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params,
    Passes, Sink, Spec, Step, Value,
};

/// Bits settled in one pass.
const BITS: u32 = 16;

/// Places of one table.
const PLACES: usize = 1 << BITS;

/// Most quantiles of one request; each wants at most two values.
const MAX_SHARES: usize = 16;

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
    details: "With n values, quantile q lies at (n - 1) q in their order: method=linear between the two nearest, as \
              numpy.quantile does by default, lower or higher one of them. f64 takes 4 passes over the data, f32 2. With \
              nan=propagate a NaN makes all of them NaN. An empty selection is an error.",
    params: &[
        ParamDecl {
            name: "q",
            kind: ParamKind::Text,
            default: None,
            required: true,
            help: "up to 16 shares from 0 to 1",
            example: "0.05,0.5,0.95",
        },
        ParamDecl {
            name: "method",
            kind: ParamKind::Choice(&["linear", "lower", "higher"]),
            default: Some("linear"),
            required: false,
            help: "what a quantile between two values is",
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
    let (dtype, record) = elements(name, input)?;
    let shares = match params.get("q") {
        None => vec![0.5],
        Some(text) => {
            let parsed: Option<Vec<f64>> = text.split(',').map(|q| q.trim().parse().ok()).collect();
            let within = |shares: &Vec<f64>| {
                shares.len() <= MAX_SHARES && shares.iter().all(|q| (0.0..=1.0).contains(q))
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
    let (nan, per_record) = (NanRule::of(params), input.per_record());
    with_element!(dtype, T => {
        let of = std::marker::PhantomData::<T>;
        Ok(Arc::new(Quantile { name, record, per_record, shares: shares.into(), method, nan, of }))
    })
}

#[derive(Clone)]
struct Quantile<T> {
    name: &'static str,
    record: u64,
    per_record: u64,
    shares: Arc<[f64]>,
    method: Method,
    nan: NanRule,
    of: std::marker::PhantomData<T>,
}

/// What is known of the wanted values after some passes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    /// Values that are not NaN.
    count: u64,
    nans: u64,
    /// Highest bits of each wanted key, and its rank among the values with those bits. In the order of the shares, two
    /// for each.
    wanted: Vec<(u64, u64)>,
}

impl Known {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(self.count);
        out.put_u64(self.nans);
        for (prefix, rank) in &self.wanted {
            out.put_u64(*prefix);
            out.put_u64(*rank);
        }
        out
    }

    fn decode(kernel: &'static str, bytes: &[u8]) -> Result<Known, KernelError> {
        let mut read = StateReader::new(kernel, bytes);
        let mut known = Known { count: read.u64()?, nans: read.u64()?, wanted: Vec::new() };
        while !read.rest().is_empty() {
            known.wanted.push((read.u64()?, read.u64()?));
        }
        if known.wanted.len() > 2 * MAX_SHARES {
            return Err(read.bad("too many values are wanted"));
        }
        Ok(known)
    }

    /// Different prefixes, ascending.
    fn prefixes(&self) -> Vec<u64> {
        let mut prefixes: Vec<u64> = self.wanted.iter().map(|(prefix, _)| *prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }
}

impl<T: Element> Quantile<T> {
    /// Bits that a pass leaves unsettled.
    fn left(round: u32) -> u32 {
        (8 * T::SIZE as u32).saturating_sub(BITS * (round + 1))
    }

    fn known(&self, ctx: &Ctx) -> Result<Known, KernelError> {
        if ctx.round == 0 { Ok(Known::default()) } else { Known::decode(self.name, &ctx.shared) }
    }

    /// The two ranks between which a quantile lies, and how far it is from the first to the second.
    fn ranks(count: u64, share: f64) -> (u64, u64, f64) {
        let last = count.saturating_sub(1);
        let at = last as f64 * share;
        let low = (at.floor() as u64).min(last);
        let apart = if low == last { 0.0 } else { at - at.floor() };
        (low, if apart > 0.0 { low + 1 } else { low }, apart)
    }

    fn answer(&self, known: &Known) -> Result<Value, KernelError> {
        let nan = known.nans > 0 && self.nan == NanRule::Propagate;
        let mut values = Vec::new();
        for (share, pair) in self.shares.iter().zip(known.wanted.chunks_exact(2)) {
            let (_, _, apart) = Self::ranks(known.count, *share);
            let [low, high] = [pair[0].0, pair[1].0].map(super::order::element::<T>);
            values.push(match self.method {
                _ if nan => Value::float(f64::NAN),
                Method::Lower => low.value(),
                Method::Higher => high.value(),
                Method::Linear => Value::float(linear(low, high, apart)),
            });
        }
        let counted =
            if self.nan == NanRule::Skip { known.count } else { known.count.saturating_add(known.nans) };
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

/// What lies between two elements; of two integers in the middle, rounded once.
fn linear<T: Element>(low: T, high: T, apart: f64) -> f64 {
    match (low.value(), high.value()) {
        // Halving a float changes no digit of it.
        (Value::Int(low), Value::Int(high)) if apart == 0.5 => (low + high) as f64 / 2.0,
        _ => between(low.to_f64(), high.to_f64(), apart),
    }
}

/// As NumPy has it: counted from the nearer end, so that it is monotonous in `apart`.
fn between(low: f64, high: f64, apart: f64) -> f64 {
    if low == high || apart == 0.0 {
        return low;
    }
    if apart == 0.5 {
        // Halves first where the sum would be beyond the range; exact otherwise but for one rounding.
        let sum = low + high;
        return if sum.is_finite() { sum / 2.0 } else { low / 2.0 + high / 2.0 };
    }
    let step = high - low;
    if apart < 0.5 { low + step * apart } else { high - step * (1.0 - apart) }
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
        let prefixes = if ctx.round == 0 { vec![0] } else { self.known(ctx)?.prefixes() };
        let left = Self::left(ctx.round);
        Ok(Box::new(QuantileFold::<T> {
            name: self.name,
            per_record: self.per_record,
            nan: self.nan,
            left,
            settled: (8 * T::SIZE as u32).saturating_sub(BITS * ctx.round),
            tables: vec![Vec::new(); prefixes.len()],
            prefixes,
            count: 0,
            nans: 0,
            of: self.of,
        }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (count, nans, tables) = decode(self.name, whole)?;
        let mut known = self.known(ctx)?;
        if ctx.round == 0 {
            if count.saturating_add(nans) == 0 || count == 0 && self.nan == NanRule::Skip {
                return Err(KernelError::Empty { kernel: self.name, why: "there is no value to take" });
            }
            (known.count, known.nans) = (count, nans);
            let pair = |share: &f64| {
                let (low, high, _) = Self::ranks(count, *share);
                let (low, high) = match self.method {
                    Method::Lower => (low, low),
                    Method::Higher => (high, high),
                    Method::Linear => (low, high),
                };
                [(0, low), (0, high)]
            };
            known.wanted = self.shares.iter().flat_map(pair).collect();
        }
        if known.count == 0 || nans > 0 && self.nan == NanRule::Propagate {
            return Ok(Next::Done(self.answer(&known)?));
        }
        let prefixes = if ctx.round == 0 { vec![0] } else { known.prefixes() };
        for (prefix, rank) in &mut known.wanted {
            let table = prefixes.binary_search(prefix).ok().and_then(|at| tables.get(&(at as u64)));
            let mut found = None;
            for (place, n) in table.into_iter().flatten() {
                if *rank < *n {
                    found = Some(*place);
                    break;
                }
                *rank -= n;
            }
            let bits = BITS.min(8 * T::SIZE as u32);
            let place = found.ok_or_else(|| KernelError::BadState {
                kernel: self.name,
                why: "a wanted value is not among those counted".into(),
            })?;
            *prefix = *prefix << bits | place;
        }
        if Self::left(ctx.round) == 0 {
            return Ok(Next::Done(self.answer(&known)?));
        }
        Ok(Next::Again(known.encode()))
    }
}

/// Number of a table to its (place, count), ascending.
type Tables = BTreeMap<u64, Vec<(u64, u64)>>;

fn decode(kernel: &'static str, state: &[u8]) -> Result<(u64, u64, Tables), KernelError> {
    let mut read = StateReader::new(kernel, state);
    let (count, nans) = (read.u64()?, read.u64()?);
    let mut tables = Tables::new();
    while !read.rest().is_empty() {
        let (table, entries) = (read.u64()?, read.u64()?);
        let entries = (0..entries).map(|_| {
            let (place, count) = (read.u64()?, read.u64()?);
            if place >= PLACES as u64 {
                Err(read.bad("a place beyond the table"))
            } else {
                Ok((place, count))
            }
        });
        let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
        tables.insert(table, entries);
    }
    Ok((count, nans, tables))
}

struct QuantileFold<T> {
    name: &'static str,
    per_record: u64,
    nan: NanRule,
    /// Bits below those that this pass counts by.
    left: u32,
    /// Bits below those that are settled.
    settled: u32,
    prefixes: Vec<u64>,
    /// One for each prefix, empty until there is something to count.
    tables: Vec<Vec<u64>>,
    count: u64,
    nans: u64,
    of: std::marker::PhantomData<T>,
}

impl<T: Element> QuantileFold<T> {
    fn table(&mut self, at: usize) -> &mut Vec<u64> {
        let table = &mut self.tables[at];
        if table.is_empty() {
            table.resize(PLACES, 0);
        }
        table
    }
}

impl<T: Element> Fold for QuantileFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        for at in 0..self.prefixes.len() {
            self.table(at);
        }
        let whole = self.settled == 8 * T::SIZE as u32;
        let mask = PLACES as u64 - 1;
        for (at, x) in block.data().chunks_exact(T::SIZE).map(T::read).enumerate() {
            if x.is_nan() {
                self.nan.check(Some(block.first() * self.per_record + at as u64))?;
                self.nans += 1;
                continue;
            }
            self.count += 1;
            let key = key(x);
            let place = (key >> self.left & mask) as usize;
            if whole {
                self.tables[0][place] += 1;
            } else if let Some(at) = self.prefixes.iter().position(|prefix| *prefix == key >> self.settled) {
                self.tables[at][place] += 1;
            }
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_u64(self.nans);
        for (at, table) in (0..).zip(&self.tables) {
            let counted: Vec<(u64, u64)> = (0..).zip(table.iter().copied()).filter(|(_, n)| *n > 0).collect();
            if !counted.is_empty() {
                out.put_u64(at);
                out.put_u64(counted.len() as u64);
                for (place, n) in counted {
                    out.put_u64(place);
                    out.put_u64(n);
                }
            }
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (count, nans, tables) = decode(self.name, later)?;
        self.count = self.count.saturating_add(count);
        self.nans = self.nans.saturating_add(nans);
        for (at, entries) in tables {
            if at >= self.prefixes.len() as u64 {
                return Err(StateReader::new(self.name, later).bad("a table that was not asked for"));
            }
            let table = self.table(at as usize);
            for (place, n) in entries {
                table[place as usize] = table[place as usize].saturating_add(n);
            }
        }
        Ok(())
    }
}
