//! `mean`: the exact sum divided by the number of values, rounded once.

use std::sync::Arc;

use super::accumulate::{Accumulate, SumOf};
use super::sum::elements;
use crate::catalog::{Accepts, Declaration};
use crate::nan::{NAN, NanRule};
use crate::{Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Params, Spec, Value};

const NAME: &str = "mean";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the arithmetic mean of the values",
    details: "The exact sum divided by the number of values, rounded once to f64, for every type. It does not \
              overflow where the mean itself is in range. No values, or none but NaN under nan=skip, is an \
              error.",
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("mean", "f64"), ("count", "values that the mean is of")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = elements(NAME, input)?;
    Ok(Arc::new(MeanKernel { dtype, record, nan: NanRule::of(params) }))
}

struct MeanKernel {
    dtype: DType,
    record: u64,
    nan: NanRule,
}

impl Kernel for MeanKernel {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 600, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(Accumulate::<SumOf>::new(NAME, self.dtype, self.nan)))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = Accumulate::<SumOf>::new(NAME, self.dtype, self.nan).decode(whole)?;
        let count = whole.counted();
        if count == 0 {
            return Err(KernelError::Empty { kernel: NAME, why: "a mean needs at least one value" });
        }
        let mean = match &whole.totals {
            SumOf::Int(sum) => sum.mean(count),
            SumOf::Float(sum) if self.nan == NanRule::Skip => sum.mean_skip_nan(count),
            SumOf::Float(sum) => sum.mean(count),
        };
        Ok(Next::Done(Value::Map(vec![("mean", Value::float(mean)), ("count", count.into())])))
    }
}
