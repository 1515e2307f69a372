//! A kernel with a side input: every fold gets the whole of a small table.

use std::sync::Arc;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value};

/// Kernel for the sum of `table[byte]` over all bytes. The table is the side input. Bytes without an entry count 0.
pub struct Table;

struct TableFold {
    table: Arc<[u8]>,
    sum: u64,
}

impl Kernel for Table {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed("table", 1) }
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        match ctx.side.first() {
            Some(table) => Ok(Box::new(TableFold { table: table.clone(), sum: 0 })),
            None => Err(KernelError::Domain {
                kernel: "table",
                why: "there is no table; give it as the side input".into(),
            }),
        }
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(decode(whole)?)))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new("table", state);
    let sum = read.u64()?;
    read.end()?;
    Ok(sum)
}

impl Fold for TableFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let weight = |byte: &u8| self.table.get(usize::from(*byte)).map_or(0, |weight| u64::from(*weight));
        self.sum += block.data().iter().map(weight).sum::<u64>();
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.sum);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.sum = self.sum.saturating_add(decode(later)?);
        Ok(())
    }
}
