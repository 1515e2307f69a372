//! `mean`: the exact sum divided by the number of values, rounded once.

use std::sync::Arc;

use super::accumulate::{Accumulate, SumTotals};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::nan::{NAN, NanRule};
use crate::{Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Params, Spec, Value};

const NAME: &str = "mean";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the arithmetic mean of the values",
    details: "The exact sum divided by the number of values, rounded once to f64, for every type. It does not \
              overflow if the mean itself is in range. It is an error if there are no values, or only NaN with \
              nan=skip.",
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("mean", "f64"), ("count", "values in the mean")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    Ok(Arc::new(MeanKernel { dtype, record, nan: NanRule::from_params(params) }))
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
        Ok(Box::new(Accumulate::<SumTotals>::new(NAME, self.dtype, self.nan)))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = Accumulate::<SumTotals>::new(NAME, self.dtype, self.nan).decode(whole)?;
        let count = whole.value_count();
        if count == 0 {
            return Err(KernelError::Empty { kernel: NAME, why: "a mean needs at least one value" });
        }
        let mean = match &whole.totals {
            SumTotals::Int(sum) => sum.mean(count),
            SumTotals::Float(sum) if self.nan == NanRule::Skip => sum.mean_skip_nan(count),
            SumTotals::Float(sum) => sum.mean(count),
        };
        Ok(Next::Done(Value::Map(vec![("mean", Value::float(mean)), ("count", count.into())])))
    }
}
