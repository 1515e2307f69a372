//! One pass over the records of a request: lanes take units, fold their blocks, and their states are joined.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_kernel::{Block, Ctx, Emptied, Fold, Kernel, NoRows, Output, Position, RowBuffer, feed, saved};

use crate::fetch::Tally;
use crate::job::Prepared;
use crate::reader::{Flow, Reader};
use crate::rope::{collapses, end};
use crate::rows::{BATCHES_AHEAD, Delivery, Message, RowOutput, UNITS_AHEAD, UnitEnd, UnitSender};
use crate::units::{Cut, Unit, units};
use crate::{Control, ExtentSet, Partial, RunError};

/// What a pass came to.
pub(crate) struct PassEnd {
    pub partial: Partial,
    pub delivered: Option<Position>,
    pub tally: Tally,
}

/// What was covered, and the state after it.
type Interrupted = (Range<u64>, Vec<u8>);

type Units<'a> = Box<dyn Iterator<Item = Unit> + Send + 'a>;

struct Pass<'a> {
    job: &'a Prepared,
    ctx: &'a Ctx,
    control: &'a Control,
    units: Mutex<Units<'a>>,
    /// States of an interrupted pass by the position at which they go on.
    resumed: Mutex<BTreeMap<u64, Interrupted>>,
    partial: Mutex<Partial>,
    /// Nothing is needed from this position on.
    enough: AtomicU64,
}

/// A lock whose holder panicked is taken all the same: the panic itself is reported when its lane is joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folds what `partial` does not cover yet.
pub(crate) fn run_pass(
    job: &Prepared,
    ctx: &Ctx,
    mut partial: Partial,
    delivered: Option<Position>,
    output: &mut dyn RowOutput,
    control: &Control,
) -> Result<PassEnd, RunError> {
    let covered = partial.covered()?;
    let gaps = covered.gaps(ctx.extent.clone());
    control.begin_pass(covered.count(), ctx.extent.end - ctx.extent.start);
    let rows = job.spec.output != Output::Value;
    let cut = if rows { Cut::ByExtent } else { Cut::ByTarget };
    let mut resumed = BTreeMap::new();
    if !collapses(&*job.kernel) {
        // A state that ends where a gap begins goes on there: it may be in the middle of something.
        let (go_on, rest) = partial.pieces.into_iter().partition(|piece| {
            piece.covered.ranges().len() == 1 && gaps.iter().any(|gap| gap.start == end(piece))
        });
        partial.pieces = rest;
        let go_on: Vec<crate::Piece> = go_on;
        for piece in go_on {
            let range = piece.covered.ranges()[0].clone();
            resumed.insert(range.end, (range, piece.state));
        }
    }
    let pass = Pass {
        job,
        ctx,
        control,
        units: Mutex::new(units(&job.file, &job.domain, job.ownership, gaps, cut, job.options.unit_bytes)),
        resumed: Mutex::new(resumed),
        partial: Mutex::new(partial),
        enough: AtomicU64::new(u64::MAX),
    };
    let (tally, delivered) = if rows { pass.rows(delivered, output)? } else { (pass.values()?, delivered) };
    let mut partial = pass.partial.into_inner().unwrap_or_else(PoisonError::into_inner);
    let resumed = pass.resumed.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (range, state) in resumed.into_values() {
        let piece = Partial::of(ctx.round, ExtentSet::of(range), state);
        partial.join(&*job.kernel, ctx, piece, &mut NoRows)?;
    }
    Ok(PassEnd { partial, delivered, tally })
}

impl Pass<'_> {
    /// Starts the lanes, does `meanwhile` on this thread, and adds up what the lanes read.
    fn lanes<R>(
        &self,
        lane: impl Fn() -> Result<Tally, RunError> + Sync,
        meanwhile: impl FnOnce() -> R,
    ) -> Result<(Tally, R), RunError> {
        let lane = &|| {
            let result = lane();
            if result.is_err() {
                // The others need not go on.
                self.enough.store(0, Ordering::Relaxed);
            }
            result
        };
        std::thread::scope(|scope| {
            let mut handles = Vec::new();
            for number in 0..self.job.options.lanes {
                let thread = std::thread::Builder::new().name(format!("lane {number}"));
                match thread.spawn_scoped(scope, lane) {
                    Ok(handle) => handles.push(handle),
                    // Fewer lanes give the same answer.
                    Err(_) if !handles.is_empty() => break,
                    Err(error) => return Err(RunError::Lane(error)),
                }
            }
            let result = meanwhile();
            let mut tally = Tally::new(self.job.file.parts.len());
            let mut error = None;
            for handle in handles {
                match handle.join() {
                    Ok(Ok(part)) => tally.add(&part),
                    Ok(Err(e)) => error = error.or(Some(e)),
                    Err(_) => error = Some(RunError::Panicked),
                }
            }
            match error {
                Some(error) => Err(error),
                None => Ok((tally, result)),
            }
        })
    }

    fn values(&self) -> Result<Tally, RunError> {
        Ok(self.lanes(|| ValueLane { pass: self, fold: None }.run(), || ())?.0)
    }

    fn rows(
        &self,
        delivered: Option<Position>,
        output: &mut dyn RowOutput,
    ) -> Result<(Tally, Option<Position>), RunError> {
        let (queue, units) = sync_channel::<Receiver<Message>>(UNITS_AHEAD);
        let queue = Mutex::new(Some(queue));
        let mut delivery = Delivery {
            kernel: &*self.job.kernel,
            ctx: self.ctx,
            output,
            partial: std::mem::take(&mut *lock(&self.partial)),
            delivered,
        };
        delivery.partial.round = self.ctx.round;
        let result = self.lanes(|| RowLane { pass: self, queue: &queue }.run(), || delivery.drain(units));
        *lock(&self.partial) = delivery.partial;
        let (tally, drained) = result?;
        drained?;
        Ok((tally, delivery.delivered))
    }

    /// The next unit that is still needed.
    fn claim(&self, units: &mut Units<'_>) -> Option<Unit> {
        if self.control.stopped() {
            return None;
        }
        let enough = self.enough.load(Ordering::Relaxed);
        let unit = units.next()?;
        let needed = match (&self.job.domain.records, enough) {
            (_, u64::MAX) => true,
            (Some(records), enough) => unit.window.start < records.bytes(enough..enough).start,
            (None, enough) => unit.window.start < enough,
        };
        // Windows come in ascending order, so all that follow are not needed either.
        needed.then_some(unit)
    }

    /// A fold that goes on at `at`: an interrupted one, or a new one; and where its extent begins.
    fn begin(&self, at: u64) -> Result<(Box<dyn Fold>, u64), RunError> {
        if let Some((range, state)) = lock(&self.resumed).remove(&at) {
            return Ok((self.job.kernel.restore(self.ctx, &state)?, range.start));
        }
        Ok((self.job.kernel.begin(self.ctx)?, at))
    }

    /// What of a block may be folded now: nothing behind `enough`, and after a stop nothing but the rest of an
    /// atom that must not be split.
    fn allowed<'b>(&self, block: &Block<'b>) -> Option<Block<'b>> {
        let spec = &self.job.spec;
        if block.first() >= self.enough.load(Ordering::Relaxed) {
            return None;
        }
        if !self.control.stopped() {
            return Some(*block);
        }
        let boundary = block.first().div_ceil(spec.grain.max(1)) * spec.grain.max(1);
        if boundary == block.first() { None } else { Some(block.part(spec, 0, boundary - block.first())) }
    }
}

/// A lane of a kernel that gives a value.
struct ValueLane<'a, 'p> {
    pass: &'p Pass<'a>,
    fold: Option<Running>,
}

struct Running {
    fold: Box<dyn Fold>,
    covered: ExtentSet,
    end: u64,
}

impl ValueLane<'_, '_> {
    fn run(mut self) -> Result<Tally, RunError> {
        let pass = self.pass;
        let mut reader = Reader::new(pass.job);
        loop {
            let unit = pass.claim(&mut lock(&pass.units));
            let Some(unit) = unit else { break };
            reader.unit(&unit, &mut |block| self.block(block))?;
        }
        self.flush(None)?;
        Ok(reader.tally)
    }

    fn block(&mut self, block: &Block<'_>) -> Result<Flow, RunError> {
        let pass = self.pass;
        let Some(part) = pass.allowed(block) else { return Ok(Flow::Stop) };
        let collapses = pass.job.collapses;
        if self.fold.as_ref().is_some_and(|running| !collapses && running.end != part.first()) {
            self.flush(None)?;
        }
        let running = match &mut self.fold {
            Some(running) => running,
            none => {
                let (fold, start) = pass.begin(part.first())?;
                none.insert(Running { fold, covered: ExtentSet::of(start..part.first()), end: part.first() })
            }
        };
        let nothing = |_: &mut NoRows| Ok(Emptied::Nothing);
        let (took, enough) = feed(&pass.job.spec, &mut *running.fold, &part, &mut NoRows, nothing)?;
        running.covered.add(part.first()..part.first() + took)?;
        running.end = part.first() + took;
        pass.control.folded(took);
        if enough {
            // With an order, nothing behind this place is needed; without one, nothing at all.
            let at = if collapses { 0 } else { running.end };
            pass.enough.fetch_min(at, Ordering::Relaxed);
            self.flush(Some(at))?;
            return Ok(Flow::Stop);
        }
        Ok(if took == block.count() { Flow::Go } else { Flow::Stop })
    }

    fn flush(&mut self, enough_at: Option<u64>) -> Result<(), RunError> {
        let Some(running) = self.fold.take() else { return Ok(()) };
        let pass = self.pass;
        let piece = Partial::of(pass.ctx.round, running.covered, saved(&*running.fold));
        let piece = Partial { enough_at, ..piece };
        lock(&pass.partial).join(&*pass.job.kernel, pass.ctx, piece, &mut NoRows)
    }
}

type Queue = Mutex<Option<SyncSender<Receiver<Message>>>>;

/// Ends the queue when a lane ends, also by a panic: either there are no more units, or none are wanted.
struct Closing<'q>(&'q Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock(self.0).take();
    }
}

/// A lane of a kernel that gives rows or bytes.
struct RowLane<'a, 'p> {
    pass: &'p Pass<'a>,
    queue: &'p Queue,
}

impl RowLane<'_, '_> {
    fn run(self) -> Result<Tally, RunError> {
        let mut reader = Reader::new(self.pass.job);
        let _closing = Closing(self.queue);
        self.units(&mut reader)?;
        Ok(reader.tally)
    }

    fn units(&self, reader: &mut Reader<'_>) -> Result<(), RunError> {
        loop {
            // Claiming and queueing are one step, so that units are queued in their order.
            let (unit, sender) = {
                let queue = lock(self.queue);
                let Some(queue) = queue.as_ref() else { return Ok(()) };
                let Some(unit) = self.pass.claim(&mut lock(&self.pass.units)) else { return Ok(()) };
                let (sender, receiver) = sync_channel(BATCHES_AHEAD);
                if queue.send(receiver).is_err() {
                    return Ok(());
                }
                (unit, UnitSender(sender))
            };
            if !self.unit(reader, &unit, &sender)? {
                return Ok(());
            }
        }
    }

    /// False if the reader wants no more.
    fn unit(&self, reader: &mut Reader<'_>, unit: &Unit, sender: &UnitSender) -> Result<bool, RunError> {
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
                let emptied = if batch.is_empty() { Emptied::Nothing } else { Emptied::Rows };
                gone |= !sender.rows(batch);
                // A stop is heard between records, and so also by a generator with much to say.
                let stop = gone || pass.control.stopped() && pass.job.spec.grain <= 1;
                Ok(if stop { Emptied::Stop } else { emptied })
            };
            let took;
            (took, enough) = feed(&pass.job.spec, &mut **fold, &part, &mut rows, send)?;
            range.end = part.first() + took;
            pass.control.folded(took);
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
