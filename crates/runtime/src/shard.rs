//! One pass over the records that some targets own: what a storage node folds for a request.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::Ctx;
use gristmill_layout::TargetIndex;

use crate::crew::UnitOutput;
use crate::job::unchanged;
use crate::pass::Pass;
use crate::prepare::{Prepared, prepare};
use crate::rows::Message;
use crate::{Control, Partial, Request, RunError, ShardEnd, Tally};

/// The part of a pass that one node folds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Targets of the file, by their place in its layout, whose records are folded.
    pub targets: Vec<TargetIndex>,
    /// Number of the pass.
    pub round: u32,
    /// What the pass before broadcast.
    pub shared: Arc<[u8]>,
    /// Whether it is the last of several passes: the one that gives rows.
    pub last: bool,
    /// Records of the request, as positions; the shard is those among them that the targets own.
    pub select: Range<u64>,
}

/// A request and a shard of it, checked: what can be said to be wrong before anything runs is said here.
pub struct ShardJob {
    job: Prepared,
    ctx: Ctx,
    targets: Vec<TargetIndex>,
}

impl ShardJob {
    /// Checks the request and the shard against each other. The request's own selection only says where records
    /// begin; which are wanted, the shard says.
    pub fn new(request: Request, shard: Shard) -> Result<ShardJob, RunError> {
        let Shard { targets, round, shared, last, select } = shard;
        let job = prepare(request, Some(select.clone()), last)?;
        let ctx = Ctx { round, shared, last, extent: select, side: job.side.clone() };
        Ok(ShardJob { job, ctx, targets })
    }

    /// Whether the shard gives rows, or a value.
    pub fn gives_rows(&self) -> bool {
        self.job.gives_rows()
    }

    /// The kernel as it is run.
    pub fn kernel(&self) -> &Arc<dyn gristmill_kernel::Kernel> {
        &self.job.kernel
    }

    /// Context of the pass.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Folds the shard of a kernel that gives a value.
    pub fn values(&self, control: &Control) -> Result<ShardEnd, RunError> {
        let pass = self.pass(control);
        let tally = pass.values()?;
        let failure = pass.take_failure();
        let partial = pass.into_partial();
        unchanged(&self.job)?;
        Ok(ShardEnd { partial, failure, tally })
    }

    /// Folds the shard of a kernel that gives rows; they go to `out`, unit by unit in ascending order.
    pub fn rows(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<Tally, RunError> {
        let pass = self.pass(control);
        let mut enough = false;
        let tally = pass.row_units(|units| {
            for unit in units {
                out.begin(unit.at)?;
                let mut last = true;
                for message in unit.messages {
                    match message {
                        Message::Rows(batch) => out.rows(batch)?,
                        Message::End(end) => {
                            last = end.cut || end.enough;
                            enough = end.enough;
                            out.end(end)?;
                        }
                    }
                }
                if last {
                    break;
                }
            }
            Ok(())
        })?;
        let failure = pass.take_failure();
        unchanged(&self.job)?;
        match failure {
            // Units are taken in order, and what lies behind an answer never decides it.
            Some((_, error)) if !enough => Err(error),
            _ => Ok(tally),
        }
    }

    fn pass<'a>(&'a self, control: &'a Control) -> Pass<'a> {
        let extent = self.ctx.extent.clone();
        control.begin_pass(0, extent.end - extent.start);
        let gaps = if extent.is_empty() { Vec::new() } else { vec![extent] };
        let partial = Partial::empty(self.ctx.round);
        Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets))
    }
}
