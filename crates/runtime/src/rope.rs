//! Partial results with the records that they cover, and the rope that joins them.
//!
//! A partial is a *rope*: pieces sorted by position. Each piece has the records that it covers and the state of a
//! fold over them. [`Partial::join`] sorts pieces, rejects records that are covered twice, and merges neighbours. It
//! is commutative and associative for every kernel. So any tree over targets and any order of arrival give the same
//! whole, and a partial that arrives twice is an error, never a number that is too large.
//!
//! Pieces of a kernel whose order is [`Order::Any`] collapse into one across gaps. The covered set is kept then too,
//! for the same reason.

use std::ops::Range;

use gristmill_kernel::{Ctx, Kernel, Order, Output, Sink, saved};

use crate::{ExtentSet, RunError};

/// Most pieces of a partial, and most ranges of the covered sets that are read from bytes.
pub const MAX_PIECES: usize = 1 << 22;

/// Most pieces that are inserted one by one. More pieces are joined in one walk, because each insertion moves the pieces
/// behind it.
const FEW_PIECES: usize = 8;

/// A state and the records that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The records; one range for a kernel of order [`Order::File`].
    pub covered: ExtentSet,
    /// The saved state of the fold over them.
    pub state: Vec<u8>,
}

/// The partial result of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The pass.
    pub round: u32,
    /// Pieces in the order of their first records; they have no record in common.
    pub pieces: Vec<Piece>,
    /// Position from which on no record is needed: a fold that ends here has enough.
    pub enough_at: Option<u64>,
}

/// A seam at which two neighbours cannot be merged: its position and the error.
type Seam = (u64, RunError);

/// Whether pieces of this kernel may be merged across gaps. Rows belong to positions, so pieces of a kernel that emits
/// rows may not, whatever order it declares.
pub(crate) fn collapses(kernel: &dyn Kernel) -> bool {
    let spec = kernel.spec();
    spec.order == Order::Any && spec.output == Output::Value
}

impl Partial {
    /// A partial that covers no records.
    pub const fn empty(round: u32) -> Partial {
        Partial { round, pieces: Vec::new(), enough_at: None }
    }

    /// A partial of one state. It has no piece if `covered` is empty.
    pub fn new(round: u32, covered: ExtentSet, state: Vec<u8>) -> Partial {
        let pieces = if covered.is_empty() { Vec::new() } else { vec![Piece { covered, state }] };
        Partial { round, pieces, enough_at: None }
    }

    /// The set of all covered records.
    ///
    /// # Errors
    /// The error is [`RunError::Overlap`] if two pieces cover the same records.
    pub fn covered(&self) -> Result<ExtentSet, RunError> {
        ExtentSet::from_ranges(self.pieces.iter().flat_map(|piece| piece.covered.ranges()).cloned().collect())
    }

    /// Joins another partial of the same pass. Rows that merges at seams emit go to `sink`.
    ///
    /// # Errors
    /// The error is [`RunError::Round`] if the other is of another pass, [`RunError::Overlap`] if both cover the same
    /// records, [`RunError::TooManyPieces`] if more than [`MAX_PIECES`] are left, [`RunError::BadPartial`] if a piece
    /// has gaps across which the kernel may not merge, and [`RunError::Kernel`] if the kernel cannot merge two states.
    pub fn join(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        other: Partial,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        match self.join_to_seam(kernel, ctx, other, sink)? {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }

    /// Joins as [`join`](Self::join) does. If two neighbours cannot be merged, returns the seam, and keeps only the pieces
    /// before it. The pieces behind it are not needed: no record behind a failure is, or the answer needs only records before it.
    pub(crate) fn join_to_seam(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        other: Partial,
        sink: &mut dyn Sink,
    ) -> Result<Option<Seam>, RunError> {
        if self.round != other.round {
            return Err(RunError::Round { want: self.round, got: other.round });
        }
        self.enough_at = match (self.enough_at, other.enough_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let failure = if !collapses(kernel) && other.pieces.len() > FEW_PIECES {
            self.interleave(kernel, ctx, other.pieces, sink)?
        } else {
            self.insert_each(kernel, ctx, other.pieces, sink)?
        };
        if let Some(enough) = self.enough_at
            && !collapses(kernel)
        {
            self.pieces.retain(|piece| start(piece) < enough);
        }
        Ok(failure)
    }

    /// Joins pieces one by one, which is fast if they are few.
    fn insert_each(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        pieces: Vec<Piece>,
        sink: &mut dyn Sink,
    ) -> Result<Option<Seam>, RunError> {
        for piece in pieces {
            if collapses(kernel) {
                self.collapse(kernel, ctx, piece, sink)?;
            } else if self.enough_at.is_none_or(|enough| start(&piece) < enough) {
                let failure = self.insert(kernel, ctx, piece, sink)?;
                // The pieces that follow lie behind it.
                if failure.is_some() {
                    return Ok(failure);
                }
            }
        }
        Ok(None)
    }

    /// Joins many sorted pieces in one walk over both sides.
    fn interleave(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        pieces: Vec<Piece>,
        sink: &mut dyn Sink,
    ) -> Result<Option<Seam>, RunError> {
        let mut failure = None;
        let mut mine = std::mem::take(&mut self.pieces).into_iter().peekable();
        let mut theirs = pieces.into_iter().peekable();
        let mut out: Vec<Piece> = Vec::new();
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) if start(a) <= start(b) => mine.next(),
                (Some(_), None) => mine.next(),
                _ => theirs.next(),
            };
            let Some(piece) = next else { break };
            let range = single_range(&piece)?;
            if self.enough_at.is_some_and(|enough| range.start >= enough) {
                break;
            }
            match out.pop() {
                Some(last) if end(&last) > range.start => {
                    return Err(RunError::Overlap { at: range.start..range.end.min(end(&last)) });
                }
                Some(last) if end(&last) == range.start => match merged(kernel, ctx, &last, &piece, sink) {
                    Ok(both) => out.push(both),
                    Err(error) => {
                        out.push(last);
                        failure = Some((range.start, error));
                        break;
                    }
                },
                Some(last) => out.extend([last, piece]),
                None => out.push(piece),
            }
            if out.len() > MAX_PIECES {
                return Err(RunError::TooManyPieces { max: MAX_PIECES });
            }
        }
        self.pieces = out;
        Ok(failure)
    }

    /// Merges a piece across gaps into the only piece.
    fn collapse(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        piece: Piece,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        // A partial from another machine may have several pieces.
        for other in self.pieces.split_off(self.pieces.len().min(1)) {
            self.collapse(kernel, ctx, other, sink)?;
        }
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

    /// Inserts a piece at its position and merges it with its neighbours.
    fn insert(
        &mut self,
        kernel: &dyn Kernel,
        ctx: &Ctx,
        piece: Piece,
        sink: &mut dyn Sink,
    ) -> Result<Option<Seam>, RunError> {
        let range = single_range(&piece)?;
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
        let mut failure = None;
        if at > 0 && end(&self.pieces[at - 1]) == range.start {
            match merged(kernel, ctx, &self.pieces[at - 1], &piece, sink) {
                Ok(both) => piece = both,
                Err(error) => {
                    self.pieces.truncate(at);
                    return Ok(Some((range.start, error)));
                }
            }
            at -= 1;
            self.pieces.remove(at);
        }
        if self.pieces.get(at).is_some_and(|next| start(next) == range.end) {
            match merged(kernel, ctx, &piece, &self.pieces[at], sink) {
                Ok(both) => {
                    piece = both;
                    self.pieces.remove(at);
                }
                Err(error) => {
                    self.pieces.truncate(at);
                    failure = Some((range.end, error));
                }
            }
        }
        self.pieces.insert(at, piece);
        if self.pieces.len() > MAX_PIECES {
            return Err(RunError::TooManyPieces { max: MAX_PIECES });
        }
        Ok(failure)
    }

    /// The state over all of `ctx.extent`.
    ///
    /// # Errors
    /// The error is [`RunError::Incomplete`] if a record is missing, [`RunError::Overlap`] if two pieces cover the same
    /// records, [`RunError::BadPartial`] if pieces were not merged, and [`RunError::Kernel`] if there is no record and
    /// the kernel cannot begin.
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
}

pub(crate) fn start(piece: &Piece) -> u64 {
    piece.covered.ranges().first().map_or(0, |range| range.start)
}

pub(crate) fn end(piece: &Piece) -> u64 {
    piece.covered.ranges().last().map_or(0, |range| range.end)
}

/// The range of a piece in file order, which has exactly one.
fn single_range(piece: &Piece) -> Result<Range<u64>, RunError> {
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
    before: &Piece,
    after: &Piece,
    sink: &mut dyn Sink,
) -> Result<Piece, RunError> {
    let mut fold = kernel.restore(ctx, &before.state)?;
    fold.merge(&after.state, sink)?;
    let mut covered = before.covered.clone();
    covered.union(&after.covered)?;
    Ok(Piece { covered, state: saved(&*fold) })
}
