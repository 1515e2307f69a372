//! Passes whose folds run somewhere else, and what they send back.
//!
//! A [`Crew`] folds the parts of a file where they lie, for example on storage nodes that it asks. For a value
//! every member sends one partial, in any order; for rows every member sends its units in ascending order, and
//! [`merge_units`] puts the units of all members in the order of the file.

use std::sync::Arc;

use gristmill_kernel::{Ctx, Kernel, NoRows, RowBatch};

use crate::job::complete;
use crate::pass::PassEnd;
use crate::prepare::Prepared;
use crate::rows::{Delivery, RowOutput, UnitEnd};
use crate::{Control, HandBack, Partial, Revision, RunError, Tally, TogetherEnd};

/// A pass that a crew is to fold.
pub struct PassOrder<'a> {
    /// The kernel as it is run: bound, and over bytes where it was one over lines for a value.
    pub kernel: &'a Arc<dyn Kernel>,
    /// Number of the pass, what the last one broadcast, and the records wanted.
    pub ctx: &'a Ctx,
    /// Whether the request is to stop, and how far it is.
    pub control: &'a Control,
}

/// What one member of a crew made of its shard.
#[derive(Debug)]
pub struct ShardEnd {
    /// What was folded.
    pub partial: Partial,
    /// The failure at the lowest position, and that position. What lies before it was folded.
    pub failure: Option<(u64, RunError)>,
    /// What it cost.
    pub tally: Tally,
    /// Targets whose records are not all folded: whoever asked goes on with what the partial lacks of them.
    pub handed_back: Vec<HandBack>,
}

impl ShardEnd {
    /// A shard of which nothing was folded, of a file on so many targets.
    pub fn new(round: u32, targets: usize) -> ShardEnd {
        let (partial, tally) = (Partial::empty(round), Tally::new(targets));
        ShardEnd { partial, failure: None, tally, handed_back: Vec::new() }
    }

    /// The same, at this cost.
    pub fn costing(self, tally: Tally) -> ShardEnd {
        ShardEnd { tally, ..self }
    }

    /// Takes in what somebody else made of another shard of the same pass. Of several failures the one at the lowest
    /// position stays; neighbours that cannot be merged are a failure too, at the place where they meet.
    ///
    /// # Errors
    /// Partials that make no sense together: records folded twice, other passes.
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

/// Whoever folds the parts of a file where they lie.
pub trait Crew {
    /// Folds a pass for a value and gives every shard's end to `take` as it arrives; stops once that says that
    /// no more is wanted.
    ///
    /// # Errors
    /// It fails if a member does not give its end, and with the error of `take`.
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError>;

    /// Has the members finish all passes for values among themselves, beginning with this one, where the crew can.
    ///
    /// # Errors
    /// It fails if the members do not come to an end together.
    fn together(&self, _: &PassOrder<'_>) -> Result<Option<TogetherEnd>, RunError> {
        Ok(None)
    }

    /// Whether the members keep the bytes that the kernel gives, so that each tells a value only, also of the pass that
    /// gives them. Only kernels that [`keeps_bytes`](crate::keeps_bytes) accepts can be run so.
    fn keeps(&self) -> bool {
        false
    }

    /// Starts a pass for rows: one source for each member.
    ///
    /// # Errors
    /// It fails if a source cannot be made.
    fn rows<'o>(&'o self, order: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError>;

    /// Goes on where a member handed rows back.
    ///
    /// # Errors
    /// Unless the crew asks for work that may be handed back, nothing may be.
    fn take_over<'o>(
        &'o self,
        _: &'o PassOrder<'_>,
        _: HandBack,
    ) -> Result<Option<Box<dyn UnitSource + 'o>>, RunError> {
        Err(disorder("it handed back what it may not"))
    }

    /// The part of the request that the client folded because members handed it back.
    fn client_share(&self) -> ClientShare {
        ClientShare::default()
    }
}

/// The part of a request that the client folded instead of the members, and the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientShare {
    /// Its cost by target that has the bytes.
    pub tally: Tally,
    /// The times and the reasons of the decisions.
    pub revisions: Vec<Revision>,
}

/// Takes a shard's end; false if no more is wanted.
pub type TakeShard<'t> = dyn FnMut(ShardEnd) -> Result<bool, RunError> + 't;

/// One thing that a member says about its units.
#[derive(Debug)]
pub enum UnitEvent {
    /// A unit begins at this byte of the file (or virtual record); later units begin behind it.
    Begin(u64),
    /// Rows of the unit, in ascending order.
    Rows(RowBatch),
    /// The unit has ended.
    End(UnitEnd),
    /// The unit cannot be finished. Nothing follows.
    Failed(RunError),
    /// Some targets' records are not folded any further, in the middle of a unit or between two. If in the middle, the
    /// unit's end is not told.
    HandedBack(HandBack),
    /// No more units. Nothing follows.
    Finished(Tally),
}

/// The units of one member.
pub trait UnitSource: Send {
    /// What comes next.
    ///
    /// # Errors
    /// It fails if the member is not heard to its end, or says what makes no sense. A unit that cannot be finished is
    /// [`UnitEvent::Failed`], and is no error here.
    fn next(&mut self) -> Result<UnitEvent, RunError>;

    /// Bytes that came over a network so far.
    fn received(&self) -> u64 {
        0
    }
}

/// Takes units in the order of the file.
pub trait UnitOutput {
    /// A unit begins.
    ///
    /// # Errors
    /// It fails if nobody takes the unit.
    fn begin(&mut self, at: u64) -> Result<(), RunError>;
    /// Rows of the unit.
    ///
    /// # Errors
    /// It fails if the rows cannot be taken.
    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError>;
    /// The unit has ended.
    ///
    /// # Errors
    /// It fails if the state of the unit cannot be taken.
    fn end(&mut self, end: UnitEnd) -> Result<(), RunError>;
}

/// Gives a source for what was handed back, unless somebody else goes on with it.
pub type TakeOver<'t, 's> = dyn FnMut(HandBack) -> Result<Option<Box<dyn UnitSource + 's>>, RunError> + 't;

/// Puts the units of several sources in order. Ends with the first unit that was cut or says enough, or when
/// all sources have finished.
///
/// # Errors
/// The error is that of the first unit in the order of the file that failed, [`RunError::BadPartial`] if a source sends
/// units that make no sense, or the error of `out` or `take_over`. A source that fails between two units ends the
/// merge at once.
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
    /// The next unit of each source that has one.
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
                        return Err(disorder("a unit did not end"));
                    }
                }
            }
            let next = self.head(n)?;
            if next.is_some_and(|next| next <= at) {
                return Err(disorder("its units are out of order"));
            }
            if let Some(slot) = self.heads.get_mut(n) {
                *slot = next;
            }
            self.new_heads()?;
        }
        Ok(())
    }

    /// The first units of sources that have come.
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
                UnitEvent::Rows(_) | UnitEvent::End(_) => return Err(disorder("rows outside of a unit")),
            }
        }
    }
}

fn disorder(why: &str) -> RunError {
    RunError::BadPartial { why: format!("a node sent units that make no sense ({why})") }
}

/// One pass by a crew.
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
        Ok(!complete(&all.partial, &ctx.extent)?)
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
