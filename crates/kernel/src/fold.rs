//! The contract: [`Kernel`], [`Fold`], and the types that they exchange with a runtime.

use std::ops::Range;
use std::sync::Arc;

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

/// Aligned records for a fold: whole records only. Elements are little-endian in any byte order of the file.
///
/// Halo and records lie in one slice, so a block can be cut between any two records.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    first: u64,
    count: u64,
    bytes: &'a [u8],
    before: usize,
    after: usize,
    second: &'a [u8],
    summary: Summary<'a>,
}

/// Information about the only record of a block, in addition to its bytes. A summary is the result of an earlier
/// [`Fold::summary`] for the record. Only kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summary<'a> {
    /// No summary is given or requested.
    #[default]
    None,
    /// The summary replaces the record, which was not read, because [`Kernel::summary_suffices`] said so.
    Substitute(&'a [u8]),
    /// A summary of the record is requested.
    Requested {
        /// The summary of the record that is known already, if there is one.
        known: Option<&'a [u8]>,
        /// Whether the record was so slow to read that a thorough summary is worth its time.
        thorough: bool,
    },
}

impl<'a> Block<'a> {
    /// A block of `count` positions from `first` on, without halo. A position is a record, or a byte for lines. `data`
    /// is empty for virtual records.
    pub const fn new(first: u64, count: u64, data: &'a [u8]) -> Block<'a> {
        Block { first, count, bytes: data, before: 0, after: 0, second: &[], summary: Summary::None }
    }

    /// Sets the summary of a block of one record.
    pub const fn with_summary(mut self, summary: Summary<'a>) -> Block<'a> {
        self.summary = summary;
        self
    }

    /// Declares the first `before` and the last `after` bytes of the block as halo, not records. If they are longer
    /// than the bytes together, `after` is cut first, then `before`.
    pub fn with_halo(mut self, before: usize, after: usize) -> Block<'a> {
        self.before = before.min(self.bytes.len());
        self.after = after.min(self.bytes.len() - self.before);
        self
    }

    /// Adds the same records of the second input.
    pub const fn with_second(mut self, second: &'a [u8]) -> Block<'a> {
        self.second = second;
        self
    }

    /// Position of the first record: its number, or its byte offset for lines.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Positions in the block: records, or bytes for lines.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Position after the last record.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The records.
    pub fn data(&self) -> &'a [u8] {
        &self.bytes[self.before..self.bytes.len() - self.after]
    }

    /// The `halo` records before the first; fewer at the start of the file.
    pub fn before(&self) -> &'a [u8] {
        &self.bytes[..self.before]
    }

    /// The `halo` records after the last; fewer at the end of the file.
    pub fn after(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - self.after..]
    }

    /// The same records of the second input; empty if there is none.
    pub const fn second(&self) -> &'a [u8] {
        self.second
    }

    /// The summary of its only record.
    pub const fn summary(&self) -> Summary<'a> {
        self.summary
    }

    /// The halo before the records, the records, and the halo after them.
    pub const fn bytes_with_halo(&self) -> &'a [u8] {
        self.bytes
    }

    /// The part from `from` to `to` (positions counted from the first) for a kernel that declared `spec`. Its halo on
    /// both sides comes from this block.
    pub fn part(&self, spec: &Spec, from: u64, to: u64) -> Block<'a> {
        let to = to.min(self.count);
        let from = from.min(to);
        let unit = spec.record.bytes() as usize;
        let halo = spec.halo as usize * unit;
        let records = self.bytes.len() - self.before - self.after;
        let start = self.before + (from as usize * unit).min(records);
        let end = self.before + (to as usize * unit).min(records);
        let low = start.saturating_sub(halo);
        let high = (end + halo).min(self.bytes.len());
        let second = spec.second.unwrap_or(0) as usize;
        let second = self.second.get(from as usize * second..to as usize * second).unwrap_or(&[]);
        Block {
            first: self.first + from,
            count: to - from,
            bytes: &self.bytes[low..high],
            before: start - low,
            after: high - end,
            second,
            summary: if to - from == self.count { self.summary } else { Summary::None },
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

    /// The summary of the record that was folded last, if one was [requested](Summary::Requested) and it contains more
    /// than the known summary. At most [`MAX_SUMMARY_BYTES`].
    fn summary(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// Longest summary of a record.
pub const MAX_SUMMARY_BYTES: usize = 512;

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

    /// Whether this summary replaces the record in every pass: after a block with [`Summary::Substitute`] the fold has
    /// the same state as after the record itself. False for bytes that are not a summary of the record.
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
    while done < block.count {
        let rest = block.part(spec, done, block.count);
        let (took, full) = match fold.update(&rest, sink)? {
            Step::Enough => return Ok((block.count, true)),
            Step::Took(took) => (took, false),
            Step::Full(took) => (took, true),
        };
        if took > rest.count {
            return Err(broken(format!("took {took} records of a block of {}", rest.count)));
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
