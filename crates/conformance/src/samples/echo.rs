//! A sum over bytes and their neighbours at a distance: a value with a halo of any width.

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step, Value};

/// Kernel for a sum modulo 2^64. For each byte, it adds the byte, three times the byte at this distance before it, and
/// five times the byte at this distance after it. Bytes beyond the ends of the file are zeros.
pub struct Echo(pub u64);

struct EchoFold {
    halo: usize,
    sum: u64,
}

impl Kernel for Echo {
    fn spec(&self) -> Spec {
        Spec { halo: self.0, ..Spec::fixed("echo", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(EchoFold { halo: self.0 as usize, sum: 0 }))
    }
    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::from(decode(whole)?)))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new("echo", state);
    let sum = read.u64()?;
    read.end()?;
    Ok(sum)
}

impl Fold for EchoFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        let bytes = [block.before(), block.data(), block.after()].concat();
        let at = |i: Option<usize>| i.and_then(|i| bytes.get(i)).map_or(0, |x| u64::from(*x));
        let first = block.before().len();
        for i in first..first + block.data().len() {
            let around = 3 * at(i.checked_sub(self.halo)) + 5 * at(i.checked_add(self.halo));
            self.sum = self.sum.wrapping_add(at(Some(i)) + around);
        }
        Ok(Step::Took(block.count()))
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.sum);
    }
    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.sum = self.sum.wrapping_add(decode(later)?);
        Ok(())
    }
}
