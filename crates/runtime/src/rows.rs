//! Puts the rows of lanes that work ahead of each other in the order of their positions.
//!
//! Each unit has a bounded channel of its own. The receiver empties the channels in the order of the units. A lane
//! that is ahead waits when its channel is full, so memory is bounded. The lane with the first unit never waits for
//! another lane, so the lanes cannot block each other for ever.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};

use gristmill_kernel::{Ctx, Kernel, KernelError, MAX_MERGE_ROWS, Position, RowBatch, RowBuffer};

use crate::{ExtentSet, Partial, RunError};

/// Takes the rows of an answer, in ascending order of position. Each row comes once.
pub trait RowOutput {
    /// Takes a batch of rows.
    ///
    /// # Errors
    /// It fails if the rows cannot be taken. An error ends the request, which fails with [`RunError::Rows`].
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()>;
}

/// An output that discards all rows.
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
pub(crate) struct QueuedUnit {
    /// Its first byte in the file, or its first virtual record. Units of a pass are ordered by it.
    pub at: u64,
    /// The messages of its lane.
    pub messages: Receiver<UnitMessage>,
}

/// A message of a lane about its unit.
pub(crate) enum UnitMessage {
    Rows(RowBatch),
    End(UnitEnd),
}

/// The end of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitEnd {
    /// The records that were folded, and the state after them; `None` for a unit without records.
    pub piece: Option<(Range<u64>, Vec<u8>)>,
    /// Whether the fold needs no records behind these.
    pub enough: bool,
    /// Whether the unit is not finished because the request stops.
    pub cut: bool,
}

/// The sending side of a unit.
pub(crate) struct UnitSender(pub SyncSender<UnitMessage>);

impl UnitSender {
    /// Sends rows. Returns false if the receiver is gone.
    pub fn rows(&self, batch: RowBatch) -> bool {
        batch.is_empty() || self.0.send(UnitMessage::Rows(batch)).is_ok()
    }

    /// Sends the end of the unit. Returns false if the receiver is gone.
    pub fn end(&self, end: UnitEnd) -> bool {
        self.0.send(UnitMessage::End(end)).is_ok()
    }
}

/// Delivers rows in order and joins the states of the units.
pub(crate) struct Delivery<'a> {
    pub kernel: &'a dyn Kernel,
    pub ctx: &'a Ctx,
    pub output: &'a mut dyn RowOutput,
    pub partial: Partial,
    /// Position of the last row that was delivered.
    pub delivered: Option<Position>,
}

impl Delivery<'_> {
    /// Empties the channels of the units in order, until the last unit, or a unit that is cut or has enough.
    pub fn drain(&mut self, units: Receiver<QueuedUnit>) -> Result<(), RunError> {
        for unit in units {
            let mut ended = false;
            for message in unit.messages {
                match message {
                    UnitMessage::Rows(batch) => self.deliver(batch)?,
                    UnitMessage::End(end) => {
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
                // The lane failed and reports that itself. Later units would leave a gap.
                return Ok(());
            }
        }
        Ok(())
    }

    pub fn join(&mut self, range: Range<u64>, state: Vec<u8>, enough: bool) -> Result<(), RunError> {
        let mut seam = RowBuffer::new(usize::MAX);
        let enough_at = enough.then_some(range.end);
        let piece =
            Partial { enough_at, ..Partial::new(self.ctx.round, ExtentSet::from_range(range), state) };
        self.partial.join(self.kernel, self.ctx, piece, &mut seam)?;
        let seam = seam.take();
        let kernel = self.kernel.spec().name;
        if seam.len() > MAX_MERGE_ROWS {
            let why = format!("a merge emitted {} rows; at most {MAX_MERGE_ROWS} are allowed", seam.len());
            return Err(KernelError::Contract { kernel, why }.into());
        }
        if seam.first().zip(self.delivered).is_some_and(|(at, last)| at <= last) {
            let why = "a merge emitted a row that belongs before rows already delivered".into();
            return Err(KernelError::Contract { kernel, why }.into());
        }
        self.deliver(seam)
    }

    /// Delivers a batch without the rows that were delivered before, because folds may emit a row twice.
    pub fn deliver(&mut self, batch: RowBatch) -> Result<(), RunError> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        if !batch.ascends() {
            let kernel = self.kernel.spec().name;
            let why = "it emitted rows that are not in ascending order of position".into();
            return Err(KernelError::Contract { kernel, why }.into());
        }
        if self.delivered.is_none_or(|delivered| first > delivered) {
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
