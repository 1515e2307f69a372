//! A variance in two passes: the first broadcasts the mean, the second sums squared distances from it.

use gristmill_exact::Sum;
use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value};

use super::floats;

/// Kernel for the population variance of f64 values.
pub struct CentredVariance;

struct CentredFold {
    /// Mean that is subtracted before squaring. `None` in the first pass, which sums the values themselves.
    mean: Option<f64>,
    count: u64,
    sum: Sum,
}

impl Kernel for CentredVariance {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed("centred", 8) }
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        let mean = match ctx.round {
            0 => None,
            _ => Some(StateReader::new("centred", &ctx.shared).f64()?),
        };
        Ok(Box::new(CentredFold { mean, count: 0, sum: Sum::new() }))
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let (count, sum) = decode(whole)?;
        let mean = sum.mean(count);
        if ctx.round > 0 {
            return Ok(Next::Done(Value::float(mean)));
        }
        let mut shared = Vec::new();
        shared.put_f64(mean);
        Ok(Next::Again(shared))
    }
}

fn decode(state: &[u8]) -> Result<(u64, Sum), KernelError> {
    let mut read = StateReader::new("centred", state);
    let count = read.u64()?;
    let (sum, used) = Sum::decode(read.rest()).map_err(|e| read.bad(e.to_string()))?;
    read.bytes(used)?;
    read.end()?;
    Ok((count, sum))
}

impl Fold for CentredFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        for x in floats(block) {
            self.sum.add(self.mean.map_or(x, |mean| (x - mean) * (x - mean)));
        }
        self.count += block.count();
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        self.sum.encode(out);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let (count, sum) = decode(later)?;
        self.count = self.count.saturating_add(count);
        self.sum.merge(&sum);
        Ok(())
    }
}
