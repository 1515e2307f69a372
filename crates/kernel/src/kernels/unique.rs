//! `unique`: the different values and how often each occurs, exactly.

use std::collections::HashMap;
use std::sync::Arc;

use super::order::{key, value};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params, Sink,
    Spec, Step, Value,
};

const NAME: &str = "unique";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the different values and how often each occurs",
    details: "Values ascend. -0.0 counts as 0.0. All NaN are one value, which comes last with nan=propagate. It is \
              an error if there are more different values than max.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            name: "max",
            kind: ParamKind::Int { min: 1, max: 1 << 20 },
            default: Some("65536"),
            required: false,
            help: "most different values",
            example: "1000",
        },
        NAN,
    ],
    result: &[
        ("values", "the different values, ascending"),
        ("counts", "how often each occurs"),
        ("distinct", "number of different values"),
    ],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let max = params.int("max").unwrap_or(1);
    let (nan, per_record) = (NanRule::from_params(params), input.per_record());
    with_element!(dtype, T => Ok(Arc::new(Unique::<T> { record, per_record, max, nan, element: std::marker::PhantomData })))
}

#[derive(Clone, Copy)]
struct Unique<T> {
    record: u64,
    per_record: u64,
    max: u64,
    nan: NanRule,
    element: std::marker::PhantomData<T>,
}

impl<T: Element> Kernel for Unique<T> {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 16 * self.max.min(256), ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(UniqueFold::<T> { kernel: *self, counts: HashMap::new(), nans: 0 }))
    }

    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let mut fold = UniqueFold::<T> { kernel: *self, counts: HashMap::new(), nans: 0 };
        fold.merge(whole, &mut crate::NoRows)?;
        let _ = ctx;
        let sorted = fold.sorted();
        let mut values: Vec<Value> = sorted.iter().map(|(key, _)| value::<T>(*key)).collect();
        let mut counts: Vec<Value> = sorted.iter().map(|(_, count)| (*count).into()).collect();
        if fold.nans > 0 && self.nan != NanRule::Skip {
            values.push(Value::float(f64::NAN));
            counts.push(fold.nans.into());
        }
        let distinct = Value::from(values.len() as u64);
        Ok(Next::Done(Value::Map(vec![
            ("values", Value::List(values)),
            ("counts", Value::List(counts)),
            ("distinct", distinct),
        ])))
    }
}

struct UniqueFold<T> {
    kernel: Unique<T>,
    counts: HashMap<u64, u64>,
    nans: u64,
}

impl<T: Element> UniqueFold<T> {
    /// Checks that one more different value is allowed.
    fn check_room(&self) -> Result<(), KernelError> {
        let nan = u64::from(self.nans > 0 && self.kernel.nan != NanRule::Skip);
        if self.counts.len() as u64 + nan < self.kernel.max {
            return Ok(());
        }
        Err(KernelError::Domain {
            kernel: NAME,
            why: format!(
                "there are more than max={} different values; raise max (to {} at most), or count them with 'histogram'",
                self.kernel.max,
                1 << 20
            ),
        })
    }

    fn add_nans(&mut self, count: u64) -> Result<(), KernelError> {
        if self.nans == 0 && count > 0 && self.kernel.nan != NanRule::Skip {
            self.check_room()?;
        }
        self.nans = self.nans.saturating_add(count);
        Ok(())
    }

    fn add(&mut self, key: u64, count: u64) -> Result<(), KernelError> {
        if let Some(n) = self.counts.get_mut(&key) {
            *n = n.saturating_add(count);
            return Ok(());
        }
        self.check_room()?;
        self.counts.insert(key, count);
        Ok(())
    }

    fn sorted(&self) -> Vec<(u64, u64)> {
        let mut sorted: Vec<(u64, u64)> = self.counts.iter().map(|(key, count)| (*key, *count)).collect();
        sorted.sort_unstable();
        sorted
    }
}

impl<T: Element> Fold for UniqueFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        // Equal values often follow each other. Then one access to the table is enough for all of them.
        let mut run: Option<(u64, u64)> = None;
        for (at, x) in block.data().chunks_exact(T::SIZE).map(T::read).enumerate() {
            if x.is_nan() {
                self.kernel.nan.check(Some(block.first() * self.kernel.per_record + at as u64))?;
                self.add_nans(1)?;
                continue;
            }
            let key = key(x);
            run = match run {
                Some((same, count)) if same == key => Some((key, count + 1)),
                other => {
                    if let Some((key, count)) = other {
                        self.add(key, count)?;
                    }
                    Some((key, 1))
                }
            };
        }
        if let Some((key, count)) = run {
            self.add(key, count)?;
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.nans);
        for (key, count) in self.sorted() {
            out.put_u64(key);
            out.put_u64(count);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let mut read = StateReader::new(NAME, later);
        self.add_nans(read.u64()?)?;
        while !read.rest().is_empty() {
            let (key, count) = (read.u64()?, read.u64()?);
            self.add(key, count)?;
        }
        Ok(())
    }
}
