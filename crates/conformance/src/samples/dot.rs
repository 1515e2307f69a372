//! A kernel with a second input, which is read together with the first, record by record.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value};

/// Kernel for the sum of products of the bytes of two files, an integer.
pub struct Dot;

#[derive(Default)]
struct DotFold(u64);

impl Kernel for Dot {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, second: Some(1), ..Spec::fixed("dot", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(DotFold::default()))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(decode(whole)?)))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new("dot", state);
    let sum = read.u64()?;
    read.end()?;
    Ok(sum)
}

impl Fold for DotFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        if block.second().len() != block.data().len() {
            return Err(KernelError::Contract {
                kernel: "dot",
                why: "the second input is not aligned".into(),
            });
        }
        let pairs = block.data().iter().zip(block.second());
        self.0 += pairs.map(|(a, b)| u64::from(*a) * u64::from(*b)).sum::<u64>();
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.0);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.0 = self.0.saturating_add(decode(later)?);
        Ok(())
    }
}
