//! An exact sum: the order does not matter, and the state is an accumulator.

use gristmill_exact::Sum;
use gristmill_kernel::state::StateReader;
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value};

/// Kernel for the exact sum of f64 values.
pub struct Total;

struct TotalFold(Sum);

impl Kernel for Total {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed("total", 8) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(TotalFold(Sum::new())))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::float(decode(whole)?.value())))
    }
}

fn decode(state: &[u8]) -> Result<Sum, KernelError> {
    let mut read = StateReader::new("total", state);
    let (sum, used) = Sum::decode(state).map_err(|e| read.bad(e.to_string()))?;
    read.bytes(used)?;
    read.end()?;
    Ok(sum)
}

impl Fold for TotalFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        self.0.add_f64_le(block.data());
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.0.merge(&decode(later)?);
        Ok(())
    }
}
