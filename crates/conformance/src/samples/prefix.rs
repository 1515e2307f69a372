//! Rows until a zero: a fold that has enough.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{
    Block, Ctx, DType, Fold, Kernel, KernelError, Next, Output, Position, RowShape, RowValue, Sink, Spec,
    Step, Value,
};

/// Kernel for the bytes before the first zero, and their count.
pub struct Prefix;

#[derive(Clone, Copy, Default)]
struct PrefixFold {
    count: u64,
    found: bool,
}

impl Kernel for Prefix {
    fn spec(&self) -> Spec {
        let shape =
            RowShape { position: "index", origin: 0, per_record: 1, value: RowValue::Element(DType::U8) };
        Spec { output: Output::Rows(shape), ..Spec::fixed("prefix", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(PrefixFold::default()))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(decode(whole)?.count)))
    }
}

fn decode(state: &[u8]) -> Result<PrefixFold, KernelError> {
    let mut read = StateReader::new("prefix", state);
    let fold = PrefixFold { count: read.u64()?, found: read.flag()? };
    read.end()?;
    Ok(fold)
}

impl Fold for PrefixFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        for (i, byte) in block.data().iter().enumerate() {
            self.found |= *byte == 0;
            if self.found {
                return Ok(Step::Enough);
            }
            if sink.put(Position::of_record(block.first() + i as u64), &[*byte]).is_err() {
                return Ok(Step::Full(i as u64));
            }
            self.count += 1;
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
        out.put_flag(self.found);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let later = decode(later)?;
        if !self.found {
            self.count = self.count.saturating_add(later.count);
            self.found = later.found;
        }
        Ok(())
    }
}
