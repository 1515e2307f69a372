//! The fold over a part of an object.

use std::ops::Range;

use gristmill_kernel::{Block, Ctx, DrainOutcome, Fold, Kernel, NoRows, Order, Spec, feed, saved};

use crate::reading::{BlockReader, ReadObject};
use crate::{FoldError, FoldOrder, Folded, FoldedState, Span, check_foldable};

/// Bytes of the first block. It is small, so that a slow kernel does not run long before the clock is looked at.
pub const FIRST_BLOCK: u64 = 16 << 10;

/// Bytes of the largest block. Each block is twice as long as the one before until then. The OSD allocates memory for each block. For
/// 1 MiB and more its allocator gets new pages from the system each time, and reading takes fifteen times as long.
pub const LARGEST_BLOCK: u64 = 128 << 10;

/// Folds spans of an object that [`FoldOrder::decode`] gave.
///
/// It ends early where the object cannot be read, where the kernel fails, and after the first block for which `out_of_time` returns true.
/// At least one block is folded, if the kernel allows it. What is not in the answer was not folded.
///
/// # Errors
/// It fails if the kernel cannot be bound, and if it cannot be folded here ([`check_foldable`]).
pub fn fold_object<R: ReadObject>(
    order: &FoldOrder,
    spans: &[Span],
    read: &mut R,
    out_of_time: &mut dyn FnMut() -> bool,
) -> Result<Folded, FoldError> {
    let kernel = order.binding.bind()?;
    let spec = kernel.spec();
    let record = check_foldable(&spec, order.last)?;
    let ctx = order.ctx();
    let mut run =
        ObjectRun { kernel: &*kernel, spec: &spec, ctx: &ctx, running: None, folded: Folded::default() };
    let mut reader = BlockReader::new(read);
    let mut block_bytes = FIRST_BLOCK;
    let element = order.binding.element(&spec).map_or(1, gristmill_kernel::DType::size);
    for span in spans {
        let mut at = span.records.start;
        while at < span.records.end {
            let count = (block_bytes / record).max(1).min(span.records.end - at);
            block_bytes = (2 * block_bytes).min(LARGEST_BLOCK);
            // A block has at most LARGEST_BLOCK or MAX_RECORD bytes.
            let length = (count * record) as usize;
            let offset = span.offset.saturating_add((at - span.records.start).saturating_mul(record));
            let after = (span.records.end - at - count).saturating_mul(record);
            let Some(bytes) = reader.block(offset, length, after) else { return Ok(run.end()) };
            order.binding.byte_order.to_little(element, bytes);
            if !run.block(&Block::new(at, count, bytes))? {
                return Ok(run.end());
            }
            at += count;
            if out_of_time() {
                run.folded.out_of_time = at < span.records.end || spans.last() != Some(span);
                return Ok(run.end());
            }
        }
    }
    Ok(run.end())
}

/// A fold, and the records that it covers.
type RunningFold = (Box<dyn Fold>, Vec<Range<u64>>);

struct ObjectRun<'a> {
    kernel: &'a dyn Kernel,
    spec: &'a Spec,
    ctx: &'a Ctx,
    running: Option<RunningFold>,
    folded: Folded,
}

impl ObjectRun<'_> {
    /// Folds a block. Returns false if no more are needed or possible.
    fn block(&mut self, block: &Block<'_>) -> Result<bool, FoldError> {
        let first = block.first();
        let follows = |records: &[Range<u64>]| records.last().is_some_and(|last| last.end == first);
        if self.spec.order == Order::File
            && self.running.as_ref().is_some_and(|(_, covered)| !follows(covered))
        {
            self.flush();
        }
        let (fold, covered) = match &mut self.running {
            Some(running) => running,
            none => none.insert((self.kernel.begin(self.ctx)?, Vec::new())),
        };
        let fed = feed(self.spec, &mut **fold, block, &mut NoRows, |_| Ok(DrainOutcome::Nothing));
        let Ok((took, enough)) = fed else {
            // The fold may have taken the records on which it failed.
            self.running = None;
            return Ok(false);
        };
        let end = first + took;
        match covered.last_mut() {
            Some(last) if last.end == first => last.end = end,
            _ => covered.push(first..end),
        }
        if enough {
            self.folded.enough = Some(if self.spec.order == Order::Any { 0 } else { end });
        }
        Ok(!enough && took == block.count())
    }

    fn flush(&mut self) {
        if let Some((fold, records)) = self.running.take() {
            self.folded.states.push(FoldedState { records, state: saved(&*fold) });
        }
    }

    fn end(mut self) -> Folded {
        self.flush();
        self.folded
    }
}
