//! How a request runs, and telling it to stop.

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

/// Tuning of a request. None of it changes an answer of class exact or fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that fold, 1 to [`MAX_LANES`].
    pub lanes: usize,
    /// Bytes read and folded at once; a longer record is read whole.
    pub block_bytes: usize,
    /// Bytes of a target that a lane takes at a time.
    pub unit_bytes: u64,
    /// Bytes of rows that a lane gathers before it hands them over.
    pub row_bytes: usize,
    /// Bytes of rows, about, that all lanes together may be ahead of the reader; at least one batch a unit. A kernel that
    /// gives as much as it takes folds in parallel only as far as this reaches.
    pub rows_ahead: usize,
    /// Longest line, in bytes.
    pub max_record: u64,
    /// Whether statistics of chunks are used and made, where somebody keeps them.
    pub statistics: bool,
}

impl Default for Options {
    /// As many lanes as there are cores; 256 KiB blocks, which stay in the second-level cache.
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
    /// Batches of rows that may wait in one unit. Units may be as many ahead as there are lanes, beside those that lanes
    /// are at.
    pub(crate) fn batches_ahead(&self) -> usize {
        (self.rows_ahead / (2 * self.lanes * self.row_bytes.max(1))).clamp(1, MAX_BATCHES_AHEAD)
    }

    pub(crate) fn check(&self) -> Result<(), RunError> {
        if !(1..=MAX_LANES).contains(&self.lanes) {
            return Err(RunError::Lanes { given: self.lanes, max: MAX_LANES });
        }
        Ok(())
    }
}

/// Slows lanes down, and lets them have memory, so that other work has its share of a machine.
pub trait Pace: Send + Sync {
    /// A lane begins, on the calling thread. Returns when it may, or soon after `stopped` says so.
    fn begins(&self, _stopped: &dyn Fn() -> bool) {}

    /// Most positions (records, or bytes of lines) that a lane had better fold before it comes back, at least 1.
    fn piece(&self) -> u64 {
        u64::MAX
    }

    /// A lane has folded so many positions. Returns when it may go on, or soon after `stopped` says so.
    fn folded(&self, positions: u64, stopped: &dyn Fn() -> bool);

    /// The lane on the calling thread is over.
    fn ends(&self) {}

    /// A lane that begins needs so many bytes of memory until it drops what is given. Waits for them if it `waits`, and gives
    /// up soon after `stopped` says so. `None`: the lane had better not begin.
    fn memory(&self, _bytes: u64, _waits: bool, _stopped: &dyn Fn() -> bool) -> Option<Held> {
        Some(Box::new(()))
    }
}

/// Memory that is given back when this is dropped.
pub type Held = Box<dyn Any + Send>;

/// A lane, until it is dropped on the thread that it began on.
pub(crate) struct Lane<'a>(Option<&'a dyn Pace>);

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if let Some(pace) = self.0 {
            pace.ends();
        }
    }
}

/// Asks a running request to stop at the next block, and shows how far it is.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    /// Stop once so many positions were folded; `u64::MAX` for never.
    budget: Option<u64>,
    done: AtomicU64,
    total: AtomicU64,
    /// Positions folded in all passes.
    all: AtomicU64,
    /// Those of them that were settled without being read.
    settled: AtomicU64,
    /// Of the request that this is a part of.
    whole: Option<Arc<Control>>,
    pace: Option<Arc<dyn Pace>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = self.progress();
        write!(f, "Control({done} of {total}{})", if self.stopped() { ", to stop" } else { "" })
    }
}

impl Control {
    /// A request that runs to its end unless [`stop`](Control::stop) is called.
    pub fn new() -> Control {
        Control::default()
    }

    /// A request that stops by itself once about so many positions were folded in all.
    pub fn stop_after(positions: u64) -> Control {
        Control { budget: Some(positions), ..Control::default() }
    }

    /// A part of a request: it stops when that does, and may be stopped alone; what it folds counts for both.
    pub fn under(whole: Arc<Control>) -> Control {
        Control { whole: Some(whole), ..Control::default() }
    }

    /// The same, where lanes go at a pace.
    pub fn paced(self, pace: Arc<dyn Pace>) -> Control {
        Control { pace: Some(pace), ..self }
    }

    /// A lane begins, on the calling thread, and lasts until what is given is dropped there.
    pub(crate) fn lane_begins(&self) -> Lane<'_> {
        if let Some(pace) = &self.pace {
            pace.begins(&|| self.stopped());
        }
        Lane(self.pace.as_deref())
    }

    /// So many bytes of memory for the calling lane, until what is given is dropped; see [`Pace::memory`].
    pub(crate) fn memory(&self, bytes: u64, waits: bool, stopped: &dyn Fn() -> bool) -> Option<Held> {
        let Some(pace) = self.pace.as_ref().filter(|_| bytes > 0) else { return Some(Box::new(())) };
        pace.memory(bytes, waits, stopped)
    }

    /// Asks for a stop. The request ends with a checkpoint.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Positions folded so far in this pass, and all of them; for display.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Positions folded so far in all passes, without those that were folded before this began.
    pub fn in_all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Those of them that were settled without being read.
    pub fn settled_in_all(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Counts positions, among those that are folded, that were not read.
    pub(crate) fn settled(&self, positions: u64) {
        self.settled.fetch_add(positions, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.settled(positions);
        }
    }

    /// Says how far a pass is: where it begins, and where somebody else counts.
    pub fn begin_pass(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.begin_pass(done, total);
        }
    }

    /// Hands a block on in pieces that are as large as the pace says, until there are no more or `each` says stop.
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

    /// Counts positions and says whether to stop.
    pub fn folded(&self, positions: u64) {
        let done = self.done.fetch_add(positions, Ordering::Relaxed).saturating_add(positions);
        self.all.fetch_add(positions, Ordering::Relaxed);
        if self.budget.is_some_and(|budget| done >= budget) {
            self.stop();
        }
        if let Some(whole) = &self.whole {
            whole.folded(positions);
        }
        if let Some(pace) = &self.pace {
            pace.folded(positions, &|| self.stopped());
        }
    }

    /// Whether a stop was asked for.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.whole.as_ref().is_some_and(|whole| whole.stopped())
    }
}
