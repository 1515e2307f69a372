//! The contract: [`Kernel`], [`Fold`], and what passes between them and a runtime.

use std::ops::Range;
use std::sync::Arc;

use crate::{KernelError, Sink, Spec, Value};

/// What a kernel is told when a fold begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ctx {
    /// Number of the pass, from 0.
    pub round: u32,
    /// What [`Kernel::advance`] of the pass before broadcast; empty in round 0.
    pub shared: Arc<[u8]>,
    /// Whether this is the pass that [`Next::Last`] announced.
    pub last: bool,
    /// All records of the request, as positions. Folds see parts of it.
    pub extent: Range<u64>,
    /// Small inputs given whole to every fold (centres, a mask, a table), at most
    /// [`MAX_SIDE_BYTES`](crate::MAX_SIDE_BYTES) each.
    pub side: Vec<Arc<[u8]>>,
}

impl Ctx {
    /// The context of a first pass over these records, without side inputs.
    pub fn first(extent: Range<u64>) -> Ctx {
        Ctx { round: 0, shared: Arc::from([]), last: false, extent, side: Vec::new() }
    }

    /// The context of the pass after this one, as the last one.
    pub fn last(&self, shared: Vec<u8>) -> Ctx {
        Ctx { last: true, ..self.next(shared) }
    }

    /// The context of the pass after this one.
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

/// Aligned records given to a fold: whole records only, elements little-endian whatever the file's order.
///
/// Halo and records lie in one slice, so a block can be cut anywhere between records.
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

/// What is said about the one record of a block beside its bytes. A summary is what the [`Fold`] of a kernel told of a
/// record before ([`Fold::summary`]); nobody else reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summary<'a> {
    /// Nothing.
    #[default]
    None,
    /// This stands for the record, which was not read: [`Kernel::settled`] said that it may.
    Instead(&'a [u8]),
    /// A summary of the record is welcome.
    Welcome {
        /// What is known of it already, if anything.
        known: Option<&'a [u8]>,
        /// Whether reading the record cost so much that it may be summarised thoroughly.
        thorough: bool,
    },
}

impl<'a> Block<'a> {
    /// `count` positions from `first` on, without halo: records, or bytes for lines. `data` is empty for
    /// virtual records.
    pub const fn new(first: u64, count: u64, data: &'a [u8]) -> Block<'a> {
        Block { first, count, bytes: data, before: 0, after: 0, second: &[], summary: Summary::None }
    }

    /// The same block of one record, with what is said about it.
    pub const fn with_summary(mut self, summary: Summary<'a>) -> Block<'a> {
        self.summary = summary;
        self
    }

    /// The same block where the first `before` and the last `after` bytes given are halo, not records. The two
    /// together must not be longer than the bytes; what is too much is cut off `after`, then `before`.
    pub fn with_halo(mut self, before: usize, after: usize) -> Block<'a> {
        self.before = before.min(self.bytes.len());
        self.after = after.min(self.bytes.len() - self.before);
        self
    }

    /// The same block with the same records of the second input.
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

    /// The same records of the second input; empty where there is none.
    pub const fn second(&self) -> &'a [u8] {
        self.second
    }

    /// What is said about its one record.
    pub const fn summary(&self) -> Summary<'a> {
        self.summary
    }

    /// Bytes from `halo_bytes` before the first record (as far as there are any) to the end of the halo after.
    pub const fn with_both_halos(&self) -> &'a [u8] {
        self.bytes
    }

    /// The part from `from` to `to` (positions counted from the first) for a kernel that declared `spec`, with
    /// halo on both sides taken from the block itself.
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

/// How far a fold came in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Took this many positions; the fold wants the rest of the block again. All of them: go on.
    Took(u64),
    /// Took this many, then the sink refused a row: empty it and give the rest again. What the fold emitted of
    /// the next record already, if anything, is in its state.
    Full(u64),
    /// Needs nothing more, the rest of this block included, which counts as taken: no later record of the file
    /// changes this fold's state, and merging any later partial into it changes nothing.
    Enough,
}

/// A running fold over one extent of the file. Its state is a partial result.
pub trait Fold: Send {
    /// Folds the records of a block, which begins where the last one ended. Where [`Spec::order`] is
    /// [`Any`](crate::Order::Any) it may lie anywhere, before or behind what was folded already, but not in the
    /// middle of a grain.
    ///
    /// # Errors
    /// It fails if the kernel cannot fold these records, for example with [`KernelError::NotANumber`],
    /// [`KernelError::LineTooLong`] or [`KernelError::Domain`].
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError>;

    /// Appends the state. Allowed between any two calls of `update` where [`Spec::can_save`] says so.
    fn save(&self, out: &mut Vec<u8>);

    /// Takes in the saved state of a later extent: the one that follows at once, or any other where
    /// [`Spec::order`] is [`Any`](crate::Order::Any). Rows that only the seam of the two brings to light go to
    /// the sink, at most [`MAX_MERGE_ROWS`](crate::MAX_MERGE_ROWS) of them. Whoever delivers rows in order while
    /// folds run can take such a row only if none of the later extent was delivered; it is an error otherwise.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if `later` cannot be read. It also fails if the two extents cannot be
    /// merged, for example with [`KernelError::Domain`] or [`KernelError::LineTooLong`].
    fn merge(&mut self, later: &[u8], sink: &mut dyn Sink) -> Result<(), KernelError>;

    /// The summary of the record that was folded last, where one was [welcome](Summary::Welcome) and there is more to tell
    /// than was known. At most [`MAX_SUMMARY_BYTES`].
    fn summary(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// Longest summary of a record.
pub const MAX_SUMMARY_BYTES: usize = 512;

/// What follows a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The answer.
    Done(Value),
    /// One more pass over all records, with these bytes as [`Ctx::shared`].
    Again(Vec<u8>),
    /// The last pass, with these bytes as [`Ctx::shared`]: the one that gives the rows or bytes of a kernel that takes
    /// [several](crate::Passes::Several).
    Last(Vec<u8>),
}

/// An operation with its parameters bound: begins folds, and judges the merged whole.
pub trait Kernel: Send + Sync {
    /// What it declares. Constant.
    fn spec(&self) -> Spec;

    /// A fold over nothing: merging it into another changes nothing.
    ///
    /// # Errors
    /// It fails if the kernel cannot work with `ctx`. Examples are [`KernelError::Domain`] for an extent that does not
    /// suit the kernel, and [`KernelError::BadState`] for a [`Ctx::shared`] that cannot be read.
    fn begin(&self, ctx: &Ctx) -> Result<Box<dyn Fold>, KernelError>;

    /// A fold that goes on from a saved state of the same round. The default merges it into the identity.
    ///
    /// # Errors
    /// It fails where [`Kernel::begin`] does. The error is [`KernelError::BadState`] if `state` cannot be read. The
    /// default gives any error of [`Fold::merge`].
    fn restore(&self, ctx: &Ctx, state: &[u8]) -> Result<Box<dyn Fold>, KernelError> {
        let mut fold = self.begin(ctx)?;
        fold.merge(state, &mut crate::NoRows)?;
        Ok(fold)
    }

    /// Called once a pass, on the state of all records merged; the same everywhere.
    ///
    /// # Errors
    /// The error is [`KernelError::BadState`] if `whole` or [`Ctx::shared`] cannot be read. It also fails if the
    /// records have no answer, for example with [`KernelError::Empty`] or [`KernelError::Domain`].
    fn advance(&self, ctx: &Ctx, whole: &[u8]) -> Result<Next, KernelError>;

    /// Whether this summary of a record does instead of it, in every pass: a fold that is given a block with
    /// [`Summary::Instead`] has the same state then as one that is given the record. Bytes that are no summary of it do not.
    fn settled(&self, _record: u64, _summary: &[u8]) -> bool {
        false
    }

    /// What summaries are of, beside the stored bytes of their record: kernels that say the same understand each other's.
    /// `None` where there are none.
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
    fn settled(&self, record: u64, summary: &[u8]) -> bool {
        (**self).settled(record, summary)
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

/// Feeds a whole block, calling again while the fold takes only parts of it.
///
/// `on_full` empties the sink and says whether to go on; it is called each time the fold met a full one.
/// Returns the positions taken and whether the fold said [`Step::Enough`], which takes them all.
///
/// # Errors
/// The errors are those of [`Fold::update`] and `on_full`, and [`KernelError::Contract`] if the fold breaks the
/// contract. A fold breaks it if it takes more than it is given, if it takes nothing although the sink is not full, or
/// if it is full more than [`MAX_FULL_IN_PLACE`] times in a row without emitting or taking anything.
pub fn feed<S: Sink>(
    spec: &Spec,
    fold: &mut dyn Fold,
    block: &Block<'_>,
    sink: &mut S,
    mut on_full: impl FnMut(&mut S) -> Result<Emptied, KernelError>,
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
                Emptied::Stop => return Ok((done, false)),
                Emptied::Rows => in_place = 0,
                Emptied::Nothing if took > 0 => in_place = 0,
                Emptied::Nothing => in_place += 1,
            }
            if in_place > MAX_FULL_IN_PLACE {
                return Err(broken("says that an empty sink is full".into()));
            }
        }
    }
    Ok((done, false))
}

/// What emptying a sink came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// There were rows in it.
    Rows,
    /// There was nothing in it.
    Nothing,
    /// The reader wants no more; stop here.
    Stop,
}

/// How often in a row a fold may say [`Step::Full`] of an empty sink without taking a record.
pub const MAX_FULL_IN_PLACE: u32 = 2;
