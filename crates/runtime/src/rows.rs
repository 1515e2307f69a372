//! Rows in the order of their positions, from lanes that work ahead of each other.
//!
//! Each unit has a channel of its own, bounded; the reader empties them in the order of the units. A lane that
//! is ahead waits when its channel is full, and the lane with the first unit never waits for another, so
//! memory is bounded and nothing stands still.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};

use gristmill_kernel::{Ctx, Kernel, KernelError, MAX_MERGE_ROWS, Position, RowBatch, RowBuffer};

use crate::{ExtentSet, Partial, RunError};

/// Takes the rows of an answer, in ascending order of position, each once.
pub trait RowOutput {
    /// Takes some rows.
    ///
    /// # Errors
    /// It fails if the rows cannot be taken. An error ends the request, which fails with [`RunError::Rows`].
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()>;
}

/// For requests whose rows nobody wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl RowOutput for Discard {
    fn rows(&mut self, _: &RowBatch) -> io::Result<()> {
        Ok(())
    }
}

impl RowOutput for RowBatch {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        batch.iter().for_each(|(at, row)| self.push(at, row));
        Ok(())
    }
}

/// A unit that a lane has begun.
pub(crate) struct Queued {
    /// Its first byte in the file, or its first virtual record: units of a pass are ordered by it.
    pub at: u64,
    /// What its lane says of it.
    pub messages: Receiver<Message>,
}

/// What a lane says of its unit.
pub(crate) enum Message {
    Rows(RowBatch),
    End(UnitEnd),
}

/// The last word on a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitEnd {
    /// What was folded, and the state after it. Nothing for a unit without records.
    pub piece: Option<(Range<u64>, Vec<u8>)>,
    /// The fold needs nothing behind this.
    pub enough: bool,
    /// The unit is not finished: the request is to stop.
    pub cut: bool,
}

/// The sending side of a unit.
pub(crate) struct UnitSender(pub SyncSender<Message>);

impl UnitSender {
    /// False if the reader is gone.
    pub fn rows(&self, batch: RowBatch) -> bool {
        batch.is_empty() || self.0.send(Message::Rows(batch)).is_ok()
    }

    pub fn end(&self, end: UnitEnd) -> bool {
        self.0.send(Message::End(end)).is_ok()
    }
}

/// Hands rows on in order and joins the units' states.
pub(crate) struct Delivery<'a> {
    pub kernel: &'a dyn Kernel,
    pub ctx: &'a Ctx,
    pub output: &'a mut dyn RowOutput,
    pub partial: Partial,
    /// Position of the last row handed on.
    pub delivered: Option<Position>,
}

impl Delivery<'_> {
    /// Empties the units in order, until the last, a cut, or one that says enough.
    pub fn drain(&mut self, units: Receiver<Queued>) -> Result<(), RunError> {
        for unit in units {
            let mut ended = false;
            for message in unit.messages {
                match message {
                    Message::Rows(batch) => self.deliver(batch)?,
                    Message::End(end) => {
                        if let Some((range, state)) = end.piece {
                            self.join(range, state, end.enough)?;
                        }
                        if end.cut || end.enough {
                            return Ok(());
                        }
                        ended = true;
                    }
                }
            }
            if !ended {
                // Its lane failed, and says so itself; what follows would leave a hole.
                return Ok(());
            }
        }
        Ok(())
    }

    pub fn join(&mut self, range: Range<u64>, state: Vec<u8>, enough: bool) -> Result<(), RunError> {
        let mut seam = RowBuffer::new(usize::MAX);
        let enough_at = enough.then_some(range.end);
        let piece = Partial { enough_at, ..Partial::of(self.ctx.round, ExtentSet::of(range), state) };
        self.partial.join(self.kernel, self.ctx, piece, &mut seam)?;
        let seam = seam.take();
        let kernel = self.kernel.spec().name;
        if seam.len() > MAX_MERGE_ROWS {
            let why = format!("a merge emitted {} rows; at most {MAX_MERGE_ROWS} are allowed", seam.len());
            return Err(KernelError::Contract { kernel, why }.into());
        }
        if seam.positions().first().zip(self.delivered).is_some_and(|(at, last)| *at <= last) {
            let why = "a merge emitted a row that belongs before rows already delivered".into();
            return Err(KernelError::Contract { kernel, why }.into());
        }
        self.deliver(seam)
    }

    /// Hands a batch on; rows that were handed on before are left out, since folds may emit a row twice.
    pub fn deliver(&mut self, batch: RowBatch) -> Result<(), RunError> {
        let Some(last) = batch.positions().last().copied() else { return Ok(()) };
        if !batch.positions().is_sorted_by(|a, b| a < b) {
            let kernel = self.kernel.spec().name;
            let why = "emitted rows that are not in ascending order of position".into();
            return Err(KernelError::Contract { kernel, why }.into());
        }
        let fresh = |at: &Position| self.delivered.is_none_or(|delivered| *at > delivered);
        if batch.positions().first().is_some_and(fresh) {
            self.output.rows(&batch).map_err(RunError::Rows)?;
            self.delivered = Some(last);
            return Ok(());
        }
        let mut rest = RowBatch::default();
        for (at, row) in batch.iter() {
            if self.delivered.is_none_or(|delivered| at > delivered) {
                rest.push(at, row);
                self.delivered = Some(at);
            }
        }
        if rest.is_empty() { Ok(()) } else { self.output.rows(&rest).map_err(RunError::Rows) }
    }
}
