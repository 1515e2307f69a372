//! One pass over the records that some targets own: what a storage node folds for a request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Ctx, Kernel, KernelError, NoRows, RowBatch};
use gristmill_layout::TargetIndex;

use crate::crew::UnitOutput;
use crate::job::unchanged;
use crate::pass::{Interrupted, Pass, interrupted, lock};
use crate::prepare::{Prepared, Unheard, check_keeps, prepare};
use crate::rows::{Message, UnitEnd};
use crate::{Control, ErrorKind, ExtentSet, Left, Partial, Request, RunError, ShardEnd, Tally};

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
    /// What somebody else left of it.
    rest: Option<Rest>,
}

/// The part of a shard that is left to fold.
struct Rest {
    gaps: Vec<Range<u64>>,
    /// States to go on from, by position.
    resumed: BTreeMap<u64, Interrupted>,
    /// The same of a unit of rows.
    begun: Option<Interrupted>,
}

/// How the rows of a shard ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsEnd {
    /// What it cost.
    pub tally: Tally,
    /// What was not folded because of a stop.
    pub left: Option<Left>,
}

impl ShardJob {
    /// Checks the request and the shard against each other. The request's own selection only says where records
    /// begin; which are wanted, the shard says.
    ///
    /// # Errors
    /// It fails if a bound is passed, if the kernel, the input and the files do not fit together, and if the shard
    /// selects records that there are not. The error is [`RunError::CannotKeep`] if bytes are to be kept and are of a
    /// kernel whose bytes cannot be.
    pub fn new(request: Request, shard: Shard) -> Result<ShardJob, RunError> {
        let Shard { targets, round, shared, last, keep, select } = shard;
        let job = prepare(request, Some(select.clone()), last, false)?;
        if keep {
            check_keeps(&job.spec)?;
        }
        let ctx = Ctx { round, shared, last, extent: select, side: job.side.clone() };
        let unheard = keep.then(|| Arc::new(Unheard(job.kernel.clone())) as Arc<dyn Kernel>);
        Ok(ShardJob { job, ctx, targets, unheard, rest: None })
    }

    /// Whether the shard gives rows, or a value.
    pub fn gives_rows(&self) -> bool {
        self.job.gives_rows() && self.unheard.is_none()
    }

    /// Whether it can stop at a record and somebody else can go on.
    pub fn can_save(&self) -> bool {
        self.job.spec.can_save
    }

    /// The kernel as its partials are merged.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.unheard.as_ref().unwrap_or(&self.job.kernel)
    }

    /// Context of the pass.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Folds the shard of a kernel that gives a value. If it is told to stop, the partial says what is folded.
    ///
    /// # Errors
    /// It fails if a part was changed meanwhile, if no lane can be started or one panics, and if states cannot be
    /// merged. A failure at a record is told in [`ShardEnd::failure`], and is no error here.
    pub fn values(&self, control: &Control) -> Result<ShardEnd, RunError> {
        let pass = self.pass(control);
        let tally = pass.values()?;
        let failure = pass.take_failure();
        let partial = pass.into_partial()?;
        unchanged(&self.job)?;
        Ok(ShardEnd { partial, failure, ..ShardEnd::new(self.ctx.round, 0) }.costing(tally))
    }

    /// Folds the shard of a kernel that gives rows; they go to `out`, unit by unit in ascending order. If it is told to
    /// stop, it says from where somebody else can go on.
    ///
    /// # Errors
    /// The error is the failure at the lowest position, unless the answer needs nothing from there on, or the error of
    /// `out`. It also fails if a part was changed meanwhile, and if no lane can be started or one panics.
    pub fn rows(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<RowsEnd, RunError> {
        let pass = self.pass(control);
        let (mut enough, mut cut) = (false, false);
        let mut left = Left { from: self.ctx.extent.start, begun: None };
        if let Some((range, state)) = self.rest.as_ref().and_then(|rest| rest.begun.clone()) {
            left.from = range.end;
            if self.begins_at(range.end) {
                lock(&pass.resumed).insert(range.end, (range, state));
            } else {
                // What follows is somebody else's.
                out.begin(self.first_byte(range.end))?;
                out.end(UnitEnd { piece: Some((range, state)), enough: false, cut: false })?;
            }
        }
        let tally = pass.row_units(|units| {
            for unit in units {
                out.begin(unit.at)?;
                let mut last = true;
                for message in unit.messages {
                    match message {
                        Message::Rows(batch) => out.rows(batch)?,
                        Message::End(end) if end.cut => {
                            cut = true;
                            left.from = end.piece.as_ref().map_or(left.from, |(range, _)| range.end);
                            left.begun = end.piece;
                        }
                        Message::End(end) => {
                            last = end.enough;
                            enough = end.enough;
                            left.from = end.piece.as_ref().map_or(left.from, |(range, _)| range.end);
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
            // Units are taken in order, and what lies behind an answer, or behind a cut, never decides it.
            Some((_, error)) if !enough && !cut => Err(error),
            _ => {
                if let Some((_, begun)) = lock(&pass.resumed).pop_first() {
                    left.begun = Some(begun);
                }
                Ok(RowsEnd { tally, left: (!enough && pass.stopping()).then_some(left) })
            }
        }
    }

    /// Goes on where somebody stopped who folded these records for a value: folds only what `partial` lacks. Gives back
    /// what of it is not gone on with.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if two pieces of `partial` cover the same records.
    pub fn after(mut self, mut partial: Partial) -> Result<(ShardJob, Partial), RunError> {
        let extent = &self.ctx.extent;
        let needed = partial.enough_at.map_or(extent.end, |enough| enough.min(extent.end));
        let gaps = partial.covered()?.gaps(extent.start..needed.max(extent.start));
        let resumed = interrupted(&**self.kernel(), &mut partial, &gaps);
        self.rest = Some(Rest { gaps, resumed, begun: None });
        Ok((self, partial))
    }

    /// Goes on where somebody stopped who gave these rows.
    pub fn from(mut self, left: Left) -> ShardJob {
        let extent = &self.ctx.extent;
        let from = left.from.clamp(extent.start, extent.end);
        let gaps = (from < extent.end).then_some(from..extent.end).into_iter().collect();
        self.rest = Some(Rest { gaps, resumed: BTreeMap::new(), begun: left.begun });
        self
    }

    /// Whether one of the targets owns the record at this position, and it is wanted.
    fn begins_at(&self, position: u64) -> bool {
        let extent = position..self.ctx.extent.end;
        if extent.is_empty() {
            return false;
        }
        let control = Control::new();
        let pass =
            Pass::new(&self.job, &self.ctx, &control, Partial::empty(0), vec![extent], Some(&self.targets));
        let unit = lock(&pass.units).next();
        unit.is_some_and(|unit| pass.position(&unit).max(position) == position)
    }

    /// Where a record lies, in the order of units.
    fn first_byte(&self, position: u64) -> u64 {
        let records = self.job.domain.records.as_ref();
        records.map_or(position, |records| records.bytes(position..position).start)
    }

    /// Folds the shard of a kernel whose bytes are kept here: they go to `out`, unit by unit in ascending order, and the
    /// states of the units are merged. A unit's end says which records its bytes were made of.
    ///
    /// # Errors
    /// It fails as [`rows`](ShardJob::rows) does, and if states cannot be merged. The error is [`RunError::Remote`] if
    /// it is told to stop, and [`RunError::Kernel`] if the kernel says that it needs no more.
    pub fn keep(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<ShardEnd, RunError> {
        let partial = Partial::empty(self.ctx.round);
        let mut kept = Kept { job: self, out, partial };
        let RowsEnd { tally, left } = self.rows(&mut kept, control)?;
        if left.is_some() {
            let message = "the request was given up before its answer".into();
            return Err(RunError::Remote { kind: ErrorKind::Failed, message });
        }
        Ok(ShardEnd { partial: kept.partial, ..ShardEnd::new(self.ctx.round, 0) }.costing(tally))
    }

    fn pass<'a>(&'a self, control: &'a Control) -> Pass<'a> {
        let extent = self.ctx.extent.clone();
        let partial = Partial::empty(self.ctx.round);
        let Some(rest) = &self.rest else {
            control.begin_pass(0, extent.end - extent.start);
            let gaps = if extent.is_empty() { Vec::new() } else { vec![extent] };
            return Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets));
        };
        // Whoever asked counts on from what was folded before.
        let gaps = rest.gaps.clone();
        let pass = Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets));
        *lock(&pass.resumed) = rest.resumed.clone();
        pass
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
