//! Several passes that the members finish among themselves. Each member folds its shard, all exchange their partials, and
//! each evaluates the whole for itself.
//!
//! All members compute the next pass from the same bytes, so no message says what comes next.

use std::sync::Arc;

use gristmill_kernel::{Ctx, Next};
use gristmill_layout::TargetIndex;

use crate::job::{check_unchanged, is_complete};
use crate::options::MAX_ROUNDS;
use crate::pass::Pass;
use crate::prepare::{Prepared, prepare};
use crate::{Control, HandBack, Partial, Request, RunError, ShardEnd, Tally};

/// Members that fold a request together.
pub trait Group {
    /// Joins the shards' ends of all members in a pass. The result is the same for every member. `join` joins two ends.
    ///
    /// # Errors
    /// It fails if the members cannot exchange their ends, and with the error of `join`.
    fn allreduce(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError>;

    /// Work that this member hands back after this pass, if any. If one member hands work back, the client goes on with the
    /// next pass.
    fn handed_back(&self) -> Option<HandBack> {
        None
    }

    /// Folds this member's shard. Here a member can wait for its turn.
    ///
    /// # Errors
    /// It fails with the error of `work`, and if the member gets no turn.
    fn fold(&self, work: &mut dyn FnMut() -> Result<ShardEnd, RunError>) -> Result<ShardEnd, RunError> {
        work()
    }
}

/// Joins the ends of two shards of a pass.
pub type JoinEnds<'j> = dyn FnMut(ShardEnd, ShardEnd) -> Result<ShardEnd, RunError> + 'j;

/// The end of the last pass for a value, with all that [`Kernel::advance`](gristmill_kernel::Kernel::advance) needs.
#[derive(Debug)]
pub struct GroupEnd {
    /// Number of the pass.
    pub round: u32,
    /// The broadcast to the pass.
    pub shared: Arc<[u8]>,
    /// The state of all records.
    pub whole: Vec<u8>,
    /// The cost of this member's shard in all passes.
    pub tally: Tally,
    /// Work that was handed back, if this is not the last pass. It is the same for every member.
    pub handed_back: Vec<HandBack>,
}

/// A member's part in a request whose kernel takes [several](gristmill_kernel::Passes::Several) passes.
pub struct GroupJob {
    job: Prepared,
    targets: Vec<TargetIndex>,
    ctx: Ctx,
}

impl GroupJob {
    /// Checks a request of which this member folds the records of `targets`. `select` are the records of all members.
    ///
    /// # Errors
    /// It fails if a bound is passed, if the kernel, the input and the files do not fit together, and if the file
    /// does not have the records of `select`.
    pub fn new(
        request: Request,
        targets: Vec<TargetIndex>,
        select: std::ops::Range<u64>,
    ) -> Result<GroupJob, RunError> {
        let job = prepare(request, Some(select.clone()), false, false)?;
        let ctx = Ctx { side: job.side.clone(), ..Ctx::first(select) };
        Ok(GroupJob { job, targets, ctx })
    }

    /// The kernel as it runs.
    pub fn kernel(&self) -> &Arc<dyn gristmill_kernel::Kernel> {
        &self.job.kernel
    }

    /// Context of the first pass.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Folds pass after pass, until the kernel has its answer, begins to give rows, or work is handed back.
    ///
    /// # Errors
    /// The error is the failure at the lowest position of all members, unless nothing from there on is needed;
    /// [`RunError::Remote`] if `control` stops it; [`RunError::BadPartial`] if the members together did not fold every
    /// record; [`RunError::Kernel`] if the kernel refuses the whole; [`RunError::TooManyRounds`] after [`MAX_ROUNDS`]
    /// passes; or the error of `group`. It also fails if a part was changed meanwhile, and if no lane can be started or
    /// one panics.
    pub fn run(&self, group: &dyn Group, control: &Control) -> Result<GroupEnd, RunError> {
        let job = &self.job;
        let mut ctx = self.ctx.clone();
        let mut tally = Tally::new(job.file.parts.len());
        for _ in 0..MAX_ROUNDS {
            let mut own = group.fold(&mut || self.pass(&ctx, control))?;
            if control.stopped() {
                return Err(RunError::given_up());
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
            if !is_complete(&partial, &ctx.extent)? {
                let why = "the members together did not fold every record".into();
                return Err(RunError::BadPartial { why });
            }
            let whole = partial.whole(&*job.kernel, &ctx)?;
            match job.kernel.advance(&ctx, &whole)? {
                Next::Again(shared) if handed_back.is_empty() => ctx = ctx.next(shared),
                Next::Again(_) | Next::Done(_) | Next::Last(_) => {
                    return Ok(GroupEnd { round: ctx.round, shared: ctx.shared, whole, tally, handed_back });
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
        check_unchanged(&self.job)?;
        Ok(ShardEnd { partial, failure, ..ShardEnd::new(ctx.round, 0) }.with_tally(tally))
    }
}
