//! The contract: [`Kernel`], [`Fold`], and the types that they exchange with a runtime.

use std::ops::Range;
use std::sync::Arc;

use crate::block::Block;
use crate::{KernelError, Sink, Spec, Value};

/// The context in which a fold begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ctx {
    /// Number of the pass, from 0.
    pub round: u32,
    /// The broadcast of [`Kernel::advance`] after the previous pass; empty in round 0.
    pub shared: Arc<[u8]>,
    /// Whether this is the pass that [`Next::Last`] announced.
    pub last: bool,
    /// The positions of all records of the request. A fold sees a part of them.
    pub extent: Range<u64>,
    /// Small inputs that every fold gets whole (centres, a mask, a table), at most
    /// [`MAX_SIDE_BYTES`](crate::MAX_SIDE_BYTES) each.
    pub side: Vec<Arc<[u8]>>,
}

impl Ctx {
    /// The context of the first pass over these records, without side inputs.
    pub fn first(extent: Range<u64>) -> Ctx {
        Ctx { round: 0, shared: Arc::from([]), last: false, extent, side: Vec::new() }
    }

    /// The context of the next pass, which is the last one.
    pub fn last(&self, shared: Vec<u8>) -> Ctx {
        Ctx { last: true, ..self.next(shared) }
    }

    /// The context of the next pass.
    pub fn next(&self, shared: Vec<u8>) -> Ctx {
        Ctx {
            round: self.round + 1,
            shared: shared.into(),
            last: false,
            extent: self.extent.clone(),
            side: self.side.clone(),
        }
    }
}

/// The progress of a fold in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The fold took this number of positions. If they are fewer than the block has, it must get the rest again.
    Took(u64),
    /// The fold took this number of positions, and then the sink refused a row. The caller must empty the sink and
    /// give the rest again. If the fold emitted some rows of the next record already, its state says so.
    Full(u64),
    /// The fold needs no more records. The rest of the block counts as taken. No later record of the file changes the
    /// state of the fold, and merging any later partial into it changes nothing.
    Enough,
}

/// A running fold over one extent of the file. Its state is a partial result.
pub trait Fold: Send {
    /// Folds the records of a block, which begins where the last one ended. If [`Spec::order`] is
    /// [`Any`](crate::Order::Any), the block may lie anywhere, before or after the records that were folded already,
    /// but it does not begin in the middle of a grain.
    ///
    /// # Errors
    /// It fails if the kernel cannot fold these records, for example with [`KernelError::NotANumber`],
    /// [`KernelError::LineTooLong`] or [`KernelError::Domain`].
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError>;

    /// Appends the state. It may be called between any two calls of `update` if [`Spec::can_save`] is true.
    fn save(&self, out: &mut Vec<u8>);

    /// Merges the saved state of a later extent: the next one, or any other if [`Spec::order`] is
    /// [`Any`](crate::Order::Any). A record that is complete only after the merge may give rows, at most
    /// [`MAX_MERGE_ROWS`](crate::MAX_MERGE_ROWS) of them. They go to the sink. A caller that delivers rows in order
    /// while folds run can take such a row only before it delivers rows of the later extent. Otherwise it is an error.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if `later` cannot be read. It also fails if the two extents cannot be
    /// merged, for example with [`KernelError::Domain`] or [`KernelError::LineTooLong`].
    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError>;

    /// The summary of the record that was folded last, if one was [requested](crate::Summary::Requested) and it
    /// contains more than the known summary. At most [`MAX_SUMMARY_BYTES`](crate::MAX_SUMMARY_BYTES).
    fn summary(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The result of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The answer.
    Done(Value),
    /// The kernel needs one more pass over all records, with these bytes as [`Ctx::shared`].
    Again(Vec<u8>),
    /// The kernel needs the last pass, with these bytes as [`Ctx::shared`]. It gives the rows or bytes of a kernel of
    /// [several passes](crate::Passes::Several).
    Last(Vec<u8>),
}

/// An analysis with its parameters. It begins folds and evaluates the merged state of a pass.
pub trait Kernel: Send + Sync {
    /// The declaration of the kernel. It never changes.
    fn spec(&self) -> Spec;

    /// Begins a fold over no records. Merging it into another fold changes nothing.
    ///
    /// # Errors
    /// It fails if the kernel cannot work with `ctx`. Examples are [`KernelError::Domain`] for an extent that does not
    /// suit the kernel, and [`KernelError::BadState`] for a [`Ctx::shared`] that cannot be read.
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError>;

    /// Continues a fold from a saved state of the same round. The default merges the state into a new fold.
    ///
    /// # Errors
    /// It fails where [`Kernel::begin`] does. The error is [`KernelError::BadState`] if `state` cannot be read. The
    /// default gives any error of [`Fold::merge`].
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        let mut fold = self.begin(ctx)?;
        fold.merge(state, &mut crate::NoRows)?;
        Ok(fold)
    }

    /// Evaluates the merged state of all records at the end of a pass. Equal arguments give equal results everywhere.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if `whole` or [`Ctx::shared`] cannot be read. It also fails if the
    /// records have no answer, for example with [`KernelError::Empty`] or [`KernelError::Domain`].
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError>;

    /// Whether this summary replaces the record in every pass: after a block with
    /// [`Summary::Substitute`](crate::Summary::Substitute) the fold has the same state as after the record itself.
    /// False for bytes that are not a summary of the record.
    fn summary_suffices(&self, _record: u64, _summary: &[u8]) -> bool {
        false
    }

    /// A key of everything that summaries depend on, except the stored bytes of their record. Kernels with equal keys
    /// can use each other's summaries. `None` for a kernel without summaries.
    fn summary_key(&self) -> Option<Vec<u8>> {
        None
    }
}

impl<K: Kernel + ?Sized> Kernel for Arc<K> {
    fn spec(&self) -> Spec {
        (**self).spec()
    }
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        (**self).begin(ctx)
    }
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        (**self).restore(ctx, state)
    }
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        (**self).advance(ctx, whole)
    }
    fn summary_suffices(&self, record: u64, summary: &[u8]) -> bool {
        (**self).summary_suffices(record, summary)
    }
    fn summary_key(&self) -> Option<Vec<u8>> {
        (**self).summary_key()
    }
}

/// The saved state of a fold.
pub fn saved(fold: &dyn Fold) -> Vec<u8> {
    let mut out = Vec::new();
    fold.save(&mut out);
    out
}

/// Gives a whole block to a fold, in several calls if the fold takes only parts of it.
///
/// `on_full` empties the sink and says whether to continue. It is called each time the sink is full.
/// Returns the positions taken and whether the fold said [`Step::Enough`], which takes them all.
///
/// # Errors
/// The errors are those of [`Fold::update`] and `on_full`, and [`KernelError::Contract`] if the fold breaks the
/// contract. A fold breaks it if it takes more than it is given, if it takes nothing although the sink is not full, or
/// if it is full more than [`MAX_FULL_WITHOUT_PROGRESS`] times in a row without emitting or taking anything.
pub fn feed<S: Sink>(
    spec: &Spec,
    fold: &mut dyn Fold,
    block: &Block<'_>,
    sink: &mut S,
    mut on_full: impl FnMut(&mut S) -> Result<DrainOutcome, KernelError>,
) -> Result<(u64, bool), KernelError> {
    let broken = |why: String| KernelError::Contract { kernel: spec.name, why };
    let mut done = 0;
    let mut in_place = 0;
    while done < block.count() {
        let rest = block.part(spec, done, block.count());
        let (took, full) = match fold.update(&rest, sink)? {
            Step::Enough => return Ok((block.count(), true)),
            Step::Took(took) => (took, false),
            Step::Full(took) => (took, true),
        };
        if took > rest.count() {
            return Err(broken(format!("took {took} records of a block of {}", rest.count())));
        }
        if took == 0 && !full {
            return Err(broken("took no record of a block".into()));
        }
        done += took;
        if full {
            match on_full(sink)? {
                DrainOutcome::Stop => return Ok((done, false)),
                DrainOutcome::Rows => in_place = 0,
                DrainOutcome::Nothing if took > 0 => in_place = 0,
                DrainOutcome::Nothing => in_place += 1,
            }
            if in_place > MAX_FULL_WITHOUT_PROGRESS {
                return Err(broken("says that an empty sink is full".into()));
            }
        }
    }
    Ok((done, false))
}

/// The outcome of emptying a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The sink had rows.
    Rows,
    /// The sink was empty already.
    Nothing,
    /// The reader needs no more rows, so the fold stops here.
    Stop,
}

/// Most times in a row that a fold may say [`Step::Full`] for an empty sink without taking a record.
pub const MAX_FULL_WITHOUT_PROGRESS: u32 = 2;
