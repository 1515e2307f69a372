//! `min`, `max` and `minmax`: the extremes and where they are first.

use std::marker::PhantomData;
use std::sync::Arc;

use super::extreme::Extreme;
use super::sum::elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::{NAN, NanRule};
use crate::{Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Sink, Spec, Step, Value};

const DETAILS: &str = "The index is that of the first element with the value, counted in elements from the \
                       first record of the file, also where a range was selected. -0.0 and 0.0 compare equal. \
                       With nan=propagate and a NaN among the values, value and index are those of the first \
                       NaN, as in NumPy. f32 values are shown widened to f64, which is exact. No values, or \
                       none but NaN under nan=skip, is an error.";

pub(crate) const MIN: Declaration = Declaration {
    name: "min",
    summary: "the smallest value and where it is first",
    details: DETAILS,
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("min", "as the type"), ("index", "element number")],
    rows: None,
    numerics: Numerics::Exact,
    bind: |params, input| bind(Which::Min, NanRule::of(params), input),
};

pub(crate) const MAX: Declaration = Declaration {
    name: "max",
    summary: "the largest value and where it is first",
    result: &[("max", "as the type"), ("index", "element number")],
    bind: |params, input| bind(Which::Max, NanRule::of(params), input),
    ..MIN
};

pub(crate) const MINMAX: Declaration = Declaration {
    name: "minmax",
    summary: "the smallest and the largest value and where they are first",
    result: &[
        ("min", "as the type"),
        ("min_index", "element number"),
        ("max", "as the type"),
        ("max_index", "element number"),
        ("count", "values looked at; with nan=skip those that are not NaN"),
    ],
    bind: |params, input| of(input, NanRule::of(params)),
    ..MIN
};

#[derive(Clone, Copy, PartialEq)]
enum Which {
    Min,
    Max,
    Both,
}

impl Which {
    const fn name(self) -> &'static str {
        match self {
            Which::Min => "min",
            Which::Max => "max",
            Which::Both => "minmax",
        }
    }
}

/// `minmax` for an input of elements.
pub(crate) fn of(input: &Input, nan: NanRule) -> Result<Arc<dyn Kernel>, KernelError> {
    bind(Which::Both, nan, input)
}

fn bind(which: Which, nan: NanRule, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = elements(which.name(), input)?;
    let per_record = input.per_record();
    with_element!(dtype, T => {
        Ok(Arc::new(MinMax::<T> { which, record, per_record, nan, element: PhantomData }))
    })
}

struct MinMax<T> {
    which: Which,
    record: u64,
    per_record: u64,
    nan: NanRule,
    element: PhantomData<T>,
}

impl<T: Element> Kernel for MinMax<T> {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed(self.which.name(), self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(ExtremeFold::<T> {
            kernel: self.which.name(),
            per_record: self.per_record,
            nan: self.nan,
            seen: Extreme::default(),
        }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let kernel = self.which.name();
        let seen = Extreme::<T>::decode(kernel, whole)?;
        let (min, max) = match (self.nan, seen.nan, seen.min, seen.max) {
            (NanRule::Propagate, Some(index), _, _) => {
                let nan = (Value::Float(f64::NAN), index);
                (nan.clone(), nan)
            }
            (_, _, Some(min), Some(max)) => ((min.0.value(), min.1), (max.0.value(), max.1)),
            _ => return Err(KernelError::Empty { kernel, why: "an extreme needs at least one value" }),
        };
        let skipped = if self.nan == NanRule::Skip { seen.nans } else { 0 };
        let count = seen.count.saturating_sub(skipped).into();
        Ok(Next::Done(Value::Map(match self.which {
            Which::Min => vec![("min", min.0), ("index", min.1.into())],
            Which::Max => vec![("max", max.0), ("index", max.1.into())],
            Which::Both => vec![
                ("min", min.0),
                ("min_index", min.1.into()),
                ("max", max.0),
                ("max_index", max.1.into()),
                ("count", count),
            ],
        })))
    }
}

/// Keeps the extremes; also the first pass of `histogram`.
pub(crate) struct ExtremeFold<T> {
    pub kernel: &'static str,
    pub per_record: u64,
    pub nan: NanRule,
    pub seen: Extreme<T>,
}

impl<T: Element> Fold for ExtremeFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        self.seen.take(block.first() * self.per_record, block.data());
        self.nan.check(self.seen.nan)?;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.seen.save(out);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.seen.merge(&Extreme::decode(self.kernel, later)?);
        Ok(())
    }
}
