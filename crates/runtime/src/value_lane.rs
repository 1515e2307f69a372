//! A lane whose folds give a value: states are joined as they are finished, in any order.

use std::sync::atomic::Ordering;

use gristmill_kernel::{Block, Emptied, Fold, NoRows, feed, saved};

use crate::fetch::Tally;
use crate::pass::{Pass, lock};
use crate::reader::{Flow, Reader};
use crate::{ExtentSet, Partial, RunError};

/// A lane of a kernel that gives a value.
pub(crate) struct ValueLane<'a, 'p> {
    pass: &'p Pass<'a>,
    fold: Option<Running>,
    /// Where it is.
    at: u64,
}

/// Ranges of a covered set that a lane keeps to itself.
const MAX_OWN_RANGES: usize = 4096;

struct Running {
    fold: Box<dyn Fold>,
    covered: ExtentSet,
    end: u64,
}

impl<'a, 'p> ValueLane<'a, 'p> {
    pub fn new(pass: &'p Pass<'a>) -> Self {
        ValueLane { pass, fold: None, at: 0 }
    }

    pub fn run(mut self) -> Tally {
        let pass = self.pass;
        let mut reader = Reader::new(pass.job);
        loop {
            let unit = pass.claim(&mut lock(&pass.units));
            let Some(unit) = unit else { break };
            self.at = pass.position(&unit);
            if let Err(error) = reader.unit(&unit, &mut |block| self.block(block)) {
                pass.fail(self.at, error);
                // What was folded before counts: it may be all that is needed.
                continue;
            }
        }
        if let Err(error) = self.flush(None) {
            pass.fail(self.at, error);
        }
        reader.tally
    }

    fn block(&mut self, block: &Block<'_>) -> Result<Flow, RunError> {
        let pass = self.pass;
        let Some(part) = pass.allowed(block) else { return Ok(Flow::Stop) };
        self.at = part.first();
        let collapses = pass.job.collapses;
        if self.fold.as_ref().is_some_and(|running| !collapses && running.end != part.first()) {
            self.flush(None)?;
        }
        let running = match &mut self.fold {
            Some(running) => running,
            none => {
                let (fold, start) = pass.begin(part.first())?;
                none.insert(Running { fold, covered: ExtentSet::of(start..part.first()), end: part.first() })
            }
        };
        let nothing = |_: &mut NoRows| Ok(Emptied::Nothing);
        let (took, enough) = feed(&pass.job.spec, &mut *running.fold, &part, &mut NoRows, nothing)?;
        running.covered.add(part.first()..part.first() + took)?;
        running.end = part.first() + took;
        pass.control.folded(took);
        if enough {
            // With an order, nothing behind this place is needed; without one, nothing at all.
            let at = if collapses { 0 } else { running.end };
            pass.enough.fetch_min(at, Ordering::Relaxed);
            self.flush(Some(at))?;
            return Ok(Flow::Stop);
        }
        if running.covered.ranges().len() > MAX_OWN_RANGES {
            self.flush(None)?;
        }
        Ok(if took == block.count() { Flow::Go } else { Flow::Stop })
    }

    fn flush(&mut self, enough_at: Option<u64>) -> Result<(), RunError> {
        let Some(running) = self.fold.take() else { return Ok(()) };
        let pass = self.pass;
        let piece = Partial::of(pass.ctx.round, running.covered, saved(&*running.fold));
        let piece = Partial { enough_at, ..piece };
        lock(&pass.partial).join(&*pass.job.kernel, pass.ctx, piece, &mut NoRows)
    }
}
