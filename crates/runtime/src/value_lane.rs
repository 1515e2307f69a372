//! A lane whose folds give a value. The states of finished folds are joined in any order.

use std::sync::atomic::Ordering;

use gristmill_kernel::{Block, DrainOutcome, Fold, NoRows, Summary, feed, saved};

use crate::fetch::Tally;
use crate::lane_threads::{Lane, LaneThread};
use crate::pass::{Pass, lock};
use crate::reader::{Flow, Reader};
use crate::{ExtentSet, Partial, RunError};

/// A lane of a kernel that gives a value.
pub(crate) struct ValueLane<'a, 'p> {
    pass: &'p Pass<'a>,
    fold: Option<RunningFold>,
    /// Position up to which it has read.
    at: u64,
}

/// Most ranges of the covered set of a fold before a lane joins its state.
const MAX_OWN_RANGES: usize = 4096;

struct RunningFold {
    fold: Box<dyn Fold>,
    covered: ExtentSet,
    end: u64,
}

impl<'a, 'p> ValueLane<'a, 'p> {
    pub fn new(pass: &'p Pass<'a>) -> Self {
        ValueLane { pass, fold: None, at: 0 }
    }

    fn block(&mut self, block: &Block<'_>, thread: &LaneThread<'_, '_>) -> Result<Flow, RunError> {
        let pass = self.pass;
        let Some(part) = pass.allowed(block) else { return Ok(Flow::Stop) };
        let collapses = pass.job.collapses;
        if self.fold.as_ref().is_some_and(|running| !collapses && running.end != part.first()) {
            self.flush(None)?;
        }
        let running = match &mut self.fold {
            Some(running) => running,
            none => {
                let (fold, start) = pass.begin(part.first())?;
                none.insert(RunningFold {
                    fold,
                    covered: ExtentSet::from_range(start..part.first()),
                    end: part.first(),
                })
            }
        };
        let nothing = |_: &mut NoRows| Ok(DrainOutcome::Nothing);
        let fed = feed(&pass.job.spec, &mut *running.fold, &part, &mut NoRows, nothing);
        let (took, enough) = match fed {
            Ok(fed) => fed,
            Err(error) => {
                // The fold may have taken the records on which it failed, and would fail again.
                self.fold = None;
                return Err(error.into());
            }
        };
        if let (Some(statistics), Some(chunks)) = (&pass.job.statistics, &pass.job.chunks)
            && let (Some(summary), Some(number)) =
                (running.fold.summary(), chunks.chunks.number(part.first()))
        {
            statistics.learned(number, summary);
        }
        running.covered.add(part.first()..part.first() + took)?;
        running.end = part.first() + took;
        if let Summary::Substitute(_) = part.summary() {
            pass.control.settled(took);
        }
        thread.folded(took);
        if enough {
            // With an order, no records behind this position are needed. Without an order, no more records are needed.
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
        let piece = Partial::new(pass.ctx.round, running.covered, saved(&*running.fold));
        let piece = Partial { enough_at, ..piece };
        let seam = lock(&pass.partial).join_to_seam(&*pass.job.kernel, pass.ctx, piece, &mut NoRows)?;
        if let Some((at, error)) = seam {
            pass.fail(at, error);
        }
        Ok(())
    }
}

impl Lane for ValueLane<'_, '_> {
    fn run(mut self, thread: &LaneThread<'_, '_>) -> (Tally, Option<Self>) {
        let pass = self.pass;
        let mut reader = Reader::new(pass.job);
        loop {
            let unit = pass.claim(&mut lock(&pass.units));
            let Some(unit) = unit else { break };
            reader.at = pass.position(&unit);
            if let Some(storage) = &pass.storage {
                match storage.unit(pass, &unit, &mut reader.tally) {
                    Ok(folded) => {
                        // The processors of this machine did not fold them, so they say nothing of its speed.
                        pass.control.settled(folded.count());
                        thread.folded(folded.count());
                        reader.folded = folded;
                    }
                    Err(error) => {
                        pass.fail(reader.at, error);
                        continue;
                    }
                }
            }
            let each = &mut |block: &Block<'_>| {
                pass.control.in_pieces(&pass.job.spec, block, &mut |piece| self.block(piece, thread))
            };
            if let Err(error) = reader.unit(&unit, each) {
                // Records before the failure still count: they may fail too, or they may be all that is needed.
                pass.fail(reader.at, error);
            }
            self.at = reader.at;
            if thread.ends_here() {
                return (reader.tally, Some(self));
            }
        }
        if let Err(error) = self.flush(None) {
            pass.fail(self.at, error);
        }
        (reader.tally, None)
    }
}
