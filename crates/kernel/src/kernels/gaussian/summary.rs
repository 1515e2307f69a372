//! The summary of a filtered image: its sum and its extremes.

use std::sync::Arc;

use super::NAME;
use crate::kernels::{minmax, sum};
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, NoRows, RecordRule, Value};

/// The kernels of the summary, which fold the filtered rows.
#[derive(Clone)]
pub(super) struct ImageSummary {
    each: [Arc<dyn Kernel>; 2],
}

impl ImageSummary {
    /// A summary of rows of `row` bytes.
    pub fn new(dtype: DType, row: u64) -> Result<ImageSummary, KernelError> {
        let input = Input { element: Some(dtype), record: RecordRule::Fixed(row), header: 0 };
        let nan = NanRule::Propagate;
        Ok(ImageSummary { each: [sum::kernel(&input, nan)?, minmax::kernel(&input, nan)?] })
    }

    /// Expected bytes of a saved state.
    pub fn state_hint(&self) -> u64 {
        self.each.iter().map(|kernel| kernel.spec().state_hint + 8).sum()
    }

    pub fn begin(&self, ctx: &Ctx) -> Result<ImageSummaryFold, KernelError> {
        let [sum, minmax] = &self.each;
        Ok(ImageSummaryFold { each: [sum.begin(ctx)?, minmax.begin(ctx)?] })
    }

    /// The results over all rows, by name.
    pub fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Vec<(&'static str, Value)>, KernelError> {
        let mut entries: Vec<(&'static str, Value)> = Vec::new();
        let mut state = StateReader::new(NAME, whole);
        for kernel in &self.each {
            if let Next::Done(Value::Map(found)) = kernel.advance(ctx, state.blob()?)? {
                let new = |(name, _): &(&str, Value)| entries.iter().all(|(known, _)| known != name);
                let found: Vec<_> = found.into_iter().filter(new).collect();
                entries.extend(found);
            }
        }
        state.end()?;
        Ok(entries)
    }
}

/// The folds of the summary. The state has the length and the state of each fold.
pub(super) struct ImageSummaryFold {
    each: [Box<dyn Fold>; 2],
}

impl ImageSummaryFold {
    /// Folds `count` filtered rows. The first of them has the number `first`.
    pub fn take(&mut self, first: u64, count: u64, rows: &[u8]) -> Result<(), KernelError> {
        let block = Block::new(first, count, rows);
        for fold in &mut self.each {
            fold.update(&block, &mut NoRows)?;
        }
        Ok(())
    }

    pub fn save(&self, out: &mut Vec<u8>) {
        for fold in &self.each {
            out.put_blob(&crate::saved(fold.as_ref()));
        }
    }

    pub fn merge(&mut self, later: &[u8]) -> Result<(), KernelError> {
        let mut later = StateReader::new(NAME, later);
        for fold in &mut self.each {
            fold.merge(later.blob()?, &mut NoRows)?;
        }
        later.end()
    }
}
