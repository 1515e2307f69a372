//! A three-point stencil: a map with a halo of one record. Its rows are the output.

use gristmill_kernel::{
    Block, Ctx, Fold, Kernel, KernelError, Next, Output, Position, Sink, Spec, Step, Value,
};

use super::as_floats;

/// Kernel that replaces each f64 x by (left neighbour + 2 x + right neighbour) / 4. The ends are their own neighbours.
pub struct Stencil;

struct StencilFold;

impl Kernel for Stencil {
    fn spec(&self) -> Spec {
        Spec { halo: 1, output: Output::Bytes, ..Spec::fixed("stencil", 8) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(StencilFold))
    }
    fn advance(&self, ctx: &Ctx, _: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(ctx.extent.end - ctx.extent.start)))
    }
}

impl Fold for StencilFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        let before = as_floats(block.before()).last();
        let after = as_floats(block.after()).next();
        let values: Vec<f64> = as_floats(block.data()).collect();
        for (i, x) in values.iter().enumerate() {
            let left = if i > 0 { values[i - 1] } else { before.unwrap_or(*x) };
            let right = values.get(i + 1).copied().or(after).unwrap_or(*x);
            let smooth = (left + 2.0 * x + right) / 4.0;
            if sink.put(Position::of_record(block.first() + i as u64), &smooth.to_le_bytes()).is_err() {
                return Ok(Step::Full(i as u64));
            }
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        gristmill_kernel::state::StateReader::new("stencil", later).end()
    }
}
