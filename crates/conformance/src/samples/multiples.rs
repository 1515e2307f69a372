//! A filter with rows.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{
    Block, Ctx, DType, Fold, Kernel, KernelError, Next, Output, Position, RowShape, RowValue, Sink, Spec,
    Step, Value,
};

/// Kernel for the bytes that are multiples of a number, and their count.
pub struct Multiples(pub u8);

struct MultiplesFold {
    divisor: u8,
    count: u64,
}

impl Kernel for Multiples {
    fn spec(&self) -> Spec {
        let shape =
            RowShape { position: "index", origin: 0, per_record: 1, value: RowValue::Element(DType::U8) };
        Spec { output: Output::Rows(shape), ..Spec::fixed("multiples", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(MultiplesFold { divisor: self.0, count: 0 }))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(decode(whole)?)))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new("multiples", state);
    let count = read.u64()?;
    read.end()?;
    Ok(count)
}

impl Fold for MultiplesFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        for (i, byte) in block.data().iter().enumerate() {
            if byte.is_multiple_of(self.divisor) {
                if sink.put(Position::of_record(block.first() + i as u64), &[*byte]).is_err() {
                    return Ok(Step::Full(i as u64));
                }
                self.count += 1;
            }
        }
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
