//! One pass over the records that some targets own. A storage node folds it for a request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{Ctx, Kernel, KernelError, NoRows, RowBatch};
use gristmill_layout::TargetIndex;

use crate::crew::UnitOutput;
use crate::job::check_unchanged;
use crate::pass::{InterruptedFold, Pass, lock, take_interrupted};
use crate::prepare::{Prepared, ValueOnly, check_keeps, prepare};
use crate::rows::{UnitEnd, UnitMessage};
use crate::{Control, ExtentSet, Partial, Request, RowCut, RunError, ShardEnd, Tally};

/// The part of a pass that one node folds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Targets of the file, by their place in its layout, whose records are folded.
    pub targets: Vec<TargetIndex>,
    /// Number of the pass.
    pub round: u32,
    /// The broadcast of the pass before.
    pub shared: Arc<[u8]>,
    /// Whether the pass is the last of several, which gives rows.
    pub last: bool,
    /// Whether this node keeps the bytes that the kernel gives. Then the shard sends only a value.
    pub keep: bool,
    /// Positions of the records of the request. The shard has those of them that the targets own.
    pub select: Range<u64>,
}

/// A request and a shard of it, checked. Errors that can be found before the shard runs are found here.
pub struct ShardJob {
    job: Prepared,
    ctx: Ctx,
    targets: Vec<TargetIndex>,
    /// The kernel with which partials are merged, if bytes are kept.
    value_only: Option<Arc<dyn Kernel>>,
    /// The part that another process did not fold, if this one goes on with it.
    remainder: Option<Remainder>,
}

/// The part of a shard that is not folded yet.
struct Remainder {
    gaps: Vec<Range<u64>>,
    /// Folds that go on, by the position at which they go on.
    resumed: BTreeMap<u64, InterruptedFold>,
    /// The interrupted fold of a unit of rows.
    begun: Option<InterruptedFold>,
}

/// The end of the rows of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsEnd {
    /// The cost of the shard.
    pub tally: Tally,
    /// The place where a stop cut the rows.
    pub row_cut: Option<RowCut>,
}

impl ShardJob {
    /// Checks the request and the shard against each other. The request's own selection only tells where records begin.
    /// The shard tells which records are folded.
    ///
    /// # Errors
    /// It fails if a bound is passed, if the kernel, the input and the files do not fit together, and if the shard
    /// selects records that the file does not have. The error is [`RunError::CannotKeep`] if bytes are to be kept and the
    /// kernel does not allow that.
    pub fn new(request: Request, shard: Shard) -> Result<ShardJob, RunError> {
        let Shard { targets, round, shared, last, keep, select } = shard;
        let job = prepare(request, Some(select.clone()), last, false)?;
        if keep {
            check_keeps(&job.spec)?;
        }
        let ctx = Ctx { round, shared, last, extent: select, side: job.side.clone() };
        let value_only = keep.then(|| Arc::new(ValueOnly(job.kernel.clone())) as Arc<dyn Kernel>);
        Ok(ShardJob { job, ctx, targets, value_only, remainder: None })
    }

    /// Whether the shard gives rows, and not only a value.
    pub fn gives_rows(&self) -> bool {
        self.job.gives_rows() && self.value_only.is_none()
    }

    /// Whether the shard can stop at a record, so that another process can go on.
    pub fn can_save(&self) -> bool {
        self.job.spec.can_save
    }

    /// The kernel with which partials are merged.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.value_only.as_ref().unwrap_or(&self.job.kernel)
    }

    /// Context of the pass.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Folds the shard of a kernel that gives a value. If `control` stops it, the partial tells which records are folded.
    ///
    /// # Errors
    /// It fails if a part was changed meanwhile, if no lane can be started or one panics, and if states cannot be
    /// merged. A failure at a record is in [`ShardEnd::failure`], and is no error here.
    pub fn values(&self, control: &Control) -> Result<ShardEnd, RunError> {
        let pass = self.pass(control);
        let tally = pass.values()?;
        let failure = pass.take_failure();
        let partial = pass.into_partial()?;
        check_unchanged(&self.job)?;
        Ok(ShardEnd { partial, failure, ..ShardEnd::new(self.ctx.round, 0) }.with_tally(tally))
    }

    /// Folds the shard of a kernel that gives rows. They go to `out`, unit by unit in ascending order. If `control` stops
    /// it, the end tells from where another process can go on.
    ///
    /// # Errors
    /// The error is the failure at the lowest position, unless the answer needs no records from there on, or the error of
    /// `out`. It also fails if a part was changed meanwhile, and if no lane can be started or one panics.
    pub fn rows(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<RowsEnd, RunError> {
        let pass = self.pass(control);
        let (mut enough, mut cut) = (false, false);
        let mut row_cut = RowCut { from: self.ctx.extent.start, begun: None };
        if let Some((range, state)) = self.remainder.as_ref().and_then(|remainder| remainder.begun.clone()) {
            row_cut.from = range.end;
            if self.begins_at(range.end) {
                lock(&pass.resumed).insert(range.end, (range, state));
            } else {
                // Other targets own the records that follow.
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
                        UnitMessage::Rows(batch) => out.rows(batch)?,
                        UnitMessage::End(end) if end.cut => {
                            cut = true;
                            row_cut.from = end.piece.as_ref().map_or(row_cut.from, |(range, _)| range.end);
                            row_cut.begun = end.piece;
                        }
                        UnitMessage::End(end) => {
                            last = end.enough;
                            enough = end.enough;
                            row_cut.from = end.piece.as_ref().map_or(row_cut.from, |(range, _)| range.end);
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
        check_unchanged(&self.job)?;
        match failure {
            // Units are taken in order, so a failure behind an answer or behind a cut never counts.
            Some((_, error)) if !enough && !cut => Err(error),
            _ => {
                if let Some((_, begun)) = lock(&pass.resumed).pop_first() {
                    row_cut.begun = Some(begun);
                }
                Ok(RowsEnd { tally, row_cut: (!enough && pass.stopping()).then_some(row_cut) })
            }
        }
    }

    /// Resumes a shard for a value that another process stopped: folds only the records that `partial` lacks. Returns also
    /// the rest of `partial`, whose folds do not go on.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if two pieces of `partial` cover the same records.
    pub fn resume_value(mut self, mut partial: Partial) -> Result<(ShardJob, Partial), RunError> {
        let extent = &self.ctx.extent;
        let needed = partial.enough_at.map_or(extent.end, |enough| enough.min(extent.end));
        let gaps = partial.covered()?.gaps(extent.start..needed.max(extent.start));
        let resumed = take_interrupted(&**self.kernel(), &mut partial, &gaps);
        self.remainder = Some(Remainder { gaps, resumed, begun: None });
        Ok((self, partial))
    }

    /// Resumes a shard for rows that another process stopped.
    pub fn resume_rows(mut self, row_cut: RowCut) -> ShardJob {
        let extent = &self.ctx.extent;
        let from = row_cut.from.clamp(extent.start, extent.end);
        let gaps = (from < extent.end).then_some(from..extent.end).into_iter().collect();
        self.remainder = Some(Remainder { gaps, resumed: BTreeMap::new(), begun: row_cut.begun });
        self
    }

    /// Whether one of the targets owns the record at this position, and the request has this record.
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

    /// First byte of a record, or its position if it is virtual; units are ordered by it.
    fn first_byte(&self, position: u64) -> u64 {
        let records = self.job.domain.records.as_ref();
        records.map_or(position, |records| records.bytes(position..position).start)
    }

    /// Folds the shard of a kernel whose bytes this node keeps. They go to `out`, unit by unit in ascending order, and the
    /// states of the units are merged. A unit's end tells from which records its bytes were made.
    ///
    /// # Errors
    /// It fails as [`rows`](ShardJob::rows) does, and if states cannot be merged. The error is [`RunError::Remote`] if
    /// `control` stops it, and [`RunError::Kernel`] if the kernel has enough.
    pub fn keep(&self, out: &mut dyn UnitOutput, control: &Control) -> Result<ShardEnd, RunError> {
        let partial = Partial::empty(self.ctx.round);
        let mut output = MergingOutput { job: self, out, partial };
        let RowsEnd { tally, row_cut } = self.rows(&mut output, control)?;
        if row_cut.is_some() {
            return Err(RunError::given_up());
        }
        Ok(ShardEnd { partial: output.partial, ..ShardEnd::new(self.ctx.round, 0) }.with_tally(tally))
    }

    fn pass<'a>(&'a self, control: &'a Control) -> Pass<'a> {
        let extent = self.ctx.extent.clone();
        let partial = Partial::empty(self.ctx.round);
        let Some(remainder) = &self.remainder else {
            control.begin_pass(0, extent.end - extent.start);
            let gaps = if extent.is_empty() { Vec::new() } else { vec![extent] };
            return Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets));
        };
        // The caller counts on from the records that were folded before.
        let gaps = remainder.gaps.clone();
        let pass = Pass::new(&self.job, &self.ctx, control, partial, gaps, Some(&self.targets));
        *lock(&pass.resumed) = remainder.resumed.clone();
        pass
    }
}

/// An output that passes units on and merges their states.
struct MergingOutput<'a> {
    job: &'a ShardJob,
    out: &'a mut dyn UnitOutput,
    partial: Partial,
}

impl UnitOutput for MergingOutput<'_> {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.out.begin(at)
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.out.rows(batch)
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        if end.enough {
            // The bytes that other lanes and nodes made behind this position would have to be removed.
            let why =
                "it ended before the last record; a kernel whose bytes are kept must take all records".into();
            return Err(KernelError::Contract { kernel: self.job.job.spec.name, why }.into());
        }
        if let Some((range, state)) = &end.piece {
            let piece = Partial::new(self.job.ctx.round, ExtentSet::from_range(range.clone()), state.clone());
            self.partial.join(&**self.job.kernel(), &self.job.ctx, piece, &mut NoRows)?;
        }
        self.out.end(end)
    }
}
