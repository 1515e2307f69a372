//! `var`: variance and standard deviation from exact sums of x and x².

use std::sync::Arc;

use super::accumulate::{Accumulate, MomentTotals};
use super::sum::require_elements;
use crate::catalog::{Accepts, Declaration};
use crate::nan::{NAN, NanRule};
use crate::{
    Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params, Spec,
    Value,
};

const NAME: &str = "var";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "mean, variance and standard deviation of the values",
    details: "(n Σx² - (Σx)²) / (n (n - ddof)) from exact sums, as one exact fraction that is rounded once to \
              f64; std is the correctly rounded root of the same fraction. An infinity among the values makes \
              variance and std NaN. Fewer values than ddof + 1 is an error.",
    accepts: &[Accepts::Elements],
    params: &[
        ParamDecl {
            name: "ddof",
            kind: ParamKind::Int { min: 0, max: 1 << 32 },
            default: Some("0"),
            required: false,
            help: "delta degrees of freedom: the divisor is n - ddof",
            example: "1",
        },
        NAN,
    ],
    result: &[("mean", "f64"), ("var", "f64"), ("std", "f64"), ("count", "values in the variance")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = require_elements(NAME, input)?;
    let ddof = params.int("ddof").unwrap_or(0);
    Ok(Arc::new(VarKernel { dtype, record, ddof, nan: NanRule::from_params(params) }))
}

struct VarKernel {
    dtype: DType,
    record: u64,
    ddof: u64,
    nan: NanRule,
}

impl Kernel for VarKernel {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 1200, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(Accumulate::<MomentTotals>::new(NAME, self.dtype, self.nan)))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = Accumulate::<MomentTotals>::new(NAME, self.dtype, self.nan).decode(whole)?;
        let skip = self.nan == NanRule::Skip;
        let count = whole.value_count();
        if count <= self.ddof {
            return Err(KernelError::Empty {
                kernel: NAME,
                why: "a variance needs at least ddof + 1 values",
            });
        }
        let (mean, var, std) = match &whole.totals {
            MomentTotals::Int(m) => (m.mean(count), m.variance(count, self.ddof), m.std(count, self.ddof)),
            MomentTotals::Float(m) => {
                (m.mean(count, skip), m.variance(count, self.ddof, skip), m.std(count, self.ddof, skip))
            }
        };
        Ok(Next::Done(Value::Map(vec![
            ("mean", Value::float(mean)),
            ("var", Value::float(var)),
            ("std", Value::float(std)),
            ("count", count.into()),
        ])))
    }
}
