//! Partial results with the records they cover, and joining them.
//!
//! A partial is a *rope*: pieces sorted by position, each the records it covers and the state of a fold over
//! them. [`Partial::join`] sorts pieces, rejects records covered twice and merges neighbours. It is commutative
//! and associative whatever the kernel, so any tree over targets and any order of arrival give the same whole,
//! and a partial that arrives twice is an error, never a number that is too large.
//!
//! Pieces of a kernel whose order is [`Order::Any`] collapse into one across gaps; the covered set is kept all
//! the same, for the same reason.

use std::ops::Range;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{Ctx, Kernel, Order, Output, Sink, saved};

use crate::{ExtentSet, RunError};

/// Most pieces of a partial, and most ranges of a covered set, that are read from bytes.
pub const MAX_PIECES: usize = 1 << 22;

/// A state and the records it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The records; one range for a kernel of order [`Order::File`].
    pub covered: ExtentSet,
    /// What the fold over them saved.
    pub state: Vec<u8>,
}

/// What is known so far of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The pass.
    pub round: u32,
    /// Pieces in the order of their first records; they have no record in common.
    pub pieces: Vec<Piece>,
    /// A fold that ends here said that it needs nothing from here on.
    pub enough_at: Option<u64>,
}

/// Whether pieces of this kernel may be merged across gaps. Rows belong to places, so a kernel that emits some
/// may not, whatever it declares.
pub(crate) fn collapses(kernel: &dyn Kernel) -> bool {
    let spec = kernel.spec();
    spec.order == Order::Any && spec.output == Output::Value
}

impl Partial {
    /// Nothing yet.
    pub const fn empty(round: u32) -> Partial {
        Partial { round, pieces: Vec::new(), enough_at: None }
    }

    /// One state; nothing if it covers nothing.
    pub fn of(round: u32, covered: ExtentSet, state: Vec<u8>) -> Partial {
        let pieces = if covered.is_empty() { Vec::new() } else { vec![Piece { covered, state }] };
        Partial { round, pieces, enough_at: None }
    }

    /// All records covered.
    pub fn covered(&self) -> Result<ExtentSet, RunError> {
        ExtentSet::of_all(self.pieces.iter().flat_map(|piece| piece.covered.ranges()).cloned().collect())
    }

    /// Takes in another partial of the same pass. Rows that seams bring to light go to `sink`.
    pub fn join(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        other: Partial,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        if self.round != other.round {
            return Err(RunError::Round { want: self.round, got: other.round });
        }
        self.enough_at = match (self.enough_at, other.enough_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for piece in other.pieces {
            if collapses(kernel) {
                self.collapse(kernel, ctx, piece, sink)?;
            } else if self.enough_at.is_none_or(|enough| start(&piece) < enough) {
                self.insert(kernel, ctx, piece, sink)?;
            }
        }
        if let Some(enough) = self.enough_at
            && !collapses(kernel)
        {
            self.pieces.retain(|piece| start(piece) < enough);
        }
        Ok(())
    }

    fn collapse(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        piece: Piece,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        match self.pieces.first_mut() {
            None => self.pieces.push(piece),
            Some(mine) => {
                mine.covered.union(&piece.covered)?;
                let mut fold = kernel.restore(ctx, &mine.state)?;
                fold.merge(&piece.state, sink)?;
                mine.state = saved(&*fold);
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        piece: Piece,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        let range = single(&piece)?;
        let at = self.pieces.partition_point(|other| start(other) < range.start);
        if let Some(next) = self.pieces.get(at)
            && start(next) < range.end
        {
            return Err(RunError::Overlap { at: start(next)..range.end.min(end(next)) });
        }
        if at > 0 && end(&self.pieces[at - 1]) > range.start {
            return Err(RunError::Overlap { at: range.start..range.end.min(end(&self.pieces[at - 1])) });
        }
        let mut piece = piece;
        let mut at = at;
        if at > 0 && end(&self.pieces[at - 1]) == range.start {
            let before = self.pieces.remove(at - 1);
            piece = merged(kernel, ctx, before, piece, sink)?;
            at -= 1;
        }
        if self.pieces.get(at).is_some_and(|next| start(next) == range.end) {
            let next = self.pieces.remove(at);
            piece = merged(kernel, ctx, piece, next, sink)?;
        }
        self.pieces.insert(at, piece);
        if self.pieces.len() > MAX_PIECES {
            return Err(RunError::TooManyPieces { max: MAX_PIECES });
        }
        Ok(())
    }

    /// The state over all of `ctx.extent`; an error if a record is missing.
    pub fn whole(self, kernel: &dyn Kernel, ctx: &Ctx) -> Result<Vec<u8>, RunError> {
        let end = self.enough_at.map_or(ctx.extent.end, |enough| enough.min(ctx.extent.end));
        if let Some(gap) = self.covered()?.gaps(ctx.extent.start..end).first() {
            return Err(RunError::Incomplete { gap: gap.clone() });
        }
        let pieces = self.pieces.len();
        match (self.pieces.into_iter().next(), pieces) {
            (Some(piece), 1) => Ok(piece.state),
            (None, _) => Ok(saved(&*kernel.begin(ctx)?)),
            _ => Err(RunError::BadPartial { why: format!("{pieces} pieces were not merged") }),
        }
    }

    /// Appends the partial as bytes, little-endian: pass, number of pieces, and of each the number of ranges,
    /// the ranges and the state behind its length; last, a flag and where a fold had enough.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(u64::from(self.round));
        out.put_u64(self.pieces.len() as u64);
        for piece in &self.pieces {
            out.put_u64(piece.covered.ranges().len() as u64);
            for range in piece.covered.ranges() {
                out.put_u64(range.start);
                out.put_u64(range.end);
            }
            out.put_blob(&piece.state);
        }
        out.put_flag(self.enough_at.is_some());
        if let Some(enough) = self.enough_at {
            out.put_u64(enough);
        }
    }

    /// Reads what [`encode`](Partial::encode) wrote. What comes from elsewhere is checked: pieces sorted and
    /// apart, ranges not empty.
    pub fn decode(bytes: &[u8]) -> Result<Partial, RunError> {
        let bad = |why: String| RunError::BadPartial { why };
        let mut read = StateReader::new("partial", bytes);
        let inner = |e: gristmill_kernel::KernelError| bad(e.to_string());
        let round = u32::try_from(read.u64().map_err(inner)?).map_err(|_| bad("impossible pass".into()))?;
        let count = read.u64().map_err(inner)?;
        if count > MAX_PIECES as u64 {
            return Err(bad(format!("{count} pieces")));
        }
        let mut out = Partial::empty(round);
        for _ in 0..count {
            let ranges = read.u64().map_err(inner)?;
            if ranges > MAX_PIECES as u64 || ranges == 0 {
                return Err(bad(format!("a piece of {ranges} ranges")));
            }
            let mut list = Vec::new();
            for _ in 0..ranges {
                let range = read.u64().map_err(inner)?..read.u64().map_err(inner)?;
                if range.is_empty() {
                    return Err(bad("a piece of no records".into()));
                }
                list.push(range);
            }
            let covered = ExtentSet::of_all(list)?;
            if out.pieces.last().is_some_and(|last| start(last) > covered.ranges()[0].start) {
                return Err(bad("pieces are not sorted".into()));
            }
            out.pieces.push(Piece { covered, state: read.blob().map_err(inner)?.to_vec() });
        }
        if read.flag().map_err(inner)? {
            out.enough_at = Some(read.u64().map_err(inner)?);
        }
        read.end().map_err(inner)?;
        // No record in two pieces.
        out.covered()?;
        Ok(out)
    }
}

fn start(piece: &Piece) -> u64 {
    piece.covered.ranges().first().map_or(0, |range| range.start)
}

pub(crate) fn end(piece: &Piece) -> u64 {
    piece.covered.ranges().last().map_or(0, |range| range.end)
}

fn single(piece: &Piece) -> Result<Range<u64>, RunError> {
    match piece.covered.ranges() {
        [range] => Ok(range.clone()),
        other => {
            Err(RunError::BadPartial { why: format!("a piece in file order has {} ranges", other.len()) })
        }
    }
}

fn merged(
    kernel: &dyn Kernel,
    ctx: &Ctx,
    before: Piece,
    after: Piece,
    sink: &mut dyn Sink,
) -> Result<Piece, RunError> {
    let mut fold = kernel.restore(ctx, &before.state)?;
    fold.merge(&after.state, sink)?;
    let mut covered = before.covered;
    covered.union(&after.covered)?;
    Ok(Piece { covered, state: saved(&*fold) })
}
