//! `min`, `max` and `minmax`: the extremes and the indices at which they occur first.

use std::marker::PhantomData;
use std::sync::Arc;

use super::extreme::Extremes;
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, with_element};
use crate::nan::{NAN, NanRule};
use crate::{Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Sink, Spec, Step, Value};

const DETAILS: &str = "The index is that of the first element with the value, counted in elements from the first \
                       record of the file, also if a range is selected. -0.0 and 0.0 compare equal. With \
                       nan=propagate and a NaN among the values, value and index are those of the first NaN, as in \
                       NumPy. f32 values are shown widened to f64, which is exact. It is an error if there are no \
                       values, or only NaN with nan=skip.";

pub(crate) const MIN: Declaration = Declaration {
    name: "min",
    summary: "the smallest value and where it is first",
    details: DETAILS,
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("min", "as the type"), ("index", "element number")],
    rows: None,
    numerics: Numerics::Exact,
    bind: |params, input| bind(Variant::Min, NanRule::from_params(params), input),
};

pub(crate) const MAX: Declaration = Declaration {
    name: "max",
    summary: "the largest value and where it is first",
    result: &[("max", "as the type"), ("index", "element number")],
    bind: |params, input| bind(Variant::Max, NanRule::from_params(params), input),
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
        ("count", "number of values, without NaN with nan=skip"),
    ],
    bind: |params, input| kernel(input, NanRule::from_params(params)),
    ..MIN
};

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Min,
    Max,
    Both,
}

impl Variant {
    const fn name(self) -> &'static str {
        match self {
            Variant::Min => "min",
            Variant::Max => "max",
            Variant::Both => "minmax",
        }
    }
}

/// Makes the kernel `minmax` for an input of elements.
pub(crate) fn kernel(input: &Input, nan: NanRule) -> Result<Arc<dyn Kernel>, KernelError> {
    bind(Variant::Both, nan, input)
}

fn bind(variant: Variant, nan: NanRule, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(variant.name(), input)?;
    let per_record = input.per_record();
    with_element!(dtype, T => {
        Ok(Arc::new(MinMax::<T> { variant, record, per_record, nan, element: PhantomData }))
    })
}

struct MinMax<T> {
    variant: Variant,
    record: u64,
    per_record: u64,
    nan: NanRule,
    element: PhantomData<T>,
}

impl<T: Element> Kernel for MinMax<T> {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed(self.variant.name(), self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(ExtremeFold::<T> {
            kernel: self.variant.name(),
            per_record: self.per_record,
            nan: self.nan,
            seen: Extremes::default(),
        }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let kernel = self.variant.name();
        let seen = Extremes::<T>::decode(kernel, whole)?;
        let (min, max) = match (self.nan, seen.first_nan, seen.min, seen.max) {
            (NanRule::Propagate, Some(index), _, _) => {
                let nan = (Value::Float(f64::NAN), index);
                (nan.clone(), nan)
            }
            (_, _, Some(min), Some(max)) => ((min.0.value(), min.1), (max.0.value(), max.1)),
            _ => return Err(KernelError::Empty { kernel, why: "an extreme needs at least one value" }),
        };
        let skipped = if self.nan == NanRule::Skip { seen.nans } else { 0 };
        let count = seen.count.saturating_sub(skipped).into();
        Ok(Next::Done(Value::Map(match self.variant {
            Variant::Min => vec![("min", min.0), ("index", min.1.into())],
            Variant::Max => vec![("max", max.0), ("index", max.1.into())],
            Variant::Both => vec![
                ("min", min.0),
                ("min_index", min.1.into()),
                ("max", max.0),
                ("max_index", max.1.into()),
                ("count", count),
            ],
        })))
    }
}

/// A fold that keeps the extremes. The first pass of `histogram` uses it, too.
pub(crate) struct ExtremeFold<T> {
    pub kernel: &'static str,
    pub per_record: u64,
    pub nan: NanRule,
    pub seen: Extremes<T>,
}

impl<T: Element> Fold for ExtremeFold<T> {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        self.seen.take(block.first() * self.per_record, block.data());
        self.nan.check(self.seen.first_nan)?;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.seen.save(out);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.seen.merge(&Extremes::decode(self.kernel, later)?);
        Ok(())
    }
}
