//! Several passes finished among those who fold: each folds its shard, all exchange what they made of it, and each
//! judges the whole for itself.
//!
//! Everybody computes the next pass from the same bytes, so nobody needs to be told what comes next.

use std::sync::Arc;

use gristmill_kernel::{Ctx, Next};
use gristmill_layout::TargetIndex;

use crate::job::{complete, unchanged};
use crate::options::MAX_ROUNDS;
use crate::pass::Pass;
use crate::prepare::{Prepared, prepare};
use crate::{Control, ErrorKind, HandBack, Partial, Request, RunError, ShardEnd, Tally};

/// Those who fold a request together.
pub trait Group {
    /// What all members made of a pass, joined: the same for every member. `join` takes another's part into one's own.
    ///
    /// # Errors
    /// It fails if the members cannot exchange their parts, and with the error of `join`.
    fn allreduce(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError>;

    /// What is to be handed back once this pass is done. One member that says so is enough: whoever asked goes on with
    /// the next pass.
    fn handed_back(&self) -> Option<HandBack> {
        None
    }

    /// Folds one's own part; here a member can wait for its turn.
    ///
    /// # Errors
    /// It fails with the error of `work`, and if the member gets no turn.
    fn fold(&self, work: &mut dyn FnMut() -> Result<ShardEnd, RunError>) -> Result<ShardEnd, RunError> {
        work()
    }
}

/// Joins two parts of a pass.
pub type JoinEnds<'j> = dyn FnMut(ShardEnd, ShardEnd) -> Result<ShardEnd, RunError> + 'j;

/// The last pass for a value: what of it [`Kernel::advance`](gristmill_kernel::Kernel::advance) needs.
#[derive(Debug)]
pub struct TogetherEnd {
    /// Number of the pass.
    pub round: u32,
    /// What was broadcast to it.
    pub shared: Arc<[u8]>,
    /// The state of all records.
    pub whole: Vec<u8>,
    /// What one's own part of all passes cost.
    pub tally: Tally,
    /// Why it is not the last pass, if it is not: the same for every member.
    pub handed_back: Vec<HandBack>,
}

/// A member's part in a request that its kernel takes [several](gristmill_kernel::Passes::Several) passes for.
pub struct Together {
    job: Prepared,
    targets: Vec<TargetIndex>,
    ctx: Ctx,
}

impl Together {
    /// Checks a request, of which one folds the records of these targets. `select` are the records of all members.
    ///
    /// # Errors
    /// It fails if a bound is passed, if the kernel, the input and the files do not fit together, and if there are no
    /// such records.
    pub fn new(
        request: Request,
        targets: Vec<TargetIndex>,
        select: std::ops::Range<u64>,
    ) -> Result<Together, RunError> {
        let job = prepare(request, Some(select.clone()), false, false)?;
        let ctx = Ctx { side: job.side.clone(), ..Ctx::first(select) };
        Ok(Together { job, targets, ctx })
    }

    /// The kernel as it is run.
    pub fn kernel(&self) -> &Arc<dyn gristmill_kernel::Kernel> {
        &self.job.kernel
    }

    /// Context of the first pass.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Folds pass after pass, until the kernel has its answer or wants to give rows.
    ///
    /// # Errors
    /// The error is the failure at the lowest position of all members, unless nothing from there on is needed;
    /// [`RunError::Remote`] if it is told to stop; [`RunError::BadPartial`] if the members together did not fold every
    /// record; [`RunError::Kernel`] if the kernel refuses the whole; [`RunError::TooManyRounds`] after [`MAX_ROUNDS`]
    /// passes; or the error of `group`. It also fails if a part was changed meanwhile, and if no lane can be started or
    /// one panics.
    pub fn run(&self, group: &dyn Group, control: &Control) -> Result<TogetherEnd, RunError> {
        let job = &self.job;
        let mut ctx = self.ctx.clone();
        let mut tally = Tally::new(job.file.parts.len());
        for _ in 0..MAX_ROUNDS {
            let mut own = group.fold(&mut || self.pass(&ctx, control))?;
            if control.stopped() {
                let message = "the request was given up before its answer".into();
                return Err(RunError::Remote { kind: ErrorKind::Failed, message });
            }
            tally.add(&std::mem::replace(&mut own.tally, Tally::new(0)));
            own.handed_back.extend(group.handed_back());
            let mut join = |mut a: ShardEnd, b: ShardEnd| {
                a.join(&*job.kernel, &ctx, b)?;
                Ok(a)
            };
            let ShardEnd { partial, failure, handed_back, .. } = group.allreduce(own, &mut join)?;
            if let Some((at, error)) = failure
                && partial.enough_at.is_none_or(|enough| at < enough)
            {
                return Err(error);
            }
            if !complete(&partial, &ctx.extent)? {
                let why = "the members together did not fold every record".into();
                return Err(RunError::BadPartial { why });
            }
            let whole = partial.whole(&*job.kernel, &ctx)?;
            match job.kernel.advance(&ctx, &whole)? {
                Next::Again(shared) if handed_back.is_empty() => ctx = ctx.next(shared),
                Next::Again(_) | Next::Done(_) | Next::Last(_) => {
                    return Ok(TogetherEnd {
                        round: ctx.round,
                        shared: ctx.shared,
                        whole,
                        tally,
                        handed_back,
                    });
                }
            }
        }
        Err(RunError::TooManyRounds { kernel: job.spec.name, max: MAX_ROUNDS })
    }

    fn pass(&self, ctx: &Ctx, control: &Control) -> Result<ShardEnd, RunError> {
        let extent = ctx.extent.clone();
        control.begin_pass(0, extent.end - extent.start);
        let gaps = if extent.is_empty() { Vec::new() } else { vec![extent] };
        let partial = Partial::empty(ctx.round);
        let pass = Pass::new(&self.job, ctx, control, partial, gaps, Some(&self.targets));
        let tally = pass.values()?;
        let failure = pass.take_failure();
        let partial = pass.into_partial()?;
        unchanged(&self.job)?;
        Ok(ShardEnd { partial, failure, ..ShardEnd::new(ctx.round, 0) }.costing(tally))
    }
}
