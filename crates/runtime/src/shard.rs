//! One pass over the records that some targets own: what a storage node folds for a request.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Ctx, Kernel, KernelError, NoRows, RowBatch};
use gristmill_layout::TargetIndex;

use crate::crew::UnitOutput;
use crate::job::unchanged;
use crate::pass::Pass;
use crate::prepare::{Prepared, Unheard, check_keeps, prepare};
use crate::rows::{Message, UnitEnd};
use crate::{Control, ErrorKind, ExtentSet, Partial, Request, RunError, ShardEnd, Tally};

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
    /// The bytes that are made are kept here; what is told of them is a value.
    pub keep: bool,
    /// Records of the request, as positions; the shard is those among them that the targets own.
    pub select: Range<u64>,
}

/// A request and a shard of it, checked: what can be said to be wrong before anything runs is said here.
pub struct ShardJob {
    job: Prepared,
    ctx: Ctx,
    targets: Vec<TargetIndex>,
    /// For merging, where bytes are kept.
    unheard: Option<Arc<dyn Kernel>>,
}

impl ShardJob {
    /// Checks the request and the shard against each other. The request's own selection only says where records
    /// begin; which are wanted, the shard says.
    pub fn new(request: Request, shard: Shard) -> Result<ShardJob, RunError> {
        let Shard { targets, round, shared, last, keep, select } = shard;
        let job = prepare(request, Some(select.clone()), last, false)?;
        if keep {
            check_keeps(&job.spec)?;
        }
        let ctx = Ctx { round, shared, last, extent: select, side: job.side.clone() };
        let unheard = keep.then(|| Arc::new(Unheard(job.kernel.clone())) as Arc<dyn Kernel>);
        Ok(ShardJob { job, ctx, targets, unheard })
    }

    /// Whether the shard gives rows, or a value.
    pub fn gives_rows(&self) -> bool {
        self.job.gives_rows() && self.unheard.is_none()
    }

    /// The kernel as its partials are merged.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.unheard.as_ref().unwrap_or(&self.job.kernel)
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

    /// Folds the shard of a kernel whose bytes are kept here: they go to `out`, unit by unit in ascending order, and the
    /// states of the units are merged. A unit's end says which records its bytes were made of.
    pub fn keep(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<ShardEnd, RunError> {
        let partial = Partial::empty(self.ctx.round);
        let mut kept = Kept { job: self, out, partial };
        let tally = self.rows(&mut kept, control)?;
        Ok(ShardEnd { partial: kept.partial, failure: None, tally })
    }

    fn pass<'a>(&'a self, control: &'a Control) -> Pass<'a> {
        let extent = self.ctx.extent.clone();
        control.begin_pass(0, extent.end - extent.start);
        let gaps = if extent.is_empty() { Vec::new() } else { vec![extent] };
        let partial = Partial::empty(self.ctx.round);
        Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets))
    }
}

/// Hands units on and merges their states.
struct Kept<'a> {
    job: &'a ShardJob,
    out: &'a mut dyn UnitOutput,
    partial: Partial,
}

impl UnitOutput for Kept<'_> {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.out.begin(at)
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.out.rows(batch)
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        if end.cut {
            let message = "the request was given up before its answer".into();
            return Err(RunError::Remote { kind: ErrorKind::Failed, message });
        }
        if end.enough {
            // What others made behind this place would have to go again.
            let why = "says that it needs no more while its bytes are kept where they are made".into();
            return Err(KernelError::Contract { kernel: self.job.job.spec.name, why }.into());
        }
        if let Some((range, state)) = &end.piece {
            let piece = Partial::of(self.job.ctx.round, ExtentSet::of(range.clone()), state.clone());
            self.partial.join(&**self.job.kernel(), &self.job.ctx, piece, &mut NoRows)?;
        }
        self.out.end(end)
    }
}
