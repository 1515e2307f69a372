//! `sum`: the exact sum, rounded once.

use std::sync::Arc;

use super::accumulate::{Accumulate, SumTotals};
use crate::catalog::{Accepts, Declaration};
use crate::nan::{NAN, NanRule};
use crate::{
    Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Params, RecordRule, Spec, Value,
};

const NAME: &str = "sum";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the sum of the values",
    details: "Integers: the exact integer, of any size. Floats: the exact sum rounded once to f64 (also of f32 \
              data), equal to Python's math.fsum wherever that is finite; beyond the range of f64 it is an \
              infinity. Infinities of both signs give NaN; a sum that is exactly zero is +0.0. An empty \
              selection sums to 0.",
    accepts: &[Accepts::Elements],
    params: &[NAN],
    result: &[("sum", "integer for integer types, else f64"), ("count", "values summed")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    kernel(input, NanRule::from_params(params))
}

/// Makes the kernel for an input of elements.
pub(crate) fn kernel(input: &Input, nan: NanRule) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    Ok(Arc::new(SumKernel { dtype, record, nan }))
}

/// The element type and the record size of an input. It is an error if the input has no elements.
pub(crate) fn require_elements(kernel: &'static str, input: &Input) -> Result<(DType, u64), KernelError> {
    match (input.element, input.record) {
        (Some(dtype), RecordRule::Fixed(record)) => Ok((dtype, record)),
        _ => Err(KernelError::WrongInput { kernel, why: "works on numbers: say which with --type".into() }),
    }
}

struct SumKernel {
    dtype: DType,
    record: u64,
    nan: NanRule,
}

impl Kernel for SumKernel {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 600, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(Accumulate::<SumTotals>::new(NAME, self.dtype, self.nan)))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = Accumulate::<SumTotals>::new(NAME, self.dtype, self.nan).decode(whole)?;
        let sum = match &whole.totals {
            SumTotals::Int(sum) => Value::Int(sum.value()),
            SumTotals::Float(sum) if self.nan == NanRule::Skip => Value::float(sum.value_skip_nan()),
            SumTotals::Float(sum) => Value::float(sum.value()),
        };
        Ok(Next::Done(Value::Map(vec![("sum", sum), ("count", whole.value_count().into())])))
    }
}
