//! What is told of a filtered image where nobody wants the image: its sum and its extremes.

use std::sync::Arc;

use super::NAME;
use crate::kernels::{minmax, sum};
use crate::nan::NanRule;
use crate::state::{StateReader, StateWriter};
use crate::{Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, NoRows, RecordRule, Value};

/// The kernels that fold the filtered rows.
#[derive(Clone)]
pub(super) struct Summary {
    each: [Arc<dyn Kernel>; 2],
}

impl Summary {
    /// Of rows of so many bytes.
    pub fn new(dtype: DType, row: u64) -> Result<Summary, KernelError> {
        let input = Input { element: Some(dtype), record: RecordRule::Fixed(row), header: 0 };
        let nan = NanRule::Propagate;
        Ok(Summary { each: [sum::of(&input, nan)?, minmax::of(&input, nan)?] })
    }

    /// Bytes of a state, about.
    pub fn state_hint(&self) -> u64 {
        self.each.iter().map(|kernel| kernel.spec().state_hint + 8).sum()
    }

    pub fn begin(&self, ctx: &Ctx) -> Result<Summing, KernelError> {
        let [sum, minmax] = &self.each;
        Ok(Summing { each: [sum.begin(ctx)?, minmax.begin(ctx)?] })
    }

    /// What is to be said of all rows, by name.
    pub fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Vec<(&'static str, Value)>, KernelError> {
        let mut said: Vec<(&'static str, Value)> = Vec::new();
        let mut state = StateReader::new(NAME, whole);
        for kernel in &self.each {
            if let Next::Done(Value::Map(found)) = kernel.advance(ctx, state.blob()?)? {
                let new = |(name, _): &(&str, Value)| said.iter().all(|(known, _)| known != name);
                let found: Vec<_> = found.into_iter().filter(new).collect();
                said.extend(found);
            }
        }
        state.end()?;
        Ok(said)
    }
}

/// The folds of them. The state is that of each behind its length.
pub(super) struct Summing {
    each: [Box<dyn Fold>; 2],
}

impl Summing {
    /// Takes filtered rows in, the first of which has this number.
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
