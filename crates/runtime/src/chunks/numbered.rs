//! A kernel over chunks by their numbers, as a kernel over the positions of a request.

use std::sync::Arc;

use gristmill_kernel::{Block, Ctx, Fold, Kernel, KernelError, Next, Sink, Spec, Step};

use super::Chunks;

/// A kernel whose records are the chunks that are asked for, by position. It gives the chunks to a kernel over all chunks, by
/// number.
pub(crate) struct NumberedKernel {
    pub kernel: Arc<dyn Kernel>,
    pub numbers: Arc<[u64]>,
}

struct NumberedFold {
    fold: Box<dyn Fold>,
    numbers: Arc<[u64]>,
}

impl NumberedKernel {
    pub fn new(kernel: Arc<dyn Kernel>, chunks: &Chunks) -> NumberedKernel {
        NumberedKernel { kernel, numbers: chunks.numbers.clone() }
    }

    fn fold(&self, fold: Box<dyn Fold>) -> Box<dyn Fold> {
        Box::new(NumberedFold { fold, numbers: self.numbers.clone() })
    }
}

impl Kernel for NumberedKernel {
    fn spec(&self) -> Spec {
        self.kernel.spec()
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.begin(ctx)?))
    }
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        Ok(self.fold(self.kernel.restore(ctx, state)?))
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        self.kernel.advance(ctx, whole)
    }
    fn summary_suffices(&self, position: u64, summary: &[u8]) -> bool {
        let number = usize::try_from(position).ok().and_then(|position| self.numbers.get(position));
        number.is_some_and(|number| self.kernel.summary_suffices(*number, summary))
    }
    fn summary_key(&self) -> Option<Vec<u8>> {
        self.kernel.summary_key()
    }
}

impl Fold for NumberedFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        // A block of another count is skipped: after a stop between two chunks a block has no records.
        let number = usize::try_from(block.first()).ok().and_then(|position| self.numbers.get(position));
        match number {
            Some(number) if block.count() == 1 => {
                let block = Block::new(*number, 1, block.data()).with_summary(block.summary());
                self.fold.update(&block, sink)
            }
            _ => Ok(Step::Took(block.count())),
        }
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.fold.save(out);
    }
    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError> {
        self.fold.merge(later, sink)
    }
    fn summary(&mut self) -> Option<Vec<u8>> {
        self.fold.summary()
    }
}
