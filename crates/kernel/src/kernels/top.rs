//! `top`: the largest or smallest values and their indices.

use std::sync::Arc;

use super::order::{key, value};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params, Sink,
    Spec, Step, Value,
};

const NAME: &str = "top";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the largest or smallest values and their indices",
    details: "The best value comes first. Of equal values the one with the lower index is better, and -0.0 equals \
              0.0. If there are fewer than k values, the answer has all of them. A NaN is skipped, or is an error \
              with nan=error.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            name: "k",
            kind: ParamKind::Int { min: 1, max: 1 << 20 },
            default: Some("10"),
            required: false,
            help: "number of values",
            example: "100",
        },
        ParamDecl {
            name: "which",
            kind: ParamKind::Choice(&["largest", "smallest"]),
            default: Some("largest"),
            required: false,
            help: "whether the largest or the smallest values are best",
            example: "smallest",
        },
        ParamDecl {
            name: "nan",
            kind: ParamKind::Choice(&["skip", "error"]),
            default: Some("skip"),
            required: false,
            help: "a NaN counts as absent, or is an error",
            example: "error",
        },
    ],
    result: &[("values", "the values, best first"), ("indices", "element number of each")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let k = params.int("k").unwrap_or(1) as usize;
    let largest = params.text("which") != "smallest";
    let (nan, per_record) = (NanRule::from_params(params), input.per_record());
    with_element!(dtype, T => Ok(Arc::new(Top::<T> { record, per_record, k, largest, nan, element: std::marker::PhantomData })))
}

#[derive(Clone, Copy)]
struct Top<T> {
    record: u64,
    per_record: u64,
    k: usize,
    largest: bool,
    nan: NanRule,
    element: std::marker::PhantomData<T>,
}

impl<T: Element> Top<T> {
    /// The rank of a value. A better value has a lower rank.
    fn rank(&self, x: T) -> u64 {
        if self.largest { !key(x) } else { key(x) }
    }

    fn fold(&self) -> TopFold<T> {
        TopFold { kernel: *self, best: Vec::new(), worst: (u64::MAX, u64::MAX) }
    }
}

impl<T: Element> Kernel for Top<T> {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 16 * self.k as u64, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(self.fold()))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let mut fold = self.fold();
        fold.merge(whole, &mut crate::NoRows)?;
        let best = fold.sorted();
        let back = |rank: u64| if self.largest { !rank } else { rank };
        let values = best.iter().map(|(rank, _)| value::<T>(back(*rank))).collect();
        let indices = best.iter().map(|(_, index)| (*index).into()).collect();
        Ok(Next::Done(Value::Map(vec![("values", Value::List(values)), ("indices", Value::List(indices))])))
    }
}

struct TopFold<T> {
    kernel: Top<T>,
    /// Candidates (rank, index): the best k, and fewer than k others that are not removed yet.
    best: Vec<(u64, u64)>,
    /// A candidate can be among the best k only if it is below this one.
    worst: (u64, u64),
}

impl<T: Element> TopFold<T> {
    fn offer(&mut self, candidate: (u64, u64)) {
        if candidate < self.worst {
            self.best.push(candidate);
            if self.best.len() >= 2 * self.kernel.k {
                self.prune();
            }
        }
    }

    fn prune(&mut self) {
        let k = self.kernel.k;
        if self.best.len() >= k {
            let (_, worst, _) = self.best.select_nth_unstable(k - 1);
            self.worst = *worst;
            self.best.truncate(k);
        }
    }

    fn sorted(&self) -> Vec<(u64, u64)> {
        let mut best = self.best.clone();
        best.sort_unstable();
        best.truncate(self.kernel.k);
        best
    }
}

impl<T: Element> Fold for TopFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let first = block.first() * self.kernel.per_record;
        for (index, x) in (first..).zip(block.data().chunks_exact(T::SIZE).map(T::read)) {
            if x.is_nan() {
                self.kernel.nan.check(Some(index))?;
            } else {
                self.offer((self.kernel.rank(x), index));
            }
        }
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        for (rank, index) in self.sorted() {
            out.put_u64(rank);
            out.put_u64(index);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let mut read = StateReader::new(NAME, later);
        while !read.rest().is_empty() {
            let candidate = (read.u64()?, read.u64()?);
            self.offer(candidate);
        }
        Ok(())
    }
}
