//! `count`: the number of values, records or lines.

use std::sync::Arc;

use memchr::memchr_iter;

use crate::catalog::{Accepts, Declaration};
use crate::element::{Element, first_nan};
use crate::nan::{NAN, NanRule};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Params, RecordRule, Sink,
    Spec, Step, Value,
};

const NAME: &str = "count";

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "how many values, records or lines there are",
    details: "Counts values with --type (with nan=skip only those that are not NaN), records with --record alone, \
              and lines otherwise. A last line without a newline counts.",
    accepts: &[Accepts::Elements, Accepts::Records, Accepts::Lines],
    params: &[NAN],
    result: &[("count", "integer")],
    rows: None,
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    Ok(Arc::new(Count { input: *input, nan: NanRule::from_params(params) }))
}

struct Count {
    input: Input,
    nan: NanRule,
}

impl Kernel for Count {
    fn spec(&self) -> Spec {
        match self.input.record {
            RecordRule::Lines => Spec::lines(NAME),
            RecordRule::Fixed(bytes) => Spec { order: Order::Any, ..Spec::fixed(NAME, bytes) },
        }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(CountFold { input: self.input, nan: self.nan, count: 0 }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::Map(vec![("count", decode(whole)?.into())])))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new(NAME, state);
    let count = read.u64()?;
    read.end()?;
    Ok(count)
}

struct CountFold {
    input: Input,
    nan: NanRule,
    count: u64,
}

impl Fold for CountFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let data = block.data();
        self.count += match (self.input.record, self.input.element, self.nan) {
            (RecordRule::Lines, ..) => {
                let unfinished = data.last().is_some_and(|last| *last != b'\n');
                memchr_iter(b'\n', data).count() as u64 + u64::from(unfinished)
            }
            (_, Some(dtype), NanRule::Error) => {
                let per_record = self.input.per_record();
                self.nan.check(first_nan(dtype, data).map(|i| block.first() * per_record + i))?;
                block.count() * per_record
            }
            (_, Some(DType::F32), NanRule::Skip) => numbers::<f32>(data),
            (_, Some(DType::F64), NanRule::Skip) => numbers::<f64>(data),
            _ => block.count() * self.input.per_record(),
        };
        Ok(Step::Took(block.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.count = self.count.saturating_add(decode(later)?);
        Ok(())
    }
}

fn numbers<T: Element>(data: &[u8]) -> u64 {
    data.chunks_exact(T::SIZE).map(|x| u64::from(!T::read(x).is_nan())).sum()
}
