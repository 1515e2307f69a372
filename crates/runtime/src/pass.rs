//! One pass over the records of a request. Lanes take units and fold their blocks, and the states of the folds are joined.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_kernel::{Block, Ctx, Fold, Kernel, NoRows, Position};
use gristmill_layout::TargetIndex;

use crate::ahead::announced;
use crate::fetch::Tally;
use crate::lane_threads::run_lanes;
use crate::prepare::Prepared;
use crate::rope::{collapses, end};
use crate::row_lane::RowLane;
use crate::rows::{Delivery, QueuedUnit, RowOutput};
use crate::storage_folds::{StorageFolds, unit_bytes};
use crate::units::{CutRule, Unit, chunk_units, units};
use crate::value_lane::ValueLane;
use crate::{Control, ExtentSet, Partial, RunError};

/// The end of a pass.
pub(crate) struct PassEnd {
    pub partial: Partial,
    pub delivered: Option<Position>,
    pub tally: Tally,
}

/// An interrupted fold: the records that it covers, and its state after them.
pub(crate) type InterruptedFold = (Range<u64>, Vec<u8>);

pub(crate) type Units<'a> = Peekable<Box<dyn Iterator<Item = Unit> + Send + 'a>>;

/// A pass that is running. Its lanes share it.
pub(crate) struct Pass<'a> {
    pub job: &'a Prepared,
    pub ctx: &'a Ctx,
    pub control: &'a Control,
    pub units: Mutex<Units<'a>>,
    /// Folds of an interrupted pass, by the position at which they go on.
    pub resumed: Mutex<BTreeMap<u64, InterruptedFold>>,
    pub partial: Mutex<Partial>,
    /// The folds inside the storage of the parts, if there are any.
    pub storage: Option<StorageFolds>,
    /// Position from which on no record is needed, because a fold had enough or failed there.
    pub enough: AtomicU64,
    /// The failure at the lowest position. Lanes go on with the records before it. So it does not depend on the speed of lanes
    /// which failure is reported, and whether a fold had enough before it.
    failure: Mutex<Option<(u64, RunError)>>,
}

/// Takes a lock, even if its holder panicked. The thread of the lane reports the panic itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folds the records that `partial` does not cover yet.
pub(crate) fn run_pass(
    job: &Prepared,
    ctx: &Ctx,
    mut partial: Partial,
    delivered: Option<Position>,
    output: &mut dyn RowOutput,
    control: &Control,
) -> Result<PassEnd, RunError> {
    let covered = partial.covered()?;
    let needed = partial.enough_at.map_or(ctx.extent.end, |enough| enough.min(ctx.extent.end));
    let gaps = covered.gaps(ctx.extent.start..needed.max(ctx.extent.start));
    control.begin_pass(covered.count(), ctx.extent.end - ctx.extent.start);
    let resumed = take_interrupted(&*job.kernel, &mut partial, &gaps);
    let pass = Pass { resumed: Mutex::new(resumed), ..Pass::new(job, ctx, control, partial, gaps, None) };
    let (tally, delivered) =
        if job.gives_rows() { pass.rows(delivered, output)? } else { (pass.values()?, delivered) };
    let failure = pass.take_failure();
    let partial = pass.into_partial()?;
    // Rows are taken in order. So if a fold had enough, all failures lie behind it.
    if let Some((at, error)) = failure
        && partial.enough_at.is_none_or(|enough| !job.gives_rows() && at < enough)
    {
        return Err(error);
    }
    Ok(PassEnd { partial, delivered, tally })
}

/// Takes the states out of a partial that end where a gap begins. Their folds go on there, because they may be in the middle
/// of something.
pub(crate) fn take_interrupted(
    kernel: &dyn Kernel,
    partial: &mut Partial,
    gaps: &[Range<u64>],
) -> BTreeMap<u64, InterruptedFold> {
    let mut resumed = BTreeMap::new();
    if !collapses(kernel) {
        let go_on = |piece: &crate::Piece| {
            piece.covered.ranges().len() == 1 && gaps.iter().any(|gap| gap.start == end(piece))
        };
        let (go_on, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut partial.pieces).into_iter().partition(go_on);
        partial.pieces = rest;
        for piece in go_on {
            let range = piece.covered.ranges()[0].clone();
            resumed.insert(range.end, (range, piece.state));
        }
    }
    resumed
}

impl<'a> Pass<'a> {
    /// A pass that folds the records of `gaps`, those of all targets or `only` of some.
    pub fn new(
        job: &'a Prepared,
        ctx: &'a Ctx,
        control: &'a Control,
        partial: Partial,
        gaps: Vec<Range<u64>>,
        only: Option<&'a [TargetIndex]>,
    ) -> Pass<'a> {
        let cut = if job.gives_rows() { CutRule::ByExtent } else { CutRule::ByTarget };
        let unit_bytes = unit_bytes(job);
        let units = match &job.chunks {
            Some(owned) => chunk_units(&job.file, owned, gaps, unit_bytes, only),
            None => units(&job.file, &job.domain, job.ownership, gaps, cut, unit_bytes, only),
        };
        Pass {
            job,
            ctx,
            control,
            units: Mutex::new(announced(job, units, unit_bytes).peekable()),
            resumed: Mutex::default(),
            partial: Mutex::new(partial),
            storage: StorageFolds::new(job, ctx),
            enough: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
        }
    }

    /// Folds all units into `partial`.
    pub fn values(&self) -> Result<Tally, RunError> {
        Ok(run_lanes(self, &|| ValueLane::new(self), || ())?.0)
    }

    fn rows(
        &self,
        delivered: Option<Position>,
        output: &mut dyn RowOutput,
    ) -> Result<(Tally, Option<Position>), RunError> {
        let mut delivery = Delivery {
            kernel: &*self.job.kernel,
            ctx: self.ctx,
            output,
            partial: std::mem::take(&mut *lock(&self.partial)),
            delivered,
        };
        delivery.partial.round = self.ctx.round;
        let result = self.row_units(|units| delivery.drain(units));
        *lock(&self.partial) = delivery.partial;
        Ok((result?, delivery.delivered))
    }

    /// Folds all units and gives them to `drain`, in their order.
    pub fn row_units(
        &self,
        drain: impl FnOnce(Receiver<QueuedUnit>) -> Result<(), RunError>,
    ) -> Result<Tally, RunError> {
        let (queue, units) = sync_channel(self.job.options.lanes);
        let queue = Mutex::new(Some(queue));
        let (tally, drained) = run_lanes(self, &|| RowLane::new(self, &queue), || drain(units))?;
        drained?;
        Ok(tally)
    }

    /// The failure at the lowest position, if there was one.
    pub fn take_failure(&self) -> Option<(u64, RunError)> {
        lock(&self.failure).take()
    }

    /// The partial of the pass, with the interrupted folds that did not go on.
    pub fn into_partial(self) -> Result<Partial, RunError> {
        let mut partial = self.partial.into_inner().unwrap_or_else(PoisonError::into_inner);
        let resumed = self.resumed.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (range, state) in resumed.into_values() {
            let piece = Partial::new(self.ctx.round, ExtentSet::from_range(range), state);
            partial.join(&*self.job.kernel, self.ctx, piece, &mut NoRows)?;
        }
        Ok(partial)
    }

    /// Whether lanes have not begun all units.
    pub fn has_units(&self) -> bool {
        lock(&self.units).peek().is_some()
    }

    /// The next unit that is still needed.
    pub fn claim(&self, units: &mut Units<'_>) -> Option<Unit> {
        if self.stopping() {
            return None;
        }
        let enough = self.enough.load(Ordering::Relaxed);
        let unit = units.next()?;
        let needed = match (&self.job.domain.records, enough) {
            (_, u64::MAX) => true,
            (Some(records), enough) => unit.window.start < records.bytes(enough..enough).start,
            (None, enough) => unit.window.start < enough,
        };
        // Windows come in ascending order, so the units that follow are not needed either.
        needed.then_some(unit)
    }

    /// Whether there may be more units than lanes.
    pub fn has_more_units_than_lanes(&self) -> bool {
        let extent = self.ctx.extent.clone();
        let each = self.job.chunks.as_ref().map_or(1, |owned| owned.bytes);
        let bytes = self.job.domain.records.as_ref().map_or(extent.clone(), |records| records.bytes(extent));
        let units = (bytes.end - bytes.start).saturating_mul(each) / self.job.options.unit_bytes.max(1);
        units >= self.job.options.lanes as u64
    }

    /// Whether lanes should stop between two records. A fold that cannot save is not interrupted.
    pub fn stopping(&self) -> bool {
        self.control.stopped() && self.job.spec.can_save
    }

    /// Position of the first record that may begin in a unit.
    pub fn position(&self, unit: &Unit) -> u64 {
        match &self.job.domain.records {
            None => unit.window.start,
            Some(records) => records.starting_in(unit.window.clone()).start,
        }
    }

    /// Notes a failure at a position. No record from there on is needed.
    pub fn fail(&self, at: u64, error: RunError) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(other, _)| at < *other) {
            *failure = Some((at, error));
        }
        self.enough.fetch_min(at, Ordering::Relaxed);
    }

    /// An interrupted fold that goes on at `at`, or a new fold, and the start of its extent.
    pub fn begin(&self, at: u64) -> Result<(Box<dyn Fold>, u64), RunError> {
        if let Some((range, state)) = lock(&self.resumed).remove(&at) {
            return Ok((self.job.kernel.restore(self.ctx, &state)?, range.start));
        }
        Ok((self.job.kernel.begin(self.ctx)?, at))
    }

    /// The part of a block that may be folded now. Behind `enough` it is `None`. After a stop it is only the rest of an atom
    /// that must not be split.
    pub fn allowed<'b>(&self, block: &Block<'b>) -> Option<Block<'b>> {
        let spec = &self.job.spec;
        if block.first() >= self.enough.load(Ordering::Relaxed) {
            return None;
        }
        if !self.stopping() {
            return Some(*block);
        }
        let boundary = block.first().div_ceil(spec.grain.max(1)) * spec.grain.max(1);
        if boundary == block.first() { None } else { Some(block.part(spec, 0, boundary - block.first())) }
    }
}
