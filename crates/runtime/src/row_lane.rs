//! A lane whose folds give rows or bytes. Each unit has a channel. The channels are queued in the order of the units.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};

use gristmill_kernel::{DrainOutcome, Fold, RowBuffer, feed, saved};

use crate::RunError;
use crate::fetch::Tally;
use crate::lane_threads::{Lane, LaneThread};
use crate::pass::{Pass, lock};
use crate::reader::{Flow, Reader};
use crate::rows::{QueuedUnit, UnitEnd, UnitSender};
use crate::units::Unit;

/// The queue of the units that lanes have begun; `None` once no more units will come.
pub(crate) type Queue = Mutex<Option<SyncSender<QueuedUnit>>>;

/// Ends the queue when a lane is dropped, also by a panic. Then there are no more units, or no more are needed.
struct QueueCloser<'q>(&'q Queue);

impl Drop for QueueCloser<'_> {
    fn drop(&mut self) {
        lock(self.0).take();
    }
}

/// A lane of a kernel that gives rows or bytes.
pub(crate) struct RowLane<'a, 'p> {
    pass: &'p Pass<'a>,
    queue: QueueCloser<'p>,
}

impl<'a, 'p> RowLane<'a, 'p> {
    pub fn new(pass: &'p Pass<'a>, queue: &'p Queue) -> Self {
        RowLane { pass, queue: QueueCloser(queue) }
    }

    /// Folds units. Returns true if another thread should go on.
    fn units(&self, reader: &mut Reader<'_>, thread: &LaneThread<'_, '_>) -> bool {
        loop {
            // Claiming and queueing are one step, so that units are queued in their order.
            let (unit, sender) = {
                let queue = lock(self.queue.0);
                let Some(queue) = queue.as_ref() else { return false };
                let Some(unit) = self.pass.claim(&mut lock(&self.pass.units)) else { return false };
                let (sender, receiver) = sync_channel(self.pass.job.options.batches_ahead());
                if queue.send(QueuedUnit { at: unit.window.start, messages: receiver }).is_err() {
                    return false;
                }
                (unit, UnitSender(sender))
            };
            reader.at = self.pass.position(&unit);
            match self.unit(reader, &unit, &sender, thread) {
                Ok(true) if thread.ends_here() => return true,
                Ok(true) => {}
                Ok(false) => return false,
                // The unit has no end, so the receiver goes no further than this unit.
                Err(error) => {
                    self.pass.fail(reader.at, error);
                    return false;
                }
            }
        }
    }

    /// Folds a unit. Returns false if the receiver needs no more.
    fn unit(
        &self,
        reader: &mut Reader<'_>,
        unit: &Unit,
        sender: &UnitSender,
        thread: &LaneThread<'_, '_>,
    ) -> Result<bool, RunError> {
        let pass = self.pass;
        let mut rows = RowBuffer::new(pass.job.options.row_bytes);
        let mut running: Option<(Box<dyn Fold>, Range<u64>)> = None;
        let (mut enough, mut cut, mut gone) = (false, false, false);
        reader.unit(unit, &mut |block| {
            let Some(part) = pass.allowed(block) else {
                cut = true;
                return Ok(Flow::Stop);
            };
            let (fold, range) = match &mut running {
                Some(running) => running,
                none => {
                    let (fold, start) = pass.begin(part.first())?;
                    none.insert((fold, start..part.first()))
                }
            };
            let send = |rows: &mut RowBuffer| {
                let batch = rows.take();
                let emptied = if batch.is_empty() { DrainOutcome::Nothing } else { DrainOutcome::Rows };
                gone |= !sender.rows(batch);
                // The lane also stops between records of one block, because a kernel may give many rows for a block.
                let stop = gone || pass.stopping() && pass.job.spec.grain <= 1;
                Ok(if stop { DrainOutcome::Stop } else { emptied })
            };
            let took;
            (took, enough) = feed(&pass.job.spec, &mut **fold, &part, &mut rows, send)?;
            range.end = part.first() + took;
            thread.folded(took);
            cut = !enough && took < block.count();
            Ok(if enough || cut { Flow::Stop } else { Flow::Go })
        })?;
        if gone || !sender.rows(rows.take()) {
            return Ok(false);
        }
        if enough {
            let at = running.as_ref().map_or(0, |(_, range)| range.end);
            pass.enough.fetch_min(at, Ordering::Relaxed);
        }
        let piece = running.map(|(fold, range)| (range, saved(&*fold)));
        Ok(sender.end(UnitEnd { piece, enough, cut }))
    }
}

impl Lane for RowLane<'_, '_> {
    fn run(self, thread: &LaneThread<'_, '_>) -> (Tally, Option<Self>) {
        let mut reader = Reader::new(self.pass.job);
        let goes_on = self.units(&mut reader, thread);
        (reader.tally, goes_on.then_some(self))
    }
}
