//! Passes whose folds run somewhere else, and the results that the members send back.
//!
//! A [`Crew`] folds the parts of a file where they lie, for example on storage nodes that it asks. For a value
//! every member sends one partial, in any order. For rows every member sends its units in ascending order, and
//! [`merge_units`] puts the units of all members in the order of the file.

use std::sync::Arc;

use gristmill_kernel::{Ctx, Kernel, NoRows, RowBatch};

use crate::job::is_complete;
use crate::pass::PassEnd;
use crate::prepare::Prepared;
use crate::rows::{Delivery, RowOutput, UnitEnd};
use crate::{Control, GroupEnd, HandBack, Partial, Revision, RunError, Tally};

/// A pass that a crew folds.
pub struct PassOrder<'a> {
    /// The kernel as it runs, with its parameters bound. A kernel over lines that gives a value runs over bytes.
    pub kernel: &'a Arc<dyn Kernel>,
    /// Number of the pass, the broadcast of the last pass, and the records of the request.
    pub ctx: &'a Ctx,
    /// Stops the request and counts its progress.
    pub control: &'a Control,
}

/// The result of one shard in one pass.
#[derive(Debug)]
pub struct ShardEnd {
    /// The records that were folded, and their state.
    pub partial: Partial,
    /// The failure at the lowest position, and this position. The records before it were folded.
    pub failure: Option<(u64, RunError)>,
    /// The cost of the shard.
    pub tally: Tally,
    /// Targets whose records are not all folded. The client folds those of their records that the partial lacks.
    pub handed_back: Vec<HandBack>,
}

impl ShardEnd {
    /// The end of a shard of which nothing was folded. `targets` is the number of targets of the file.
    pub fn new(round: u32, targets: usize) -> ShardEnd {
        let (partial, tally) = (Partial::empty(round), Tally::new(targets));
        ShardEnd { partial, failure: None, tally, handed_back: Vec::new() }
    }

    /// Replaces the cost.
    pub fn with_tally(self, tally: Tally) -> ShardEnd {
        ShardEnd { tally, ..self }
    }

    /// Joins the end of another shard of the same pass. The failure at the lowest position stays. Neighbours that cannot be
    /// merged are a failure too, at the position where they meet.
    ///
    /// # Errors
    /// Returns an error if the partials do not fit together: they have records in common, or are of different passes.
    pub fn join(&mut self, kernel: &dyn Kernel, ctx: &Ctx, other: ShardEnd) -> Result<(), RunError> {
        self.tally.add(&other.tally);
        self.handed_back.extend(other.handed_back);
        let seam = self.partial.join_to_seam(kernel, ctx, other.partial, &mut NoRows)?;
        for (at, error) in other.failure.into_iter().chain(seam) {
            if self.failure.as_ref().is_none_or(|(lowest, _)| at < *lowest) {
                self.failure = Some((at, error));
            }
        }
        Ok(())
    }
}

/// Members that fold the parts of a file where they lie.
pub trait Crew {
    /// Folds a pass for a value and gives every shard's end to `take` as it arrives. Stops once `take` returns false.
    ///
    /// # Errors
    /// It fails if a member does not give its end, and with the error of `take`.
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError>;

    /// Lets the members finish all passes for values among themselves, beginning with this one. `None` if the crew cannot do
    /// that.
    ///
    /// # Errors
    /// It fails if the members do not come to an end together.
    fn finish_as_group(&self, _: &PassOrder<'_>) -> Result<Option<GroupEnd>, RunError> {
        Ok(None)
    }

    /// Whether the members keep the bytes that the kernel gives. Then each member sends a value only, also in the pass that
    /// gives the bytes. Only kernels that [`keeps_bytes`](crate::keeps_bytes) accepts can run this way.
    fn keeps(&self) -> bool {
        false
    }

    /// Starts a pass for rows: one source for each member.
    ///
    /// # Errors
    /// It fails if a source cannot be made.
    fn rows<'o>(&'o self, order: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError>;

    /// Goes on with rows that a member handed back. `None` if another member goes on with them.
    ///
    /// # Errors
    /// The default is an error: a crew that takes nothing over allows no hand-back.
    fn take_over<'o>(
        &'o self,
        _: &'o PassOrder<'_>,
        _: HandBack,
    ) -> Result<Option<Box<dyn UnitSource + 'o>>, RunError> {
        Err(bad_units("it handed back work although it may not"))
    }

    /// The part of the request that the client folded because members handed it back.
    fn client_share(&self) -> ClientShare {
        ClientShare::default()
    }
}

/// The part of a request that the client folded instead of the members, and the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientShare {
    /// Its cost, by the target that holds the bytes.
    pub tally: Tally,
    /// The times and the reasons of the decisions.
    pub revisions: Vec<Revision>,
}

/// Takes a shard's end. Returns false if no more ends are needed.
pub type TakeShard<'t> = dyn FnMut(ShardEnd) -> Result<bool, RunError> + 't;

/// A message of a member about its units.
#[derive(Debug)]
pub enum UnitEvent {
    /// A unit begins at this byte of the file (or at this virtual record). Later units begin behind it.
    Begin(u64),
    /// Rows of the unit, in ascending order.
    Rows(RowBatch),
    /// The unit has ended.
    End(UnitEnd),
    /// The unit cannot be finished. No event follows.
    Failed(RunError),
    /// The records of some targets are folded no further. The cut is in the middle of a unit or between two units. A unit that
    /// is cut in the middle has no [`End`](UnitEvent::End).
    HandedBack(HandBack),
    /// There are no more units. No event follows.
    Finished(Tally),
}

/// The units of one member.
pub trait UnitSource: Send {
    /// The next event.
    ///
    /// # Errors
    /// It fails if the events of the member break off, or cannot be decoded. A unit that cannot be finished is
    /// [`UnitEvent::Failed`], and is no error here.
    fn next(&mut self) -> Result<UnitEvent, RunError>;

    /// Bytes that came over a network until now.
    fn received(&self) -> u64 {
        0
    }
}

/// Takes units in the order of the file.
pub trait UnitOutput {
    /// Begins a unit.
    ///
    /// # Errors
    /// It fails if the unit cannot be taken.
    fn begin(&mut self, at: u64) -> Result<(), RunError>;
    /// Takes rows of the unit.
    ///
    /// # Errors
    /// It fails if the rows cannot be taken.
    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError>;
    /// Ends the unit.
    ///
    /// # Errors
    /// It fails if the state of the unit cannot be taken.
    fn end(&mut self, end: UnitEnd) -> Result<(), RunError>;
}

/// Makes a source of the units that were handed back. `None` if another member goes on with them.
pub type TakeOver<'t, 's> = dyn FnMut(HandBack) -> Result<Option<Box<dyn UnitSource + 's>>, RunError> + 't;

/// Puts the units of several sources in order. Ends with the first unit that was cut or has enough, or when all sources
/// have finished.
///
/// # Errors
/// The error is that of the first unit in the order of the file that failed, [`RunError::BadPartial`] if the units of a
/// source are out of order, or the error of `out` or `take_over`. A source that fails between two units ends the merge
/// at once.
pub fn merge_units<'s>(
    sources: Vec<Box<dyn UnitSource + 's>>,
    out: &mut dyn UnitOutput,
    tally: &mut Tally,
    take_over: &mut TakeOver<'_, 's>,
) -> Result<(), RunError> {
    let heads = Vec::with_capacity(sources.len());
    let mut merge = Merge { sources, heads, tally, take_over };
    let merged = merge.run(out);
    let Merge { sources, tally, .. } = merge;
    tally.sent = sources.iter().fold(tally.sent, |sent, source| sent.saturating_add(source.received()));
    merged
}

struct Merge<'t, 'o, 's> {
    sources: Vec<Box<dyn UnitSource + 's>>,
    /// Start of the next unit of each source; `None` for a source that has finished.
    heads: Vec<Option<u64>>,
    tally: &'t mut Tally,
    take_over: &'t mut TakeOver<'o, 's>,
}

impl Merge<'_, '_, '_> {
    fn run(&mut self, out: &mut dyn UnitOutput) -> Result<(), RunError> {
        self.new_heads()?;
        let lowest =
            |heads: &[Option<u64>]| heads.iter().enumerate().filter_map(|(n, at)| at.map(|at| (at, n))).min();
        while let Some((at, n)) = lowest(&self.heads) {
            let Some(source) = self.sources.get_mut(n) else { break };
            out.begin(at)?;
            loop {
                match source.next()? {
                    UnitEvent::Rows(batch) => out.rows(batch)?,
                    UnitEvent::End(end) => {
                        let last = end.cut || end.enough;
                        out.end(end)?;
                        if last {
                            return Ok(());
                        }
                        break;
                    }
                    UnitEvent::HandedBack(hand_back) => {
                        self.sources.extend((self.take_over)(hand_back)?);
                        break;
                    }
                    UnitEvent::Failed(error) => return Err(error),
                    UnitEvent::Begin(_) | UnitEvent::Finished(_) => {
                        return Err(bad_units("a unit did not end"));
                    }
                }
            }
            let next = self.head(n)?;
            if next.is_some_and(|next| next <= at) {
                return Err(bad_units("its units are out of order"));
            }
            if let Some(slot) = self.heads.get_mut(n) {
                *slot = next;
            }
            self.new_heads()?;
        }
        Ok(())
    }

    /// Finds the first units of new sources.
    fn new_heads(&mut self) -> Result<(), RunError> {
        while self.heads.len() < self.sources.len() {
            let head = self.head(self.heads.len())?;
            self.heads.push(head);
        }
        Ok(())
    }

    fn head(&mut self, n: usize) -> Result<Option<u64>, RunError> {
        loop {
            let Some(source) = self.sources.get_mut(n) else { return Ok(None) };
            match source.next()? {
                UnitEvent::Begin(at) => return Ok(Some(at)),
                UnitEvent::Finished(part) => {
                    self.tally.add(&part);
                    return Ok(None);
                }
                UnitEvent::HandedBack(hand_back) => self.sources.extend((self.take_over)(hand_back)?),
                UnitEvent::Failed(error) => return Err(error),
                UnitEvent::Rows(_) | UnitEvent::End(_) => return Err(bad_units("rows outside of a unit")),
            }
        }
    }
}

fn bad_units(why: &str) -> RunError {
    RunError::BadPartial { why: format!("a node sent wrong units: {why}") }
}

/// Runs one pass by a crew.
pub(crate) fn crew_pass(
    job: &Prepared,
    ctx: &Ctx,
    crew: &dyn Crew,
    rows: &mut dyn RowOutput,
    control: &Control,
) -> Result<PassEnd, RunError> {
    let order = PassOrder { kernel: &job.kernel, ctx, control };
    control.begin_pass(0, ctx.extent.end - ctx.extent.start);
    let mut tally = Tally::new(job.file.parts.len());
    if job.gives_rows() {
        let partial = Partial::empty(ctx.round);
        let mut delivery = Delivery { kernel: &*job.kernel, ctx, output: rows, partial, delivered: None };
        let mut take_over = |hand_back| crew.take_over(&order, hand_back);
        merge_units(crew.rows(&order)?, &mut delivery, &mut tally, &mut take_over)?;
        return Ok(PassEnd { partial: delivery.partial, delivered: delivery.delivered, tally });
    }
    let mut all = ShardEnd { tally, ..ShardEnd::new(ctx.round, 0) };
    crew.values(&order, &mut |end| {
        all.join(&*job.kernel, ctx, end)?;
        Ok(!is_complete(&all.partial, &ctx.extent)?)
    })?;
    let ShardEnd { partial, failure, tally, .. } = all;
    if let Some((at, error)) = failure
        && partial.enough_at.is_none_or(|enough| at < enough)
    {
        return Err(error);
    }
    Ok(PassEnd { partial, delivered: None, tally })
}

impl UnitOutput for Delivery<'_> {
    fn begin(&mut self, _: u64) -> Result<(), RunError> {
        Ok(())
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.deliver(batch)
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        match end.piece {
            Some((range, state)) => self.join(range, state, end.enough),
            None => Ok(()),
        }
    }
}
