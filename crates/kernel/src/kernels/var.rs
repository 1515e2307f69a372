//! `var`: variance and standard deviation from exact sums of x and x².

use std::sync::Arc;

use gristmill_exact::{IntMoments, Moments};

use super::accumulate::int_kind;
use super::sum::elements;
use crate::catalog::{Accepts, Declaration};
use crate::element::first_nan;
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, ParamDecl, ParamKind, Params,
    Sink, Spec, Step, Value,
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
    result: &[("mean", "f64"), ("var", "f64"), ("std", "f64"), ("count", "values that the variance is of")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let (dtype, record) = elements(NAME, input)?;
    let ddof = params.int("ddof").unwrap_or(0);
    Ok(Arc::new(VarKernel { dtype, record, ddof, nan: NanRule::of(params) }))
}

struct VarKernel {
    dtype: DType,
    record: u64,
    ddof: u64,
    nan: NanRule,
}

impl VarKernel {
    fn fold(&self) -> VarFold {
        let moments = match int_kind(self.dtype) {
            Some(_) => Both::Int(IntMoments::new()),
            None => Both::Float(Box::default()),
        };
        VarFold { dtype: self.dtype, nan: self.nan, count: 0, moments }
    }
}

impl Kernel for VarKernel {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, state_hint: 1200, ..Spec::fixed(NAME, self.record) }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(self.fold()))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let whole = self.fold().decode(whole)?;
        let skip = self.nan == NanRule::Skip;
        let count = match &whole.moments {
            Both::Float(moments) if skip => whole.count.saturating_sub(moments.nans()),
            _ => whole.count,
        };
        if count <= self.ddof {
            return Err(KernelError::Empty {
                kernel: NAME,
                why: "a variance needs at least ddof + 1 values",
            });
        }
        let (mean, var, std) = match &whole.moments {
            Both::Int(m) => (m.mean(count), m.variance(count, self.ddof), m.std(count, self.ddof)),
            Both::Float(m) => {
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

enum Both {
    Float(Box<Moments>),
    Int(IntMoments),
}

struct VarFold {
    dtype: DType,
    nan: NanRule,
    count: u64,
    moments: Both,
}

impl VarFold {
    fn decode(mut self, state: &[u8]) -> Result<VarFold, KernelError> {
        let mut read = StateReader::new(NAME, state);
        self.count = read.u64()?;
        let used;
        (self.moments, used) = match self.moments {
            Both::Float(_) => {
                let (m, used) = Moments::decode(read.rest()).map_err(|e| read.bad(e.to_string()))?;
                (Both::Float(Box::new(m)), used)
            }
            Both::Int(_) => {
                let (m, used) = IntMoments::decode(read.rest()).map_err(|e| read.bad(e.to_string()))?;
                (Both::Int(m), used)
            }
        };
        read.bytes(used)?;
        read.end()?;
        Ok(self)
    }
}

impl Fold for VarFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        let elements = (data.len() / self.dtype.size()) as u64;
        match &mut self.moments {
            Both::Int(moments) => {
                if let Some(kind) = int_kind(self.dtype) {
                    moments.add_le(kind, data);
                }
            }
            Both::Float(moments) => {
                let nans = moments.nans();
                if self.dtype == DType::F32 {
                    moments.add_f32_le(data)
                } else {
                    moments.add_f64_le(data)
                }
                if self.nan == NanRule::Error && moments.nans() != nans {
                    let per_record = elements / block.count().max(1);
                    self.nan.check(first_nan(self.dtype, data).map(|i| block.first() * per_record + i))?;
                }
            }
        }
        self.count += elements;
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        match &self.moments {
            Both::Float(moments) => moments.encode(out),
            Both::Int(moments) => moments.encode(out),
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let identity = match self.moments {
            Both::Float(_) => Both::Float(Box::default()),
            Both::Int(_) => Both::Int(IntMoments::new()),
        };
        let later =
            VarFold { dtype: self.dtype, nan: self.nan, count: 0, moments: identity }.decode(later)?;
        self.count = self.count.saturating_add(later.count);
        match (&mut self.moments, &later.moments) {
            (Both::Float(a), Both::Float(b)) => a.merge(b),
            (Both::Int(a), Both::Int(b)) => a.merge(b),
            // Both were made for the same element type.
            _ => {}
        }
        Ok(())
    }
}
