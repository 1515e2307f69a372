//! Options of a request, and the control that stops it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gristmill_kernel::{Block, DEFAULT_MAX_RECORD, Spec};

use crate::reader::Flow;
use crate::{RunError, whole_cores};

/// Most lanes of one request.
pub const MAX_LANES: usize = 1024;

/// Largest block, and with it the largest record with its halo.
pub const MAX_BLOCK_BYTES: u64 = 16 << 20;

/// Most batches of rows that wait in a unit.
const MAX_BATCHES_AHEAD: usize = 64;

/// Most passes of one request.
pub const MAX_ROUNDS: u32 = 100_000;

/// Tuning of a request. No option changes an answer of class exact or fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that fold, 1 to [`MAX_LANES`].
    pub lanes: usize,
    /// Bytes that are read and folded at once. A longer record is read whole.
    pub block_bytes: usize,
    /// Bytes of a target that a lane takes at a time.
    pub unit_bytes: u64,
    /// Bytes of rows that a lane gathers before it sends them.
    pub row_bytes: usize,
    /// Approximate bytes of rows that all lanes together may be ahead of the reader; at least one batch for each unit. It limits
    /// how far a kernel that gives as many bytes as it takes folds in parallel.
    pub rows_ahead: usize,
    /// Longest line, in bytes.
    pub max_record: u64,
    /// Whether statistics of chunks are used and made, if there is a store for them.
    pub statistics: bool,
}

impl Default for Options {
    /// The default has as many lanes as there are cores, and blocks of 256 KiB, which stay in the second-level cache.
    fn default() -> Options {
        Options {
            lanes: whole_cores().min(MAX_LANES),
            block_bytes: 256 << 10,
            unit_bytes: 4 << 20,
            row_bytes: 256 << 10,
            rows_ahead: 32 << 20,
            max_record: DEFAULT_MAX_RECORD,
            statistics: true,
        }
    }
}

impl Options {
    /// Batches of rows that may wait in one unit. As many units may wait as there are lanes, besides the units that lanes
    /// fold.
    pub(crate) fn batches_ahead(&self) -> usize {
        (self.rows_ahead / (2 * self.lanes * self.row_bytes.max(1))).clamp(1, MAX_BATCHES_AHEAD)
    }

    pub(crate) fn check(&self) -> Result<(), RunError> {
        if !(1..=MAX_LANES).contains(&self.lanes) {
            return Err(RunError::Lanes { lanes: self.lanes, max: MAX_LANES });
        }
        Ok(())
    }
}

/// Slows lanes down and grants them memory, so that other work has its share of a machine.
pub trait Pace: Send + Sync {
    /// Begins a lane on the calling thread. Returns when the lane may begin, or soon after `stopped` returns true. If it
    /// returns true, the lane must call [`lower`](Pace::lower) first.
    fn begins(&self, _stopped: &dyn Fn() -> bool) -> bool {
        false
    }

    /// Most positions (records, or bytes of lines) that a lane should fold before it calls again, at least 1.
    fn piece(&self) -> u64 {
        u64::MAX
    }

    /// Counts positions that a lane has folded. Returns when the lane may go on, or soon after `stopped` returns true. If it
    /// returns true, the lane must call [`lower`](Pace::lower) first.
    fn folded(&self, positions: u64, stopped: &dyn Fn() -> bool) -> bool;

    /// Lowers the priority of the calling thread, which may be unable to raise it again. Returns when the lane may go on, or
    /// soon after `stopped` returns true.
    fn lower(&self, _stopped: &dyn Fn() -> bool) {}

    /// Whether a lane of a new thread should go on in place of the lane of the calling thread, because the new thread would
    /// have a higher priority.
    fn may_rise(&self) -> bool {
        false
    }

    /// Ends the lane on the calling thread.
    fn ends(&self) {}

    /// Reserves memory for a lane that begins, until the lane drops the guard. If `waits` is set, waits for the memory, and
    /// gives up soon after `stopped` returns true. `None`: the lane should not begin.
    fn memory(&self, _bytes: u64, _waits: bool, _stopped: &dyn Fn() -> bool) -> Option<MemoryGuard> {
        Some(Box::new(()))
    }
}

/// Memory that is released when the guard is dropped.
pub type MemoryGuard = Box<dyn Any + Send>;

/// A running lane. It ends when the guard is dropped, on the thread on which the lane began.
pub(crate) struct LaneGuard<'a>(Option<&'a dyn Pace>);

impl Drop for LaneGuard<'_> {
    fn drop(&mut self) {
        if let Some(pace) = self.0 {
            pace.ends();
        }
    }
}

/// Asks a running request to stop at the next block, and shows its progress.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    /// Positions in a pass after which the request stops; `None` for never.
    budget: Option<u64>,
    done: AtomicU64,
    total: AtomicU64,
    /// Positions folded in all passes.
    all: AtomicU64,
    /// Positions among these that were settled by statistics, without reading.
    settled: AtomicU64,
    /// The control of the whole request, if this is the control of a part.
    parent: Option<Arc<Control>>,
    pace: Option<Arc<dyn Pace>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = self.progress();
        write!(f, "Control({done} of {total}{})", if self.stopped() { ", to stop" } else { "" })
    }
}

impl Control {
    /// The control of a request that runs to its end unless [`stop`](Control::stop) is called.
    pub fn new() -> Control {
        Control::default()
    }

    /// The control of a request that stops by itself once about this number of positions was folded in a pass.
    pub fn stop_after(positions: u64) -> Control {
        Control { budget: Some(positions), ..Control::default() }
    }

    /// The control of a part of a request. The part stops when the request stops, and may be stopped alone. Its positions count
    /// for both.
    pub fn part_of(parent: Arc<Control>) -> Control {
        Control { parent: Some(parent), ..Control::default() }
    }

    /// Sets the pace of the lanes.
    pub fn with_pace(self, pace: Arc<dyn Pace>) -> Control {
        Control { pace: Some(pace), ..self }
    }

    /// Begins a lane on the calling thread. It lasts until the guard is dropped there. Waits no longer once `stopped` returns
    /// true. Returns also whether the lane must call [`lower`](Control::lower) first.
    pub(crate) fn begin_lane(&self, stopped: &dyn Fn() -> bool) -> (LaneGuard<'_>, bool) {
        let lowers = self.pace.as_ref().is_some_and(|pace| pace.begins(stopped));
        (LaneGuard(self.pace.as_deref()), lowers)
    }

    /// See [`Pace::lower`].
    pub(crate) fn lower(&self) {
        if let Some(pace) = &self.pace {
            pace.lower(&|| self.stopped());
        }
    }

    /// See [`Pace::may_rise`].
    pub(crate) fn may_rise(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.may_rise())
    }

    /// Reserves memory for the calling lane until the guard is dropped; see [`Pace::memory`].
    pub(crate) fn memory(&self, bytes: u64, waits: bool, stopped: &dyn Fn() -> bool) -> Option<MemoryGuard> {
        let Some(pace) = self.pace.as_ref().filter(|_| bytes > 0) else { return Some(Box::new(())) };
        pace.memory(bytes, waits, stopped)
    }

    /// Asks for a stop. The request ends with a checkpoint.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Positions that were folded in this pass, and all positions of the pass; for display.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Positions that were folded in all passes, without those that were folded before this control began.
    pub fn total_folded(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Positions among these that were settled by statistics, without reading.
    pub fn total_settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Counts folded positions that were settled without reading.
    pub(crate) fn settled(&self, positions: u64) {
        self.settled.fetch_add(positions, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.settled(positions);
        }
    }

    /// Sets the progress of a pass: when it begins, and when other members count it.
    pub fn begin_pass(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.begin_pass(done, total);
        }
    }

    /// Gives a block to `each` in pieces of the size that the pace gives. Ends with the block, or when `each` returns
    /// [`Flow::Stop`].
    pub(crate) fn in_pieces(
        &self,
        spec: &Spec,
        block: &Block<'_>,
        each: &mut dyn FnMut(&Block<'_>) -> Result<Flow, RunError>,
    ) -> Result<Flow, RunError> {
        let Some(pace) = &self.pace else { return each(block) };
        let mut from: u64 = 0;
        loop {
            let to = from.saturating_add(pace.piece().max(1)).min(block.count());
            if from == 0 && to == block.count() {
                return each(block);
            }
            if each(&block.part(spec, from, to))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if to == block.count() {
                return Ok(Flow::Go);
            }
            from = to;
        }
    }

    /// Counts folded positions, and stops the request if its budget is used.
    pub fn folded(&self, positions: u64) {
        if self.count(positions) {
            self.lower();
        }
    }

    /// Does the same for a lane. Returns whether the lane must call [`lower`](Control::lower) next.
    pub(crate) fn count(&self, positions: u64) -> bool {
        let done = self.done.fetch_add(positions, Ordering::Relaxed).saturating_add(positions);
        self.all.fetch_add(positions, Ordering::Relaxed);
        if self.budget.is_some_and(|budget| done >= budget) {
            self.stop();
        }
        if let Some(parent) = &self.parent {
            parent.folded(positions);
        }
        self.pace.as_ref().is_some_and(|pace| pace.folded(positions, &|| self.stopped()))
    }

    /// Whether a stop was asked for.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.parent.as_ref().is_some_and(|parent| parent.stopped())
    }
}
