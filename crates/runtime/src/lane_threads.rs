//! The threads of the lanes of a pass.
//!
//! A storage node lowers the priority of a lane that has used its time at normal priority ([`Pace`](crate::Pace)). A thread
//! cannot raise its own priority, nor can threads that it starts. So before that, the lane starts a *successor*: a
//! thread of normal priority that waits. At the end of a unit, the successor goes on with the lane if its pace allows that.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use crate::fetch::Tally;
use crate::options::MemoryGuard;
use crate::pass::{Pass, lock};
use crate::{RunError, chunk_reader, thread_time};

/// A lane, which may go on in another thread between two units.
pub(crate) trait Lane: Send + Sized {
    /// Folds units until no more are needed, or until [`LaneThread::ends_here`] returns true after a unit. Returns the cost,
    /// and the lane if another thread should go on with it.
    fn run(self, thread: &LaneThread<'_, '_>) -> (Tally, Option<Self>);
}

/// The thread of a lane.
pub(crate) struct LaneThread<'l, 'a> {
    pass: &'l Pass<'a>,
    /// Starts a successor, unless there is one.
    start_successor: &'l dyn Fn(),
    has_successor: &'l dyn Fn() -> bool,
}

impl LaneThread<'_, '_> {
    /// Counts folded positions. Returns when the lane may go on.
    pub fn folded(&self, positions: u64) {
        if self.pass.control.count(positions) {
            self.lower();
        }
    }

    /// Whether the successor should go on with the lane.
    pub fn ends_here(&self) -> bool {
        (self.has_successor)() && self.pass.has_units() && self.pass.control.may_rise()
    }

    fn lower(&self) {
        (self.start_successor)();
        self.pass.control.lower();
    }
}

/// A lane and its memory, on the way to the next thread.
type Handed<L> = (L, MemoryGuard);

/// The data that all threads of a pass use.
struct Shared<'s, 'a, L> {
    pass: &'s Pass<'a>,
    new: &'s (dyn Fn() -> L + Sync),
    /// Bytes of memory that a lane needs for chunks.
    memory: u64,
    /// Whether lanes may have successors.
    long: bool,
    tally: Mutex<Tally>,
    error: Mutex<Option<RunError>>,
}

/// Starts the lanes that `new` makes, runs `meanwhile` on this thread, and adds up the tallies of the lanes.
pub(crate) fn run_lanes<L: Lane, R>(
    pass: &Pass<'_>,
    new: &(dyn Fn() -> L + Sync),
    meanwhile: impl FnOnce() -> R,
) -> Result<(Tally, R), RunError> {
    let shared = Shared {
        pass,
        new,
        memory: pass.job.chunks.as_ref().map_or(0, |owned| chunk_reader::memory(&owned.chunks)),
        long: pass.has_more_units_than_lanes(),
        tally: Mutex::new(Tally::new(pass.job.file.parts.len())),
        error: Mutex::default(),
    };
    let result = std::thread::scope(|scope| {
        for number in 0..pass.job.options.lanes {
            match start(scope, &shared, number, None) {
                Ok(()) => {}
                // Fewer lanes give the same answer.
                Err(_) if number > 0 => break,
                Err(error) => return Err(RunError::Lane(error)),
            }
        }
        Ok(meanwhile())
    })?;
    match lock(&shared.error).take() {
        Some(error) => Err(error),
        None => Ok((std::mem::take(&mut *lock(&shared.tally)), result)),
    }
}

/// Starts a thread of a lane: of a new lane, or of the one that it will be `handed`.
fn start<'scope, L: Lane + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'_, '_, L>,
    number: usize,
    handed: Option<Receiver<Handed<L>>>,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(format!("lane {number}"));
    let run = move || {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let lane = match handed {
                None => new_lane(shared, number),
                // The lane ended before it was handed over.
                Some(handed) => handed.recv().ok(),
            };
            lane.map_or(Ok(()), |lane| run_lane(scope, shared, number, lane))
        }));
        if let Err(error) = ended.unwrap_or(Err(RunError::Panicked)) {
            lock(&shared.error).get_or_insert(error);
        }
    };
    thread.spawn_scoped(scope, run).map(|_| ())
}

/// A new lane. `None` if it should not begin, for lack of memory. The first lane waits for memory, until the request stops.
fn new_lane<L: Lane>(shared: &Shared<'_, '_, L>, number: usize) -> Option<Handed<L>> {
    let pass = shared.pass;
    // If the first lane does not begin, it is dropped, which ends the pass.
    let first = (number == 0).then(|| (shared.new)());
    let memory = pass.control.memory(shared.memory, number == 0, &|| pass.stopping())?;
    Some((first.unwrap_or_else(shared.new), memory))
}

/// Runs a lane on the calling thread, and hands it to the successor if it should go on.
fn run_lane<'scope, L: Lane + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'_, '_, L>,
    number: usize,
    (lane, memory): Handed<L>,
) -> Result<(), RunError> {
    let pass = shared.pass;
    let successor: RefCell<Option<SyncSender<Handed<L>>>> = RefCell::new(None);
    let start_successor = || {
        if shared.long && successor.borrow().is_none() {
            let (sender, handed) = sync_channel(1);
            // Without a successor the lane keeps its low priority.
            if start(scope, shared, number, Some(handed)).is_ok() {
                successor.replace(Some(sender));
            }
        }
    };
    let has_successor = || successor.borrow().is_some();
    let thread = LaneThread { pass, start_successor: &start_successor, has_successor: &has_successor };
    let begun = thread_time();
    let (tally, rest) = {
        // A lane does not wait for its beginning if others have folded all units.
        let (_lane, lowers) = pass.control.begin_lane(&|| pass.control.stopped() || !pass.has_units());
        if lowers {
            thread.lower();
        }
        lane.run(&thread)
    };
    lock(&shared.tally).add(&Tally { lanes: thread_time().saturating_sub(begun), ..tally });
    let Some(rest) = rest else { return Ok(()) };
    let handed = successor.take().is_some_and(|successor| successor.send((rest, memory)).is_ok());
    if handed { Ok(()) } else { Err(RunError::Internal { what: "a lane was handed to no thread" }) }
}
